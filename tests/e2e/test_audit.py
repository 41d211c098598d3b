"""The whole audit on a small federation: every form, determinism, resume, the wall, bad input."""

import csv
import json
import shutil
from pathlib import Path

import pytest
import torch

from fedre_audit.audit.scoring import FLOOR_NAMES
from fedre_audit.audit.truth import read_truth
from fedre_audit.cli import main
from fedre_audit.federation.view import read_view

TINY = ["--clients", "4", "--rounds", "2", "--private-images", "200", "--auxiliary-images", "200", "--quiet"]


def audit(out: Path, *extra: str) -> int:
    return main([*TINY, "--out", str(out), *extra])


def scores(out: Path) -> dict:
    found = json.loads((out / "scores.json").read_text())
    found.pop("volatile")
    return found


@pytest.fixture(scope="module")
def entangled(tmp_path_factory):
    out = tmp_path_factory.mktemp("runs") / "entangled"
    assert audit(out) == 0
    return out


@pytest.mark.parametrize("form", ["raw", "prototype"])
def test_other_forms_end_well(form, tmp_path, capsys):
    assert audit(tmp_path / "run", "--form", form) == 0
    lines = capsys.readouterr().out.strip().splitlines()
    level = scores(tmp_path / "run")["verdict"]["level"]
    assert lines[-3].startswith(f"verdict: {level}. ")
    assert "floor" in lines[-2]
    assert "ceiling" in lines[-2]
    assert lines[-1] == f"report: {tmp_path / 'run' / 'report.html'}"
    assert (tmp_path / "run" / "report.html").stat().st_size > 1000


def test_run_folder_is_complete(entangled):
    for name in ("config.yaml", "manifest.json", "history.jsonl", "scores.json", "scores.csv", "report.html"):
        assert (entangled / name).is_file(), name
    assert not list(entangled.rglob("*.part"))
    found = scores(entangled)
    headline = [row for row in found["rows"] if row["headline"]]
    assert {row["form"] for row in headline} == {"entangled"}
    whole = [
        r for r in headline if (r["stream"], r["slice"], r["target"], r["metric"]) == (1, "all", "members", "psnr")
    ]
    assert len(whole) == 1
    assert whole[0]["ceiling"] is not None
    assert whole[0]["ci95"] is not None
    assert found["dataset"]["disjoint"] is True


def test_the_most_exposed_images_are_those_of_scores_csv(entangled):
    shown = scores(entangled)["exposed_samples"]
    assert len(shown) == 10
    gains, hits = {}, {}
    with (entangled / "scores.csv").open() as lines:
        for line in csv.DictReader(lines):
            if (line["form"], line["attack"], line["stream"], line["target"]) == ("entangled", "ridge", "1", "members"):
                who = int(line["client"]), int(line["sample"]), int(line["class"])
                if line["metric"] == "psnr":
                    gains[who] = {name: float(line["value"]) - float(line[name]) for name in FLOOR_NAMES}
                if line["metric"] == "retrieval_top1":
                    hits[who] = float(line["value"])
    best = min(FLOOR_NAMES, key=lambda name: sum(gain[name] for gain in gains.values()))
    worst_first = sorted((gain[best] for gain in gains.values()), reverse=True)[:10]
    assert [image["gain"] for image in shown] == pytest.approx(worst_first, abs=1e-4)
    for image in shown:
        who = image["client"], image["sample"], image["class"]
        assert image["gain"] == pytest.approx(gains[who][best], abs=1e-4)
        assert image["gain"] == pytest.approx(image["value"] - image["floor"])
        assert image["picked"] == hits.get(who)


def test_upload_equals_its_definition_from_recorded_truth(entangled):
    view, truth = read_view(entangled, "entangled"), read_truth(entangled, "entangled")
    assert len(view.uploads) == 8
    for upload in view.uploads:
        true = truth[upload.client, upload.round]
        weights = upload.label_encoding[0, true.classes]
        torch.testing.assert_close(upload.representation[0], weights @ true.prototypes, atol=1e-5, rtol=0)


