"""The audit of recorded uploads: the independent loop scores like the engine, and each report claims what it can."""

import importlib.util
import json
import shutil
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from fedre_audit.cli import main
from fedre_audit.config import AuditConfig, resolve
from fedre_audit.federation.client import as_float
from fedre_audit.federation.view import read_view
from fedre_audit.foreign import encoder as encoding
from fedre_audit.foreign.config import ForeignConfig
from fedre_audit.foreign.data import gather, read_auxiliary
from fedre_audit.foreign.layout import lay_out
from fedre_audit.foreign.pipeline import fingerprint, load_encoders
from fedre_audit.foreign.truth import read_truth_folder
from fedre_audit.foreign.uploads import read_uploads
from fedre_audit.models import build_clients, load_clients
from fedre_audit.models.store import state_arrays
from fedre_audit.pipeline import set_up_torch
from fedre_audit.record import Recorder, Truth
from fedre_audit.runs import Run, open_run
from fedre_audit.stages.prepare import prepare
from fedre_audit.stages.train import train
from knowledge_forms.errors import AuditError
from knowledge_forms.store import write_tensors
from tests.fedre_audit.foreign.encoders import WIDTH

ROOT = Path(__file__).resolve().parents[3]
ENCODER = "tests.fedre_audit.foreign.encoders:engine"
CONFIG = resolve(
    AuditConfig(
        family="fedavg_cnn", clients=3, rounds=4, private_images=180, auxiliary_images=100, feature_width=WIDTH,
        shuffle=False, alpha=1.0, attacks=["ridge"], workers=1, precision="fp32",
    )
)  # fmt: skip


