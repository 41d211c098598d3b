"""Who holds which image: partitions over clients and the 75/25 split of each, from labels alone.

Pure functions of labels and a `numpy.random.RandomState`; with `RandomState(0)` handed through
`practical` (or `pathological`) and then `split_train_test` they give the partitions of FedRE's public
code (AIResearch-Group/FedRE b9b1e9c, after TsingZ0/HtFLlib), which seeds NumPy's global generator with 0.
"""

from collections.abc import Sequence

import numpy as np
from numpy.random import RandomState
from numpy.typing import NDArray

from knowledge_forms.errors import AuditError

Ids = NDArray[np.int64]
SMALLEST = 40  # least images of a client in the public code: 10 / (1 - 0.75)
TRAIN_SHARE = 0.75


def practical(
    labels: NDArray[np.int64],
    clients: int,
    *,
    alpha: float,
    num_classes: int,
    rng: RandomState,
    min_size: float | None = None,
    max_tries: int = 100,
) -> list[Ids]:
    """Dirichlet(alpha) shares of each class over clients: labels [N] -> `clients` arrays of rows of `labels`.

    A client that holds N/clients images already gets no more of a class. Drawn again while the smallest
    client has fewer than `min_size` images (default min(40, N/clients/2)); after `max_tries` the last draw
    stands and the largest client gives images to the smallest until all have `min_size`. Every image goes
    to exactly one client. Raises AuditError on fewer images than clients.
    """
    total = _check(labels, clients)
    wanted = min(SMALLEST, total / clients / 2) if min_size is None else min(min_size, total // clients)
    smallest = max(wanted, min(2, total // clients))
    for _ in range(max_tries):
        parts = _dirichlet(labels, clients, alpha, num_classes, rng)
        if min(map(len, parts)) >= smallest:
            break
    return _top_up(parts, smallest)


def _dirichlet(labels: Ids, clients: int, alpha: float, num_classes: int, rng: RandomState) -> list[Ids]:
    parts: list[list[int]] = [[] for _ in range(clients)]
    for label in range(num_classes):
        ids = np.flatnonzero(labels == label)
        rng.shuffle(ids)
        shares = rng.dirichlet(np.repeat(alpha, clients))
        below = np.array([len(part) < len(labels) / clients for part in parts])
        shares = np.where(below, np.nan_to_num(shares), 0)  # a tiny alpha draws 0/0
        if shares.sum() == 0:  # or gives all of the class to full clients
            shares = below if below.any() else np.ones(clients)
        cuts = (np.cumsum(shares / shares.sum()) * len(ids)).astype(int)[:-1]
        for part, given in zip(parts, np.split(ids, cuts), strict=True):
            part.extend(given.tolist())
    return [np.array(part, dtype=np.int64) for part in parts]


def pathological(
    labels: NDArray[np.int64], clients: int, *, classes_per_client: int, num_classes: int, rng: RandomState
) -> list[Ids]:
    """Few classes per client: labels [N] -> `clients` arrays of rows of `labels`, unshuffled within a class.

    Class c goes to the first ceil(clients/num_classes * classes_per_client) clients, by index, that still
    need classes; their shares are drawn uniformly, the last takes the rest. Classes that no client needs
    any more (clients * classes_per_client < num_classes) are left out. Raises AuditError on fewer images
    than clients and on more classes per client than there are.
    """
    _check(labels, clients)
    if not 1 <= classes_per_client <= num_classes:
        raise AuditError(
            f"--classes_per_client is {classes_per_client}, the data has {num_classes} classes; "
            f"choose 1 to {num_classes}"
        )
    parts: list[list[int]] = [[] for _ in range(clients)]
    needs = np.full(clients, classes_per_client)
    most = int(np.ceil(clients / num_classes * classes_per_client))
    for label in range(num_classes):
        holders = np.flatnonzero(needs > 0)[:most]
        if len(holders) == 0:
            break
        ids = np.flatnonzero(labels == label)
        sizes = _uneven(len(ids), len(holders), SMALLEST / num_classes, rng)
        for client, given in zip(holders, np.split(ids, np.cumsum(sizes)), strict=True):
            parts[client].extend(given.tolist())
        needs[holders] -= 1
    held = sum(map(len, parts))
    if held < clients:
        raise AuditError(
            f"{clients} clients share the {held} images of their classes; "
            "lower --clients, or raise --private_images or --classes_per_client"
        )
    return _top_up([np.array(part, dtype=np.int64) for part in parts], min(2, held // clients))


def _uneven(size: int, holders: int, floor: float, rng: RandomState) -> list[int]:
    """Images of a class for all holders but the last."""
    mean = size / holders
    low, high = int(max(mean / 10, floor)), int(mean)
    if low >= high:
        return [high] * (holders - 1)
    return rng.randint(low, high, holders - 1).tolist()


def split_train_test(parts: Sequence[Ids], labels: Ids, rng: RandomState) -> list[tuple[Ids, Ids]]:
    """75 % training and 25 % test ids of each client, in client order; a single image is kept for training.

    The same draws as scikit-learn's `train_test_split(train_size=0.75, shuffle=True, random_state=rng)`.
    Labels only say which ids exist: the split is not stratified. Raises IndexError on an id they lack.
    """
    split = []
    for ids in parts:
        if len(ids) and ids.max() >= len(labels):
            raise IndexError(f"id {ids.max()} is beyond the {len(labels)} labels")
        if len(ids) < 2:
            split.append((ids, ids[:0]))
            continue
        held_out = len(ids) - int(TRAIN_SHARE * len(ids))
        order = rng.permutation(len(ids))
        split.append((ids[order[held_out:]], ids[order[:held_out]]))
    return split


def _check(labels: Ids, clients: int) -> int:
    if clients < 1 or len(labels) < clients:
        raise AuditError(
            f"{len(labels)} private images cannot be shared by {clients} clients; "
            "lower --clients or raise --private_images"
        )
    return len(labels)


def _top_up(parts: list[Ids], smallest: float) -> list[Ids]:
    """Move images one by one from the largest to the smallest client until all have `smallest`."""
    while len(parts[poor := int(np.argmin([len(part) for part in parts]))]) < smallest:
        rich = int(np.argmax([len(part) for part in parts]))
        parts[poor] = np.append(parts[poor], parts[rich][-1])
        parts[rich] = parts[rich][:-1]
    return parts
