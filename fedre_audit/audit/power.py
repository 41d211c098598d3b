"""How small a leak a declared row would have shown: what a verdict of no leakage is worth."""

import math
from collections.abc import Mapping
from typing import Any

from scipy import optimize, stats

ALPHA = 0.025
"""One-sided: the lower end of the 95 % interval that is printed beside the value, so both say the same."""
POWER = 0.8
FEWEST_UNITS = 4
"""With fewer independent clients (or upload rows, where clients are fewer) absence of leakage is not claimed."""
COMPARISONS = ("mean_image", "permuted")
"""What the class-level rule holds the PSNR of members against; both have to be beaten."""


def detectable_gain(row: Mapping[str, Any], floor: str, share: float, power: float = POWER) -> float | None:
    """Smallest true gain over a floor that the row would have shown with this power, in the row's unit.

    By the noncentral t. The spread is itself known from few clients: its upper 80 % bound is taken, lest a small one
    by luck promises more than it can see. share: of the level that the test has at the first step of the correction.
    None where there are too few independent values, or no spread among them: answers equal to the floor's prove no
    power.
    """
    gain = row["gain"][floor]
    interval, df = gain["ci95"], gain["df"]
    units = row["n_clusters"] if row["interval_unit"] == "client" else row["n_rows"]
    if interval is None or None in interval or units < FEWEST_UNITS or interval[0] == interval[1]:
        return None
    error = (interval[1] - interval[0]) / 2 / stats.t.ppf(0.975, df) * math.sqrt(df / stats.chi2.ppf(1 - POWER, df))
    return float(shift(df, ALPHA * share, power) * error)


def shift(df: float, alpha: float, power: float) -> float:
    """By how many standard errors a mean has to differ from 0 for a one-sided t-test to reject with this power."""
    critical = stats.t.ppf(1 - alpha, df)
    found = optimize.brentq(lambda ncp: stats.nct.sf(critical, df, ncp) - power, 0.0, 4 * critical + 10)
    return float(found)


def detectable_leak(row: Mapping[str, Any], share: float, ways: int) -> float | None:
    """Smallest true gain, over the mean image and over the permuted upload alike, that meets the class-level rule.

    The rule needs both comparisons, however they hang together: each gets half of what the power leaves to chance.
    ways: how many ways to meet the rule share the level. None where one comparison cannot be judged.
    """
    each = 1 - (1 - POWER) / len(COMPARISONS)
    found = [detectable_gain(row, floor, share / ways, each) for floor in COMPARISONS]
    seen = [gain for gain in found if gain is not None]
    return max(seen) if len(seen) == len(found) else None
