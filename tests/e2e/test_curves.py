"""An audit that follows leakage over rounds and public images, from the command line to the page."""

import json

from fedre_audit.cli import main

OPTIONS = ["--clients", "4", "--rounds", "16", "--private-images", "200", "--auxiliary-images", "200", "--classes", "4",
           "--curves", "rounds,auxiliary", "--quiet"]  # fmt: skip


def test_curves_are_rows_and_charts_and_leave_the_other_rows_as_they_were(tmp_path):
    out, plain = tmp_path / "run", tmp_path / "plain"
    assert main([*OPTIONS, "--out", str(out)]) == 0
    assert main([*OPTIONS, "--out", str(plain), "--curves", "[]"]) == 0
    rows, others = (json.loads((path / "scores.json").read_text())["rows"] for path in (out, plain))
    curves = [row for row in rows if "curve" in row]
    over = {(r["curve"], r["form"], r["stream"], r["budget"]["auxiliary"]) for r in curves if r["slice"] == "all"}
    assert over == {("rounds", "entangled", 4, 200), ("rounds", "entangled", 8, 200),
                    ("auxiliary", "raw", 1, 25), ("auxiliary", "raw", 1, 100)}  # fmt: skip
    kept = [{**row, "reason": None} for row in rows if "curve" not in row]
    assert kept == [{**row, "reason": None} for row in others]
    page = (out / "report.html").read_text()
    assert "Leakage over attacker budget was not measured" not in page
    assert "public images the attacker holds" in page
    assert "rounds of uploads the attacker used" in page
    assert "Public images come from the data set of the clients, other images of it." in page
