"""Was this image among the client's? Members against evaluation images of the same classes, one value per client."""

import numpy as np
from scipy.stats import rankdata

from fedre_audit.audit.intervals import Floats

FALSE_ALARMS = 0.01


def auc(members: Floats, others: Floats) -> float:
    """Area under the ROC curve: the share of (member, other) pairs ranked rightly, ties count half.

    >>> auc(np.array([2.0, 3.0]), np.array([1.0, 2.0]))
    0.875
    """
    ranks = rankdata(np.concatenate([members, others]))
    n = len(members)
    return float((ranks[:n].sum() - n * (n + 1) / 2) / (n * len(others)))


def tpr_at(members: Floats, others: Floats, rate: float = FALSE_ALARMS) -> float:
    """Share of members above the threshold that at most `rate` of the others exceed.

    With fewer than 1 / rate others the threshold is their maximum, so the result is a lower bound.

    >>> tpr_at(np.array([5.0, 0.5]), np.array([1.0, 2.0, 3.0]))
    0.5
    """
    allowed = int(np.floor(rate * len(others)))
    threshold = np.sort(others)[::-1][allowed]
    return float((members > threshold).mean())


def membership_values(members: Floats, others: Floats) -> dict[str, float]:
    """Both measures; NaN where a score is not a number or a side is empty."""
    if len(members) == 0 or len(others) == 0 or np.isnan(np.concatenate([members, others])).any():
        return {"membership_auc": float("nan"), "membership_tpr_at_1pct": float("nan")}
    return {"membership_auc": auc(members, others), "membership_tpr_at_1pct": tpr_at(members, others)}
