"""Private and public images of a foreign audit as one data set, no image in two parts."""

from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from fedre_audit.data.base import ImageData, image_hashes, load_dataset
from fedre_audit.data.splits import Split
from fedre_audit.foreign.config import ForeignConfig
from fedre_audit.foreign.truth import ForeignTruth
from fedre_audit.foreign.uploads import ForeignUploads
from fedre_audit.seeding import generator
from fedre_audit.stages.prepare import EVALUATION_SHARE, Prepared
from knowledge_forms.errors import AuditError


def read_auxiliary(config: ForeignConfig, found: ForeignUploads) -> ImageData | None:
    """The public images; AuditError where their classes cannot be those of the uploads."""
    if config.auxiliary is None:
        return None
    data = load_dataset(config.auxiliary, root=Path(config.data_root) if config.data_root else None)
    if len(data.classes) > found.classes:
        raise AuditError(
            f"--auxiliary {config.auxiliary} has {len(data.classes)} classes, the uploads have {found.classes}; "
            "give images of the same classes in the same order"
        )
    return data


def gather(
    config: ForeignConfig, found: ForeignUploads, truth: ForeignTruth | None, public: ImageData | None
) -> Prepared | None:
    """One data set of all images: private ones, then the attacker's, then those kept for scoring. None without any.

    A public image equal to a private one is left out and counted. AuditError where sizes differ or none is left.
    """
    known = [source.images for source in (truth, public) if source is not None]
    if not known:
        return None
    if len({images.shape[1:] for images in known}) > 1:
        sizes = " and ".join("x".join(map(str, images.shape[1:])) for images in known)
        raise AuditError(f"private and auxiliary images differ in size ({sizes}); give auxiliary ones of that size")
    none = torch.empty(0, dtype=torch.int64)
    private = 0 if truth is None else len(truth.images)
    chosen, dropped = (none, 0) if public is None else _draw(config, public, truth)
    auxiliary = min(config.auxiliary_images, max(1, len(chosen) * EVALUATION_SHARE // (EVALUATION_SHARE + 1)))
    ids = torch.arange(private, private + len(chosen))
    images = [source for source in (truth.images if truth else None, public.images[chosen] if public else None)
              if source is not None]  # fmt: skip
    labels = [source for source in (truth.labels if truth else None, public.labels[chosen] if public else None)
              if source is not None]  # fmt: skip
    data = ImageData(
        name=f"the images behind {Path(config.uploads).resolve().name}",
        images=torch.cat(images),
        labels=torch.cat(labels),
        classes=tuple(str(label) for label in range(found.classes)),
        official_split=torch.zeros(private + len(chosen), dtype=torch.int8),
    )
    split = Split(torch.arange(private), ids[:auxiliary], ids[auxiliary:], dropped)
    nobody = np.empty(0, dtype=np.int64)
    rows = truth.rows if truth else dict.fromkeys(range(len(found.ids)), nobody)
    parts = [(rows[client], nobody) for client in range(len(found.ids))]
    return Prepared(data=data, split=split, parts=parts)


def _draw(config: ForeignConfig, public: ImageData, truth: ForeignTruth | None) -> tuple[Tensor, int]:
    """Public images in random order, each once and none of them private; and how many were left out."""
    hashes = image_hashes(public.images)
    _, first = np.unique(hashes, return_index=True)
    fresh = np.zeros(len(hashes), dtype=bool)
    fresh[first] = True
    if truth is not None:
        fresh &= ~np.isin(hashes, image_hashes(truth.images))
    order = torch.randperm(len(public), generator=generator(config.seed, "auxiliary"))
    kept = order[torch.from_numpy(fresh)[order]]
    if len(kept) < 5:
        raise AuditError(f"--auxiliary {config.auxiliary} leaves {len(kept)} images that are not private; give others")
    wanted = config.auxiliary_images + max(1, config.auxiliary_images // EVALUATION_SHARE)
    return kept[:wanted], int((~fresh).sum())
