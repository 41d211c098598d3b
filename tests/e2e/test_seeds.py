"""Several seeds: a federation each, scored together; the verdict recomputes from scores.json alone."""

import json

import pytest

from fedre_audit.audit.verdict import verdict
from fedre_audit.cli import main
from fedre_audit.federation.history import read_history

SMALL = ["--clients", "3", "--rounds", "4", "--private-images", "150", "--auxiliary-images", "200", "--quiet"]


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    out = tmp_path_factory.mktemp("runs") / "seeds"
    assert main([*SMALL, "--seeds", "0,1", "--out", str(out)]) == 0
    return out


def scores(run) -> dict:
    return json.loads((run / "scores.json").read_text())


def test_a_cluster_is_a_client_of_a_seed(run):
    found = scores(run)
    assert found["run"]["seeds"] == [0, 1]
    assert {path.name for path in run.glob("seed-*")} == {"seed-0", "seed-1"}
    row = next(r for r in found["rows"] if (r["form"], r["metric"], r["stream"]) == ("raw", "psnr", 1))
    assert (row["n_clusters"], row["interval_unit"]) == (6, "client")
    assert {item["client"] for item in found["disclosures"]} == set(range(6))
    assert {item["client"] for item in found["unmixing"]} == set(range(6))


def test_accuracy_and_traffic_are_means_over_the_seeds(run):
    found = scores(run)["federation"]
    histories = [read_history(run / f"seed-{seed}") for seed in (0, 1)]
    for when, kind in (("last", "weighted"), ("best", "unweighted")):
        each = [history.accuracy()[when][kind] for history in histories]
        assert found["accuracy"][when][kind] == pytest.approx(sum(each) / 2)
    assert found["traffic"]["bytes"] == sum(history.rows[-1]["traffic"]["bytes"] for history in histories) / 2
    assert found["seeds_averaged"] == 2
    page = (run / "report.html").read_text()
    assert "0 to 2 are of seed 0, 3 to 5 are of seed 1." in page


def test_every_row_has_its_floors_chance_and_reason(run):
    for row in scores(run)["rows"]:
        assert row["floor"]["best"] is not None, row
        if row["metric"].startswith(("retrieval", "membership")):
            assert row["chance"] == row["floor"]["best"]
        if row["status"] != "ok":
            assert row["reason"]
        if row["target"] == "members" and row["slice"] == "all" and row["form"] == "entangled":
            assert row["ceiling"] is not None, row


def test_the_verdict_recomputes_from_the_file_alone(run):
    found = scores(run)
    assert verdict(found) == found["verdict"]
    assert found["competence"]["passed"]


def test_it_resumes_and_scores_again_to_the_same_bytes(run):
    before = scores(run)
    manifest = (run / "seed-1" / "manifest.json").stat().st_mtime_ns
    assert main([*SMALL, "--seeds", "0,1", "--out", str(run)]) == 0
    assert scores(run) == before
    assert main(["score", str(run)]) == 0
    again = scores(run)
    before.pop("volatile"), again.pop("volatile")
    assert again == before
    assert (run / "seed-1" / "manifest.json").stat().st_mtime_ns == manifest
