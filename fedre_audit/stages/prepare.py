"""What every stage starts from: the data set, its disjoint splits and the clients' parts; the same from one seed."""

from dataclasses import dataclass
from functools import cache, cached_property, partial
from pathlib import Path

import numpy as np
import torch

from fedre_audit.config import PRESETS, AuditConfig
from fedre_audit.data.auxiliary import CLASSES, SAME, auxiliary_data
from fedre_audit.data.base import ImageData, load_dataset
from fedre_audit.data.partition import pathological, practical, split_train_test
from fedre_audit.data.splits import Split, make_split
from fedre_audit.federation.client import ClientData
from fedre_audit.progress import late
from fedre_audit.seeding import derive_seed

EVALUATION_SHARE = 4
"""For so many auxiliary images one more is kept for scoring."""


@dataclass(frozen=True)
class Prepared:
    """data: all images. split: disjoint ids. parts: per client (train ids, test ids) into `data`.

    elsewhere: the attacker's images where they are not the split's, in the shape and class numbers of `data`.
    auxiliary_sha256: content hash of the other data set that they come from; None where they come from `data`.
    """

    data: ImageData
    split: Split
    parts: list[tuple[np.ndarray, np.ndarray]]
    elsewhere: ImageData | None = None
    auxiliary_sha256: str | None = None

    @cached_property
    def auxiliary(self) -> ImageData:
        """The attacker's images; a label of -1 belongs to none of the clients' classes."""
        return self.data.subset(self.split.auxiliary) if self.elsewhere is None else self.elsewhere

    @cached_property
    def labelled(self) -> ImageData:
        """Images of every class for the auditor's own classifier: public images from elsewhere may lack classes."""
        return self.data.subset(self.split.auxiliary if self.elsewhere is None else self.split.evaluation)

    def client_data(self) -> list[ClientData]:
        """Each client's private images: what it trains and is tested on."""
        return [
            ClientData(
                images=self.data.images[train],
                labels=self.data.labels[train],
                ids=torch.from_numpy(train),
                test_images=self.data.images[test],
                test_labels=self.data.labels[test],
            )
            for train, test in self.parts
        ]


def load_images(spec: str, *, root: Path | None, quiet: bool, dry: bool = False) -> ImageData:
    """The data set of this name, fetched where it is not there; says how far it is unless `quiet`; dry: not fetched."""
    with late("load images", quiet=quiet) as tell:
        return load_dataset(spec, root=root, progress=tell, download=True, dry=dry)


def from_own(config: AuditConfig) -> bool:
    """Whether the attacker's images come from the audited data set."""
    return config.auxiliary == SAME or config.auxiliary.startswith(CLASSES)


def sizes_of(config: AuditConfig, data: ImageData) -> tuple[int, int]:
    """Private and auxiliary images: as configured, but a number that the preset chose fits a smaller data set.

    What the user chose stays; the parts that the preset chose share what there is in the preset's proportion.
    """
    private, auxiliary = config.private_images, config.auxiliary_images
    if private is None or auxiliary is None:
        raise ValueError("prepare needs a resolved configuration")
    preset, there = PRESETS[config.preset], len(data.images)
    own = from_own(config)
    total = private + auxiliary // EVALUATION_SHARE + (auxiliary if own else 0)
    if there >= total or private != preset["private_images"]:
        return private, auxiliary
    train = int((data.official_split.numpy() == 0).sum())
    if own and auxiliary == preset["auxiliary_images"]:
        auxiliary = max(1, there * auxiliary // total)
    elif (left := there - (total - private)) > 0:
        return min(train, left), auxiliary  # the preset's private images make room for what the user asked for
    return min(train, max(1, there * private // total)), auxiliary


def prepare(config: AuditConfig, *, quiet: bool = False, dry: bool = False) -> Prepared:
    """Load, split and partition as `config` says. dry: AuditError where images would have to be fetched first."""
    if config.clients is None:
        raise ValueError("prepare needs a resolved configuration")
    root = Path(config.data_root) if config.data_root else None
    load = cache(partial(load_images, root=root, quiet=quiet, dry=dry))
    data = load(config.dataset)
    if config.classes is not None and config.classes < len(data.classes):
        data = data.limit_classes(config.classes)
    private, auxiliary = sizes_of(config, data)
    split = make_split(
        data,
        private=private,
        auxiliary=auxiliary if config.auxiliary == SAME else None,
        evaluation=auxiliary // EVALUATION_SHARE,
        seed=config.seed,
        clients=config.clients or 1,
    )
    elsewhere = auxiliary_data(data, split, config.auxiliary, count=auxiliary, seed=config.seed, load=load)
    # Of the whole data set as it lies there: resized images differ in a bit between processors.
    auxiliary_sha256 = None if from_own(config) else load(config.auxiliary).content_hash
    rng = np.random.RandomState(derive_seed(config.seed, "partition") % 2**32)
    labels = data.labels[split.private].numpy()
    if config.partition == "practical":
        parts = practical(labels, config.clients, alpha=config.alpha, num_classes=len(data.classes), rng=rng)
    else:
        parts = pathological(
            labels,
            config.clients,
            classes_per_client=config.classes_per_client,
            num_classes=len(data.classes),
            rng=rng,
        )
    ids = split.private.numpy()
    clients = [(ids[train], ids[test]) for train, test in split_train_test(parts, labels, rng)]
    return Prepared(data, split, clients, elsewhere, auxiliary_sha256)