def test_same_seed_same_uploads_and_scores_another_seed_differs(entangled, tmp_path):
    assert audit(tmp_path / "again") == 0
    assert scores(tmp_path / "again") == scores(entangled)
    uploads = [json.loads((run / "manifest.json").read_text())["uploads"] for run in (entangled, tmp_path / "again")]
    assert uploads[0] == uploads[1]
    assert audit(tmp_path / "other", "--seed", "1") == 0
    assert scores(tmp_path / "other")["rows"] != scores(entangled)["rows"]


def test_attack_without_truth_gives_the_same_bytes(entangled, tmp_path):
    run = tmp_path / "run"
    shutil.copytree(entangled, run)
    (run / "truth").rename(tmp_path / "truth-moved-away")
    shutil.rmtree(run / "attacks")
    assert main(["attack", str(run)]) == 0
    files = sorted(path.relative_to(entangled) for path in (entangled / "attacks").rglob("*.safetensors"))
    assert files
    for file in files:
        assert (run / file).read_bytes() == (entangled / file).read_bytes()


@pytest.mark.parametrize("lost", ["truth", "attacks/complete.json", "history.jsonl", "attacks/entangled/unmixing"])
def test_scoring_again_without_its_inputs_keeps_the_earlier_scores(entangled, tmp_path, lost, capsys):
    run = tmp_path / "run"
    shutil.copytree(entangled, run)
    gone = run / lost
    shutil.rmtree(gone) if gone.is_dir() else gone.unlink()
    assert main(["score", str(run)]) == 2
    assert capsys.readouterr().err.splitlines()[-1].startswith("audit: ")
    for name in ("scores.json", "scores.csv", "report.html", "strips/strips.json"):
        assert (run / name).read_bytes() == (entangled / name).read_bytes()


def test_scoring_again_gives_the_same_and_the_report_is_due(entangled, tmp_path, capsys):
    run = tmp_path / "run"
    shutil.copytree(entangled, run)
    (run / "strips" / "stale.png").write_bytes(b"")
    assert main(["score", str(run)]) == 0
    first, *_, last = capsys.readouterr().out.splitlines()
    assert first.startswith("verdict: ")
    assert last == f"next: audit report {run}"
    assert scores(run) == scores(entangled)
    assert not (run / "report.html").exists()
    assert not (run / "strips" / "stale.png").exists()


def test_a_complete_run_is_not_run_again_and_another_configuration_is_refused(entangled, capsys):
    before = (entangled / "scores.json").read_bytes()
    assert audit(entangled) == 0
    assert (entangled / "scores.json").read_bytes() == before
    capsys.readouterr()
    assert audit(entangled, "--seed", "5") == 2
    assert "seed (0 there, 5 asked)" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "needle"),
    [
        (["--form", "secret"], "unknown form 'secret'; choose one of"),
        (["--attacks", "magic"], "unknown attack 'magic'"),
        (["--attacks", "grey"], "is a floor"),
        (["--dataset", "nothing"], "unknown data set 'nothing'"),
        (["--dataset", "imagefolder:/no/such/place"], "/no/such/place"),
        (["--nonsense", "3"], "nonsense"),
        (["--rounds", "zero"], "rounds"),
        (["--clients", "0"], "--clients is 0"),
        (["--clients", "300"], "300"),
        (["--auxiliary-images", "0"], "auxiliary"),
        (["--system", "magic"], "unknown system 'magic'"),
        (["--family", "magic"], "unknown family 'magic'"),
        (["fly"], "unknown command 'fly'"),
        (["attack", "/no/such/run"], "not a run folder"),
        (["list", "everything"], "audit list WHAT"),
    ],
)
def test_bad_input_is_one_sentence_and_exit_2(arguments, needle, tmp_path, capsys):
    words = [*TINY, "--out", str(tmp_path / "run"), *arguments] if arguments[0].startswith("-") else arguments
    assert main(words) == 2
    error = capsys.readouterr().err.strip()
    assert needle in error
    assert "Traceback" not in error
    assert len(error.splitlines()) == 1
    assert not (tmp_path / "run").exists()


def test_help_version_and_lists(capsys):
    assert main(["--help"]) == 0
    assert "audit --form entangled" in capsys.readouterr().out
    for what in ("forms", "attacks", "systems", "families", "models", "datasets", "metrics"):
        assert main(["list", what]) == 0
        assert len(capsys.readouterr().out.splitlines()) > 1
