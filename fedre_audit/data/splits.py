"""Private, auxiliary and evaluation images: disjoint by image hash, never by id alone."""

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from fedre_audit.data.base import ImageData, image_hashes
from fedre_audit.seeding import derive_seed
from knowledge_forms.errors import AuditError

Ids = NDArray[np.int64]


@dataclass(frozen=True)
class Split:
    """Ids (int64 [n], rows of the data) of the clients' images, the attacker's and those kept for scoring.

    `duplicates_dropped` counts images set aside because an equal one, label or not, lies in an earlier part.
    """

    private: Tensor
    auxiliary: Tensor
    evaluation: Tensor
    duplicates_dropped: int


def check_shares(private: int, clients: int) -> None:
    """AuditError where not every client can have a private image."""
    if private < clients:
        raise AuditError(
            f"{private} private images cannot be shared by {clients} clients; "
            f"lower --clients to at most {private}, or raise --private-images to at least {clients}"
        )


def make_split(
    data: ImageData, *, private: int, auxiliary: int | None, evaluation: int, seed: int, clients: int = 1
) -> Split:
    """Draw the three parts at random, each with the class shares of what it is drawn from.

    Private images come from the official training part. Evaluation images come from the official test
    part first, auxiliary ones from what is left of training first. `auxiliary=None` draws none: the
    attacker's images come from elsewhere (compare them with `check_disjoint`). Where fewer images are left
    than asked for, auxiliary and evaluation shrink in proportion.
    Raises AuditError where the private images do not fit or are fewer than `clients`, where `auxiliary` is 0,
    and where nothing is left.
    """
    if private < 1 or evaluation < 0 or (auxiliary is not None and auxiliary < 1):
        raise AuditError(
            f"the split asks for {private} private, {auxiliary} auxiliary and {evaluation} evaluation "
            "images; it needs at least 1 private and 1 auxiliary image"
        )
    check_shares(private, clients)
    rng = np.random.RandomState(derive_seed(seed, "split") % 2**32)
    labels, test = data.labels.numpy(), data.official_split.numpy() > 0
    order = _stratified_order(labels, rng)
    train_order = order[~test[order]]
    if private > len(train_order):
        raise AuditError(
            f"{data.name} has {len(train_order)} training images, fewer than the {private} private ones "
            f"asked for; {advice(len(data))}"
        )
    hashes = image_hashes(data.images)
    private_ids = train_order[:private]
    rest = order[~np.isin(order, private_ids)]
    fresh = rest[~np.isin(hashes[rest], hashes[private_ids])]
    dropped = len(rest) - len(fresh)
    # Fitted to different images: copies of one that all went to the attacker could leave none for evaluation.
    sizes = _fit(auxiliary or 0, evaluation, len(np.unique(hashes[fresh])), data)
    auxiliary_ids = fresh[np.argsort(test[fresh], kind="stable")][: sizes[0]]
    others = fresh[~np.isin(fresh, auxiliary_ids)]
    unseen = others[~np.isin(hashes[others], hashes[auxiliary_ids])]
    dropped += len(others) - len(unseen)
    evaluation_ids = unseen[np.argsort(~test[unseen], kind="stable")][: sizes[1]]
    tensors = [torch.from_numpy(ids) for ids in (private_ids, auxiliary_ids, evaluation_ids)]
    return Split(tensors[0], tensors[1], tensors[2], dropped)


def check_disjoint(private: NDArray[np.bytes_], other: NDArray[np.bytes_], names: tuple[str, str]) -> None:
    """Refuse two parts that share an image: `image_hashes` of both, and their names for the message.

    Raises AuditError that counts the shared images and names the first of `other`.
    """
    shared = np.flatnonzero(np.isin(other, private))
    if len(shared):
        raise AuditError(
            f"{len(shared)} of the {len(other)} {names[1]} images are also among the {names[0]} ones "
            f"(the first is number {shared[0]}); remove them: the attacker must not "
            "hold what is to be guessed"
        )


def advice(there: int) -> str:
    """How to mend a number of private images that leaves too few of `there` for the attacker."""
    return f"lower --private-images, for instance to {max(1, there // 3)}, or leave it out: it then fits the data"


def _stratified_order(labels: Ids, rng: np.random.RandomState) -> Ids:
    """A random order of all ids of which every prefix holds each class in proportion, to about one image."""
    position = np.empty(len(labels))
    for label in np.unique(labels):
        ids = rng.permutation(np.flatnonzero(labels == label))
        position[ids] = (np.arange(len(ids)) + rng.random_sample()) / len(ids)
    return np.argsort(position, kind="stable")


def _fit(auxiliary: int, evaluation: int, left: int, data: ImageData) -> tuple[int, int]:
    """Sizes that fit into `left` images, in the proportion asked for and at least 1 where any was."""
    asked = auxiliary + evaluation
    if asked <= left:
        return auxiliary, evaluation
    least = (auxiliary > 0) + (evaluation > 0)
    if left < least:
        raise AuditError(
            f"of {data.name} are left {left} different images for {auxiliary} auxiliary and {evaluation} evaluation "
            f"ones; {advice(len(data))}"
        )
    fewer = min(max(left * auxiliary // asked, auxiliary > 0), left - (evaluation > 0))
    return fewer, left - fewer
