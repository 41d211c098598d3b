"""What really made each upload: read on the auditor's side alone, for scoring and nothing else."""

from dataclasses import dataclass, replace
from pathlib import Path

import torch
from torch import Tensor

from fedre_audit.pictures import Chosen, Images
from knowledge_forms.base import Mixing
from knowledge_forms.store import read_folder


@dataclass(frozen=True)
class Contribution:
    """Who contributed what to one upload.

    sample_ids: [N] ids into the data set. row, weight: [N], sample i entered upload row `row[i]` with that weight.
    class_counts: [C] training images per class. classes: [h] held classes. prototypes: [h,d] their true means.
    """

    sample_ids: Tensor
    row: Tensor
    weight: Tensor
    class_counts: Tensor
    classes: Tensor
    prototypes: Tensor

    @property
    def mixing(self) -> Mixing:
        """The mixing that turned samples into upload rows."""
        return Mixing(self.row.long(), self.weight, int(self.row.max()) + 1)


Truth = dict[tuple[int, int], Contribution]


def read_truth(run_dir: Path, form: str) -> Truth:
    """Truth of every recorded (client, round) of a form."""
    truth: Truth = {}
    for _, entries, _ in read_folder(run_dir / "truth" / form):
        for key, named in entries.items():
            truth[key] = Contribution(**{name: torch.from_numpy(value) for name, value in named.items()})
    return truth


def by_class(contribution: Contribution, labels: Tensor, classes: Tensor) -> Contribution:
    """The truth of a view of prototypes, a row for each of `classes` [h]: the plain mean of the images of its class.

    labels: [N], of the samples. Samples of other classes contribute nothing.
    """
    held = (labels[:, None] == classes[None, :]).float()
    counts = held.sum(0).clamp(min=1)
    return replace(contribution, row=held.argmax(1), weight=(held / counts).sum(1))


def by_newest(truth: Truth, client: int, labels: Tensor, classes: Tensor) -> Contribution | None:
    """The truth of a view of single representations: a row for each of `classes` [h], the sample of its newest upload.

    labels: of the data set. None where the round of a class has no truth.
    """
    own = [found for (who, _), found in sorted(truth.items()) if who == client]
    sample = {int(labels[i]): int(i) for found in own for i in found.sample_ids[found.weight > 0]}
    if not own or any(label not in sample for label in classes.tolist()):
        return None
    ids = torch.tensor([sample[label] for label in classes.tolist()])
    return replace(own[-1], sample_ids=ids, row=torch.arange(len(ids)), weight=torch.ones(len(ids)))


@dataclass(frozen=True)
class Targets:
    """What reconstructions are compared with: image [P] against upload row `row` [P] of `members` [P] images."""

    images: Images
    row: Tensor
    sample_ids: Tensor
    members: Tensor


def make_targets(kind: str, contribution: Contribution, images: Images) -> Targets:
    """Targets of one upload. images: [N,c,h,w] in [0,1], the private images in `sample_ids` order.

    members: every image that contributed, each one a pair. mixture: the weighted mean image of each row.
    class_mean: the plain mean image of the members of each row (equal weights).
    """
    kept = contribution.weight > 0
    row = contribution.row.long()[kept]
    n = contribution.mixing.n
    counts = torch.bincount(row, minlength=n)
    if kind == "members":
        return Targets(Chosen(images, kept.nonzero().flatten()), row, contribution.sample_ids[kept], counts[row])
    if kind not in ("mixture", "class_mean"):
        raise ValueError(f"unknown target '{kind}'")
    weight = contribution.weight[kept] if kind == "mixture" else 1.0 / counts[row].float()
    mean = Mixing(row, weight, n).apply(images[kept.nonzero().flatten()]).clamp(0.0, 1.0)
    return Targets(mean, torch.arange(n), torch.full((n,), -1), counts)