def plain_loop():
    spec = importlib.util.spec_from_file_location("plain_loop", ROOT / "examples" / "plain_loop.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def recorded(tmp_path_factory):
    """One federation twice: by the engine, and by the example's loop with the same models, data and weights."""
    folder = tmp_path_factory.mktemp("foreign")
    set_up_torch(CONFIG)
    prepared = prepare(CONFIG)
    run = open_run(folder / "engine", CONFIG)
    train(run, prepared, quiet=True)
    clients = prepared.client_data()
    view = read_view(run.path, "entangled")
    weights = {(u.client, u.round): u.label_encoding[0][u.label_encoding[0] > 0] for u in view.uploads}
    models = build_clients("fedavg_cnn", 3, prepared.data.shape, 10, WIDTH, CONFIG.seed)
    plain_loop().federate(
        models,
        [(as_float(own.images), own.labels) for own in clients],
        CONFIG.rounds,
        Recorder(folder / "loop", system="fedre", form="entangled", mechanism="RAP", classes=10),
        lambda client, round_, n: weights[client, round_],
        CONFIG.lr, CONFIG.batch_size, CONFIG.server_lr,
    )  # fmt: skip
    for client, (own, model) in enumerate(zip(clients, load_clients(run.path), strict=True)):
        Truth(folder / "truth").images(client, own.images, own.labels)
        write_tensors(folder / f"weights-{client}.safetensors", state_arrays(model.encoder), {})
    return folder


def audit(folder: Path, uploads: str, out: str, *options: str) -> dict:
    common = ["--out", str(folder / out), "--quiet", "--auxiliary-images", "80"]
    assert main(["--uploads", str(folder / uploads), *common, *options]) == 0
    assert (folder / out / "report.html").stat().st_size > 1000
    return json.loads((folder / out / "scores.json").read_text())


def everything(folder: Path) -> list[str]:
    weights = str(folder / "weights-{client}.safetensors")
    return ["--auxiliary", "mnist5k", "--truth", str(folder / "truth"), "--encoder", ENCODER, "--weights", weights]


def test_the_loop_of_the_example_records_what_the_engine_records(recorded):
    engine, loop = read_view(recorded / "engine", "entangled"), {}
    from knowledge_forms.store import read_folder

    for _, entries, meta in read_folder(recorded / "loop" / "entangled"):
        assert meta["feature_width"] == WIDTH
        loop |= entries
    assert set(loop) == {(upload.client, upload.round) for upload in engine.uploads}
    for upload in engine.uploads:
        arrays = loop[upload.client, upload.round]
        np.testing.assert_allclose(arrays["representation"], upload.representation.numpy(), atol=1e-5)


def test_with_everything_both_recordings_score_the_same(recorded):
    found = [audit(recorded, uploads, f"all-{i}", *everything(recorded))
             for i, uploads in enumerate(("loop", "engine/uploads"))]  # fmt: skip
    rows = [{tuple(row[k] for k in ("form", "attack", "stream", "target", "slice", "metric")): row["value"]
             for row in scores["rows"]} for scores in found]  # fmt: skip
    assert rows[0].keys() == rows[1].keys()
    assert ("entangled", "ridge", 1, "members", "all", "psnr") in rows[0]
    assert ("raw", "ridge", 1, "members", "all", "psnr") in rows[0]
    for key, value in rows[0].items():
        assert value == pytest.approx(rows[1][key], abs=1e-6, rel=1e-6), key
    assert found[0]["verdict"]["numbers"]["ceiling"] is not None
    assert found[0]["run"]["command"].startswith("audit --uploads PATH/loop --auxiliary mnist5k")
    assert "--weights 'PATH/weights-{client}.safetensors'" in found[0]["run"]["command"]
    assert found[0]["dataset"]["duplicates_dropped"] >= found[0]["dataset"]["private"]
    notes = json.loads((recorded / "all-0" / "foreign.json").read_text())["notes"]
    assert not any("differs by" in note for note in notes), notes


def test_uploads_alone_claim_unmixing_and_disclosures(recorded, capsys):
    scores = audit(recorded, "loop", "alone")
    assert scores["rows"] == scores["flags"] == scores["bounds"] == []
    assert scores["verdict"]["level"] == "NOT_ASSESSED"
    assert "add --truth, --auxiliary, --encoder" in scores["verdict"]["sentence"]
    assert [u["client"] for u in scores["unmixing"]] == [0, 1, 2]
    assert all(u["predicted_error"] is not None for u in scores["unmixing"])
    assert {d["kind"] for d in scores["disclosures"]} >= {"class_set"}
    assert "verdict: NOT_ASSESSED" in capsys.readouterr().out


def test_json_and_a_gate_as_with_any_audit(recorded, capsys):
    words = ["--uploads", str(recorded / "loop"), "--out", str(recorded / "gate"), "--json"]
    assert main([*words, "--fail-on", "class,not-assessed"]) == 3
    printed = capsys.readouterr()
    said = json.loads(printed.out)  # one line, and nothing else
    assert (said["verdict"], said["exit_code"], said["run"]) == ("NOT_ASSESSED", 3, str(recorded / "gate"))
    assert "--fail-on class,not-assessed: the verdict is NOT_ASSESSED" in printed.err
    assert main([*words, "--fail-on", "sample"]) == 0
    printed = capsys.readouterr()
    assert json.loads(printed.out)["exit_code"] == 0
    assert "this gate proves nothing" in printed.err
    assert main([*words, "--dry-run"]) == 0
    plan = json.loads(capsys.readouterr().out)["plan"]
    assert ("scores and verdict", "no") in [(line["what"], line["answer"]) for line in plan]
    assert main([*words, "--fail-on", "sampel"]) == 2
    assert "--fail-on sampel: choose from sample, class, not-assessed" in capsys.readouterr().err


def test_encoder_without_truth_reconstructs_and_scores_nothing(recorded):
    weights = str(recorded / "weights-{client}.safetensors")
    options = ["--auxiliary", "mnist5k", "--encoder", ENCODER, "--weights", weights]
    scores = audit(recorded, "loop", "encoder", *options)
    assert scores["rows"] == scores["flags"] == []
    assert "add --truth" in scores["verdict"]["sentence"]
    assert "--encoder" not in scores["verdict"]["sentence"]
    assert list((recorded / "encoder" / "reconstructions").glob("ridge-client-000-newest-row-00.png"))
    assert not (recorded / "encoder" / "truth").exists()


def test_truth_without_encoder_flags_and_scores_nothing(recorded):
    scores = audit(recorded, "loop", "truth-only", "--truth", str(recorded / "truth"))
    assert scores["rows"] == []
    assert scores["dataset"]["private"] > 0
    assert "add --auxiliary, --encoder" in scores["verdict"]["sentence"]
    assert not (recorded / "truth-only" / "attacks" / "entangled" / "ridge").exists()


def test_a_stage_of_a_foreign_run_starts_again_and_gives_the_same(recorded, capsys):
    scores = audit(recorded, "loop", "again")
    (recorded / "again" / "scores.json").unlink()
    assert audit(recorded, "loop", "again")["unmixing"] == scores["unmixing"]
    assert main(["score", str(recorded / "again")]) == 0
    assert json.loads((recorded / "again" / "scores.json").read_text())["unmixing"] == scores["unmixing"]
    assert main(["--uploads", str(recorded / "loop"), "--out", str(recorded / "again"), "--seed", "5"]) == 2
    assert "another configuration" in capsys.readouterr().err


def test_an_encoder_that_did_not_make_the_uploads_is_noticed(recorded, tmp_path):
    config = ForeignConfig(str(recorded / "loop"), truth=str(recorded / "truth"), auxiliary="mnist5k", encoder=ENCODER)
    found = read_uploads(Path(config.uploads))
    truth = read_truth_folder(Path(config.truth), found)
    prepared = gather(config, found, truth, read_auxiliary(config, found))
    models, notes = load_encoders(config, found, prepared)
    assert any("no --weights" in note for note in notes)
    said = lay_out(Run(tmp_path, CONFIG), found, truth, models)
    assert len(said) == 3
    assert "client 0: its newest upload differs by" in said[0]


MINE = """
import torch
from torch import nn

def make():
    return nn.Sequential(nn.Flatten(), nn.Linear(784, 32), nn.Identity())
"""


def test_corrected_code_of_an_encoder_and_other_public_images_make_another_audit(recorded, tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(str(tmp_path))
    (tmp_path / "corrected.py").write_text(MINE)
    config = ForeignConfig(str(recorded / "loop"), auxiliary="mnist5k", encoder="corrected:make")
    found = read_uploads(Path(config.uploads))
    public = read_auxiliary(config, found)
    prepared = gather(config, found, None, public)

    def digest(public=public):
        monkeypatch.delitem(sys.modules, "corrected", raising=False)
        importlib.invalidate_caches()
        return fingerprint(config, found, load_encoders(config, found, prepared)[0], public)

    first = digest()
    assert digest() == first  # though the factory seeds nothing
    assert digest(replace(public, labels=public.labels.flip(0))) != first
    (tmp_path / "corrected.py").write_text(MINE.replace("Identity", "ReLU"))  # other code, the same weights
    assert digest() != first
    model, other = (encoding.load_encoder("corrected:make", None, i, (1, 28, 28), 10, 32)[0] for i in (0, 1))
    weights = [made.state_dict()["inner.1.weight"] for made in (model.encoder, other.encoder, model.rebuild())]
    assert not any(torch.equal(weights[i], weights[j]) for i, j in ((0, 1), (0, 2)))


def test_nothing_of_an_audit_of_uploads_uses_a_device(recorded, capsys):
    assert audit(recorded, "loop", "no-device")["run"]["device"] == "cpu"
    assert main(["--uploads", str(recorded / "loop"), "--device", "cuda"]) == 2
    assert "device" in capsys.readouterr().err
    foreign = recorded / "no-device" / "foreign.json"
    kept = json.loads(foreign.read_text())
    foreign.write_text(json.dumps({**kept, "options": {**kept["options"], "device": "auto"}}))
    assert main(["score", str(recorded / "no-device")]) == 0  # a folder of before names one


def test_a_run_folder_names_no_code_to_run(recorded, tmp_path, monkeypatch, capsys):
    monkeypatch.syspath_prepend(str(tmp_path))
    (tmp_path / "evil.py").write_text("from pathlib import Path\nPath(__file__).with_name('ran').touch()\n")
    refusal = r"this run's encoders come from 'evil:make', which is code; run `audit --uploads .* --encoder evil:make`"
    engine, received = tmp_path / "engine", tmp_path / "received"
    shutil.copytree(recorded / "engine", engine)
    models = engine / "clients" / "models.json"
    models.write_text(json.dumps({**json.loads(models.read_text()), "models": ["evil:make#0"] * 3}))
    with pytest.raises(AuditError, match=refusal):
        load_clients(engine)
    assert main(["attack", str(engine)]) == 2
    assert "'evil:make', which is code" in capsys.readouterr().err
    audit(recorded, "loop", str(received))
    kept = json.loads((received / "foreign.json").read_text())
    kept["options"] |= {"encoder": "evil:make", "auxiliary": "mnist5k"}
    (received / "foreign.json").write_text(json.dumps(kept))
    assert main(["score", str(received)]) == 2
    assert "'evil:make', which is code" in capsys.readouterr().err
    assert not (tmp_path / "ran").exists()


def test_dry_run_prints_the_plan_and_clients_with_their_own_numbers(tmp_path, capsys):
    recorder = Recorder(tmp_path / "u", system="mine", form="prototype", classes=10)
    for client in (12, 40):
        recorder.upload(client, 3, representation={1: torch.rand(4), 7: torch.rand(4)})
    assert main(["--uploads", str(tmp_path / "u"), "--dry-run"]) == 0
    out = capsys.readouterr().out
    assert "prototype of 2 clients, 1 rounds, width 4, 10 classes, without broadcasts" in out
    assert "0 is your 12, 1 is your 40" in out
    assert "prototype uploads are not mixed" in out


@pytest.mark.parametrize("more", [[], ["--dry-run"]])
def test_a_folder_that_is_no_truth_is_refused_by_the_dry_run_too(tmp_path, capsys, more):
    recorder = Recorder(tmp_path / "u", system="mine", form="prototype", classes=10)
    recorder.upload(0, 0, representation={1: torch.rand(4)})
    words = ["--uploads", str(tmp_path / "u"), "--truth", str(tmp_path / "u"), "--out", str(tmp_path / "run"), *more]
    assert main(words) == 2
    assert f"--truth {tmp_path / 'u'} holds no images/*.safetensors; record it with" in capsys.readouterr().err
    Truth(tmp_path / "t").images(0, torch.zeros(1, 1, 4, 4), torch.ones(1, dtype=torch.int64))
    assert main([*words[:3], str(tmp_path / "t"), *words[4:]]) == 0


@pytest.mark.parametrize(
    ("named", "options"),
    [
        ("--encoder needs --auxiliary", ["--encoder", ENCODER]),
        ("--weights needs --encoder", ["--weights", "w.safetensors"]),
        ("holds no raw uploads", ["--form", "raw"]),
        ("--truth nowhere is no folder", ["--truth", "nowhere"]),
        ("unknown form 'x'", ["--form", "x"]),
        ("unknown attack 'x'", ["--attacks", "x"]),
        ("--threads is 0, must be at least 1", ["--threads", "0"]),
        ("--encoder is ':f', must be", ["--encoder", ":f", "--auxiliary", "mnist5k"]),
        ("--encoder is '.x:f', must be", ["--encoder", ".x:f", "--auxiliary", "mnist5k"]),
        ("--encoder is 'a:b.c', must be", ["--encoder", "a:b.c", "--auxiliary", "mnist5k"]),
    ],
)
def test_bad_options_are_one_sentence(tmp_path, capsys, named, options):
    Recorder(tmp_path / "u", system="mine", form="prototype", classes=10).upload(
        0, 0, representation={1: torch.rand(4)}
    )
    assert main(["--uploads", str(tmp_path / "u"), "--out", str(tmp_path / "run"), *options]) == 2
    assert named in capsys.readouterr().err
