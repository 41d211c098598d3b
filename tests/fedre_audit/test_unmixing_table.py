"""docs/unmixing.md says what results/ say."""

import pytest

from fedre_audit.figures.unmixing_table import BEGIN, END, ROOT, claims, filled, streams_table


def method(last, smoothed, status="validated"):
    return {
        "last": last, "smoothed": smoothed, "predicted_last": 0.2, "predicted_smoothed": 0.3, "null_gap": 0.4,
        "status": status,
    }  # fmt: skip


def test_the_document_is_what_the_results_say():
    text = (ROOT / "docs" / "unmixing.md").read_text(encoding="utf-8")
    assert filled(text, ROOT / "results") == text, "run python -m fedre_audit.figures.unmixing_table"


def test_only_the_measured_part_is_replaced():
    text = filled(f"before\n{BEGIN}\nold\n{END}\nafter\n", ROOT / "results")
    assert text.startswith("before\n")
    assert text.endswith("\nafter\n")
    assert "old" not in text
    with pytest.raises(ValueError, match="holds no part between"):
        filled(f"{END}\n{BEGIN}\n", ROOT / "results")


def test_a_line_a_client_with_the_default_filters_own_word():
    row = {"classes": 5, "rounds": 60, "least_squares": method(1.5, 2.25), "learned_drift": method(0.05, 0.06)}
    (_, _, line) = streams_table({"still": [row | {"adaptive_norm_smoothed": method(0.07, 0.81, "inconclusive")}]})
    assert line == "| still | 5 | 60 | 1.50 / 2.25 | .070 / .81 | .050 / .060 | .20 / .30 | .40 | open |"


def test_nothing_validated_has_no_worst():
    found = {
        "smoothed <= .6": 1, "below least squares": 2, "predicted within 2.5, last": 3,
        "predicted within 2.5, smoothed": 4, "validated": 0, "worst last error among validated": None,
    }  # fmt: skip
    line, _ = claims({"streams": 9, "adaptive_norm_smoothed": found, "learned_drift": found})
    assert line.endswith("3 (last) and 4 (late); 0 validated.")
