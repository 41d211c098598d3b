"""Can the private image be picked out? Ranks among candidates of its own class, so that the label alone gains nothing.

The pool of a pair is its member, the client's private images of the same class that are not in the same upload row,
and the evaluation images of that class. They are exchangeable, so an attacker who ignores the upload hits at chance.
Candidates are ranked by correlation: decoders fade what they are unsure of, and pixel distance then prefers the pale.
"""

from collections.abc import Mapping

import numpy as np
import torch
from scipy.special import digamma
from torch import Tensor

from attacks.matching import correlation_scores
from fedre_audit.audit.intervals import Floats
from fedre_audit.audit.scoring import ATTACK, CHANCE, PERMUTED, PairScores
from fedre_audit.pictures import Chosen, Images, Joined, at_once

TOP = (1, 5)
SMALLEST_POOL = 5
ROUNDING = 1e-6
"""Correlations this close tie: the same image twice, in float32, whichever block it stands in."""


def hits(better: Floats, ties: Floats, top: int) -> Floats:
    """Probability [P] of being among the first `top` when `ties` others tie; better, ties: counts [P].

    >>> hits(np.array([0.0, 0.0, 1.0]), np.array([0.0, 1.0, 0.0]), 1).tolist()
    [1.0, 0.5, 0.0]
    """
    return np.clip((top - better) / (ties + 1), 0.0, 1.0)


def reciprocal(last: Floats, count: Floats) -> Floats:
    """Mean [P] of 1/rank over the `count` ranks that end at `last`, where those who tie share them; NaN stays NaN.

    >>> reciprocal(np.array([1.0, 3.0]), np.array([1.0, 2.0])).round(4).tolist()
    [1.0, 0.4167]
    """
    return (digamma(last + 1) - digamma(last - count + 1)) / count


def rank_values(better: Floats, ties: Floats) -> dict[str, Floats]:
    """top-1, top-5 and reciprocal rank [P] from how many candidates are nearer and how many tie; NaN stays NaN."""
    values = {f"retrieval_top{top}": hits(better, ties, top) for top in TOP}
    values["retrieval_mrr"] = reciprocal(better + ties + 1, ties + 1)
    return values


def chance_values(candidates: Floats) -> dict[str, Floats]:
    """The same for a guess at random among `candidates` [P]."""
    values = {f"retrieval_top{top}": np.minimum(top / candidates, 1.0) for top in TOP}
    values["retrieval_mrr"] = reciprocal(candidates, candidates)
    return values


def count_rivals(answers: Images, row: Tensor, candidates: Images) -> tuple[Tensor, Tensor]:
    """How many candidates are nearer to the answer of each pair than its own image, how many tie: [m] float64 each.

    row: [m], of each pair; candidate i < m is the image of pair i, and images of one row do not compete. Pairs and
    candidates are compared block by block. NaN where the answer is not finite.
    """
    total = candidates.shape[0]
    holder = torch.cat([row, torch.full((total - len(row),), -1)])
    ahead, tied = torch.zeros(len(row), dtype=torch.float64), torch.zeros(len(row), dtype=torch.float64)
    for pairs in torch.arange(len(row)).split(at_once(candidates.shape)):
        rows, back = torch.unique(row[pairs], return_inverse=True)
        answer = answers[rows]
        own: Tensor | None = None
        for block in torch.arange(total).roll(-int(pairs[0])).split(at_once(candidates.shape)):
            scores = correlation_scores(answer, candidates[block])[back]
            if own is None:  # the first block begins with the images of these pairs
                own = scores[:, : len(pairs)].diagonal()[:, None]
            rival = holder[block][None, :] != row[pairs][:, None]
            ahead[pairs] += ((scores > own + ROUNDING) & rival).sum(1)
            tied[pairs] += (((scores - own).abs() <= ROUNDING) & rival).sum(1)
        if own is not None:
            ahead[pairs[~torch.isfinite(own.flatten())]] = float("nan")
    return ahead, tied


def retrieve(
    index: PairScores, predictions: Mapping[str, Images], images: Images, pool: Images, pool_labels: Tensor
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
        others = (pool_labels == int(label)).nonzero().flatten()
        row = torch.from_numpy(index.row[mine])
        size = 1 + len(others) + len(row) - torch.bincount(row)[row]
        if len(others) == 0 and bool((size < SMALLEST_POOL).all()):
            continue
        kept.append(mine)
        sizes.append(size.numpy())
        candidates = Joined(Chosen(images, torch.from_numpy(mine)), Chosen(pool, others))
        for who, (better, ties) in columns.items():
            ahead, tied = count_rivals(predictions[who], row, candidates)
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
