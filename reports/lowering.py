"""How an entry of what would lower the leak reads: told from chance or not."""

from reports.scores import Lowering


def effect(change: Lowering) -> str:
    """Whether the difference is told apart from chance, and which way it goes; never by colour alone.

    >>> entry = {"ci95": [-2.0, -1.0], "more_leakage": "higher"}
    >>> effect(entry), effect(entry | {"ci95": [-2.0, 1.0]}), effect(entry | {"ci95": None})
    ('✓ leaks less', '≈ not told from chance', '? too few clients for an interval')
    >>> effect(entry | {"more_leakage": "lower"})
    '✗ leaks more'
    """
    low, high = change["ci95"] or (None, None)
    if low is None or high is None:
        return "? too few clients for an interval"
    if low <= 0 <= high:
        return "≈ not told from chance"
    return "✓ leaks less" if (high < 0) == (change["more_leakage"] == "higher") else "✗ leaks more"
