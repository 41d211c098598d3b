"""Unordered sets: which reconstruction belongs to which image is solved on the very metric that is reported."""

import torch
from scipy.optimize import linear_sum_assignment
from torch import Tensor

from fedre_audit.audit.metrics import METRICS, sign_of


def hungarian(metric: str, reconstructions: Tensor, targets: Tensor) -> tuple[Tensor, Tensor]:
    """Best one-to-one matching of reconstructions [n,c,h,w] to targets [m,c,h,w], n <= m.

    Returns (target index [n], metric values [n] float64). The matching looks at the truth, so it flatters even
    noise: give a null (`matched_null`) the same choice. Source: Kuhn 1955, doi 10.1002/nav.3800020109.
    """
    n, m = len(reconstructions), len(targets)
    left, right = torch.arange(n).repeat_interleave(m), torch.arange(m).repeat(n)
    values = METRICS[metric].compute(reconstructions[left], targets[right]).double().reshape(n, m)
    rows, columns = linear_sum_assignment((-sign_of(metric) * values).numpy())
    return torch.from_numpy(columns), values[rows, columns]


def matched_null(metric: str, reconstructions: Tensor, others: Tensor, targets: Tensor) -> tuple[Tensor, Tensor]:
    """(values of the matching, values of the same matching of `others`): what counts is the difference.

    others: [n,c,h,w], the same attacker's answers to uploads that are not these images'.
    """
    return hungarian(metric, reconstructions, targets)[1], hungarian(metric, others, targets)[1]
