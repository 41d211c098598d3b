"""Can the private image be picked out? Ranks among candidates of its own class, so that the label alone gains nothing.

The pool of a pair is its member, the client's private images of the same class that are not in the same upload row,
and the evaluation images of that class. They are exchangeable, so an attacker who ignores the upload hits at chance.
Candidates are ranked by correlation: decoders fade what they are unsure of, and pixel distance then prefers the pale.
"""

import numpy as np
import torch
from torch import Tensor

from attacks.matching import correlation_scores
from fedre_audit.audit.intervals import Floats
from fedre_audit.audit.scoring import ATTACK, CHANCE, PERMUTED, PairScores

TOP = (1, 5)
SMALLEST_POOL = 5


def hits(better: Floats, ties: Floats, top: int) -> Floats:
    """Probability [P] of being among the first `top` when `ties` others tie; better, ties: counts [P].

    >>> hits(np.array([0.0, 0.0, 1.0]), np.array([0.0, 1.0, 0.0]), 1).tolist()
    [1.0, 0.5, 0.0]
    """
    return np.clip((top - better) / (ties + 1), 0.0, 1.0)


def rank_values(better: Floats, ties: Floats) -> dict[str, Floats]:
    """top-1, top-5 and reciprocal rank [P] from how many candidates are nearer and how many tie; NaN stays NaN."""
    values = {f"retrieval_top{top}": hits(better, ties, top) for top in TOP}
    values["retrieval_mrr"] = 1.0 / (1.0 + better + ties / 2)
    return values


def chance_values(candidates: Floats) -> dict[str, Floats]:
    """The same for a guess at random among `candidates` [P]."""
    values = {f"retrieval_top{top}": np.minimum(top / candidates, 1.0) for top in TOP}
    values["retrieval_mrr"] = np.array([(1.0 / np.arange(1, n + 1)).mean() for n in candidates.astype(int)])
    return values


def retrieve(
    index: PairScores, predictions: dict[str, Tensor], images: Tensor, pool: Tensor, pool_labels: Tensor
) -> tuple[PairScores, Floats]:
    """Retrieval values of the members pairs of one client, and the size of each pair's pool.

    images: [P,c,h,w], the member of each pair. predictions: 'attack' and 'permuted' -> [n,c,h,w] by upload row.
    pool, pool_labels: evaluation images [m,c,h,w] and labels. Pairs with fewer than SMALLEST_POOL candidates are left
    out. A reconstruction that is not finite scores NaN.
    """
    kept, columns = [], {who: ([], []) for who in (ATTACK, PERMUTED)}  # type: ignore[var-annotated]
    sizes = []
    for label in np.unique(index.label):
        mine = np.flatnonzero(index.label == label)
        others = pool[pool_labels == int(label)]
        row = torch.from_numpy(index.row[mine])
        same_row = row[:, None] == row[None, :]
        size = 1 + len(others) + (~same_row).sum(1)
        if len(others) == 0 and bool((size < SMALLEST_POOL).all()):
            continue
        kept.append(mine)
        sizes.append(size.numpy())
        candidates = torch.cat([images[torch.from_numpy(mine)], others])
        rows, back = torch.unique(row, return_inverse=True)
        for who, (better, ties) in columns.items():
            scores = correlation_scores(predictions[who][rows], candidates)[back]
            own = scores[:, : len(mine)].diagonal()[:, None]
            rival = torch.ones_like(scores, dtype=torch.bool)
            rival[:, : len(mine)] = ~same_row
            unknown = ~torch.isfinite(own.flatten())
            ahead, tied = ((scores > own) & rival).sum(1).double(), ((scores == own) & rival).sum(1).double()
            ahead[unknown] = float("nan")
            better.append(ahead.numpy())
            ties.append(tied.numpy())
    if not kept:
        return index.subset(np.zeros(len(index), dtype=bool)).with_values({}), np.zeros(0)
    pools = np.concatenate(sizes).astype(np.float64)
    enough = pools >= SMALLEST_POOL
    values = {who: rank_values(np.concatenate(b), np.concatenate(t)) for who, (b, t) in columns.items()}
    values[CHANCE] = chance_values(pools)
    table = index.subset(np.concatenate(kept)).with_values(values)
    return table.subset(enough), pools[enough]
