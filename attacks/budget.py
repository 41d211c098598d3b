"""What more budget buys an attacker: more public images, more steps, more rounds. The auditor scores each point.

A curve that still rises at its end says that the audit is a lower bound and not yet saturated.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from attacks.base import Attack, Reconstructions
from attacks.knowledge import Q0
from knowledge_forms.base import ServerView
from knowledge_forms.errors import AuditError

Axis = Literal["auxiliary", "steps", "restarts", "rounds"]


@dataclass(frozen=True)
class BudgetPoint:
    """What the attack answered with `budget` images, steps, restarts or rounds, one answer for each view."""

    budget: int
    reconstructions: list[Reconstructions]


def newest_rounds(view: ServerView, count: int) -> ServerView:
    """The view of one client with its newest `count` uploads."""
    uploads = sorted(view.uploads, key=lambda upload: upload.round)
    return replace(view, uploads=tuple(uploads[-count:]))


def budget_curve(
    attack: Callable[..., Attack],
    knowledge: Q0,
    views: Sequence[ServerView],
    *,
    axis: Axis,
    points: Sequence[int],
) -> list[BudgetPoint]:
    """Fit and run `attack` at every budget, ascending; each view holds one client.

    auxiliary: the first so many public images (they come in random order). steps, restarts: passed to `attack` by
    name. rounds: the newest so many uploads of each view. Raises AuditError on budgets below 1, and on more
    auxiliary images than there are.
    """
    points = sorted(set(points))
    if not points or points[0] < 1:
        raise AuditError(f"a budget curve over {axis} needs budgets of at least 1; got {points or 'none'}")
    if axis == "auxiliary" and points[-1] > len(knowledge.images):
        raise AuditError(f"a budget of {points[-1]} auxiliary images needs as many; there are {len(knowledge.images)}")
    curve = []
    for budget in points:
        options = {axis: budget} if axis in ("steps", "restarts") else {}
        held = knowledge
        if axis == "auxiliary":
            held = replace(knowledge, images=knowledge.images[:budget], labels=knowledge.labels[:budget])
        fitted = attack(**options).fit(held)
        seen = [newest_rounds(view, budget) for view in views] if axis == "rounds" else views
        curve.append(BudgetPoint(budget, [fitted.reconstruct(view) for view in seen]))
    return curve


def saturated(budgets: Sequence[int], leakage: Sequence[float], *, tolerance: float) -> bool:
    """Whether the last doubling of the budget gained at most `tolerance` in `leakage` (higher = more leakage).

    The value at half the last budget is read off the curve linearly in the logarithm of the budget. False where the
    curve does not reach back to half of its last budget, or a value it needs is not finite: not shown is not saturated.

    >>> saturated([100, 200, 400, 800], [12.0, 14.0, 15.0, 15.05], tolerance=0.1)
    True
    >>> saturated([100, 200, 400, 800], [12.0, 14.0, 15.0, 15.5], tolerance=0.1)
    False
    """
    if len(budgets) < 2 or budgets[0] * 2 > budgets[-1]:
        return False
    x = [math.log2(budget / budgets[-1]) for budget in budgets]
    after = next(i for i, position in enumerate(x) if position >= -1.0)
    before = max(after - 1, 0)
    width = x[after] - x[before]
    share = (-1.0 - x[before]) / width if width else 0.0
    half = leakage[before] + share * (leakage[after] - leakage[before]) if share else leakage[before]
    gain = leakage[-1] - half
    return math.isfinite(gain) and gain <= tolerance
