"""Comparing forms: one training for all, the same as single audits, differences paired by client."""

import csv
import json
import shutil
from collections import Counter

import numpy as np
import pytest
import torch
from scipy import stats

from attacks.base import ATTACKS
from fedre_audit import plan
from fedre_audit.cli import main
from fedre_audit.commands.compare import table
from fedre_audit.comparison import arms_of, compare, make_lowering, train_arms
from fedre_audit.config import AuditConfig
from fedre_audit.federation.recorder import Recorder
from fedre_audit.federation.view import read_view
from fedre_audit.plan import make_plan
from fedre_audit.stages import score
from knowledge_forms.class_means import class_means
from knowledge_forms.errors import AuditError
from tests.browser.pages import comparison

OPTIONS = {"clients": 5, "rounds": 2, "private_images": 150, "auxiliary_images": 150, "attacks": ["ridge"]}
FORMS = ["raw", "prototype", "entangled:RAP"]


@pytest.fixture(scope="module")
def compared(tmp_path_factory):
    return compare(out=tmp_path_factory.mktemp("runs") / "compared", forms=FORMS, **OPTIONS)


def test_every_arm_is_a_run_of_its_own_on_the_same_clients_and_attackers(compared):
    made = compared.comparison
    assert [arm["name"] for arm in made["arms"]] == FORMS
    assert len({json.dumps(arm["accuracy"]) for arm in made["arms"]}) == 1
    assert [arm["traffic"]["upload_scalars"] for arm in made["arms"]][2:] == [5 * 522]
    for arm in made["arms"]:
        assert (compared.path / arm["path"] / "report.html").is_file()
        assert arm["rows"]
    truth = [sorted(p.name for p in (compared.path / arm["path"] / "truth").iterdir()) for arm in made["arms"]]
    assert truth[0] == ["raw"]
    assert truth[2] == ["entangled", "raw"]


def test_the_page_of_an_arm_names_the_command_of_the_whole_comparison(compared):
    command = compared.comparison["run"]["command"]
    assert command.endswith("--forms raw,prototype,entangled:RAP")
    for arm in ("raw", "prototype"):
        scores = json.loads((compared.path / "arms" / arm / "scores.json").read_text())
        assert scores["run"]["command"] == command


def test_all_forms_come_from_one_and_the_same_training(compared):
    views = {name: read_view(compared.path / "arms" / name.replace(":", "-"), name.split(":")[0]) for name in FORMS}
    for raw, prototypes, mixed in zip(*(views[name].uploads for name in FORMS[:3]), strict=True):
        means, counts = class_means(raw.representation, raw.label_encoding.argmax(1), 10)
        torch.testing.assert_close(prototypes.representation, means[counts > 0], atol=1e-5, rtol=0)
        torch.testing.assert_close(mixed.representation, mixed.label_encoding @ means, atol=1e-5, rtol=0)


@pytest.mark.parametrize("form", ["raw", "prototype", "entangled"])
def test_an_arm_scores_as_a_single_audit_of_its_form_does(compared, tmp_path, form):
    words = ["--form", form, "--out", str(tmp_path / "single"), "--quiet"]
    for key, value in OPTIONS.items():
        words += ["--" + key.replace("_", "-"), ",".join(value) if isinstance(value, list) else str(value)]
    assert main(words) in (0, 3)
    single = json.loads((tmp_path / "single" / "scores.json").read_text())
    folder = compared.path / "arms" / {"entangled": "entangled-RAP"}.get(form, form)
    arm = json.loads((folder / "scores.json").read_text())
    for part in single.keys() - {"run", "volatile"}:
        assert single[part] == arm[part], part
    for answers in (tmp_path / "single").rglob("attacks/**/*.safetensors"):
        assert answers.read_bytes() == (folder / answers.relative_to(tmp_path / "single")).read_bytes()


def test_what_is_the_same_in_every_arm_is_made_once(tmp_path, monkeypatch):
    made = Counter()

    def counted(owner, name):
        kept = getattr(owner, name)

        def call(*args, **options):
            made[name] += 1
            return kept(*args, **options)

        monkeypatch.setattr(owner, name, call)

    counted(score, "train_evaluator")
    counted(score, "achievable")
    counted(ATTACKS["ridge"], "_fit")
    few = OPTIONS | {"clients": 4, "private_images": 100, "curves": ["rounds", "auxiliary"], "workers": 1}
    compare(out=tmp_path / "compared", forms=FORMS, **few)
    ceiling = [tmp_path / "compared" / "arms" / name / "attacks" / "raw" for name in ("raw", "prototype")]
    assert {path.relative_to(ceiling[0]) for path in ceiling[0].rglob("*")} == {
        path.relative_to(ceiling[1]) for path in ceiling[1].rglob("*")
    }
    assert made["train_evaluator"] == made["achievable"] == 1
    planted = 4  # fits of the competence checks, made for entangled (with unmixing) and for the other arms
    assert made["_fit"] == 4 * (1 + 2) + 2 * planted  # clients, with all public images and with two shares of them


def test_the_plan_knows_that_a_decoder_is_trained_once_for_all_arms(monkeypatch):
    monkeypatch.setattr(plan, "busy", lambda: 2.0)  # the load of the machine moves between two plans

    def seconds(attacks, arms, **options):
        return make_plan(AuditConfig(**OPTIONS | {"attacks": attacks} | options), arms=arms).stages["attack"]

    assert seconds(["decoder"], 9) == seconds(["decoder"], 1)
    assert seconds(["ridge"], 9) == pytest.approx(9 * seconds(["ridge"], 1))
    assert seconds(["decoder"], 9, own_system=True) == pytest.approx(9 * seconds(["decoder"], 1))


def test_the_plan_counts_trainings_and_seeds(monkeypatch):
    monkeypatch.setattr(plan, "busy", lambda: 1.0)
    monkeypatch.setattr(plan, "seconds_per_image", lambda *_: 1e-3)
    shared, own = (make_plan(AuditConfig(**OPTIONS, own_system=own), arms=3).stages for own in (False, True))
    assert own["train and record"] == pytest.approx(3 * shared["train and record"])
    one, three = (make_plan(AuditConfig(**OPTIONS, seeds=seeds)) for seeds in ([7], [7, 8, 9]))
    assert three.seconds == pytest.approx(3 * one.seconds)
    assert "3 seeds" in three.line()
    assert "seeds" not in one.line()


def test_the_plan_counts_those_who_take_part_and_what_is_sent(monkeypatch):
    monkeypatch.setattr(plan, "seconds_per_image", lambda *_: 1e-3)
    whole, some = (make_plan(AuditConfig(**OPTIONS, participation=share)) for share in (1.0, 0.4))
    assert some.traffic["entangled"] == 0.4 * whole.traffic["entangled"]
    assert some.broadcast == whole.broadcast  # every client is sent the head
    assert 0.4 < some.stages["train and record"] / whole.stages["train and record"] < 0.7
    local = make_plan(AuditConfig(**OPTIONS | {"form": "raw"}, system="local"))
    assert (set(local.traffic.values()), local.broadcast) == ({0}, 0)
    assert "none; raw is recorded to see what it would leak" in local.text()


def test_the_plan_can_time_batches_of_one_image():
    made = make_plan(AuditConfig(**OPTIONS | {"family": "HtFE-img-2", "clients": 2}, batch_size=1))
    assert made.seconds > 0


def test_differences_are_paired_by_client(compared):
    def by_client(arm):
        values = {}
        wanted = {"form": arm.split("-")[0], "attack": "ridge", "stream": "1", "target": "members", "metric": "psnr"}
        with (compared.path / "arms" / arm / "scores.csv").open() as stream:
            for row in csv.DictReader(stream):
                if all(row[key] == wish for key, wish in wanted.items()):
                    rows = values.setdefault(int(row["client"]), {})
                    rows.setdefault(int(row["row"]), []).append(float(row["value"]))
        return {client: np.mean([np.mean(v) for v in rows.values()]) for client, rows in values.items()}

    mine, other = by_client("prototype"), by_client("raw")
    apart = np.array([mine[client] - other[client] for client in sorted(mine)])
    half = stats.t.ppf(0.975, len(apart) - 1) * stats.sem(apart)
    wanted = ("prototype", "raw", "ridge", "psnr")
    differences = compared.comparison["differences"]
    found = next(d for d in differences if (d["arm"], d["reference"], d["attack"], d["metric"]) == wanted)
    assert found["value"] == pytest.approx(apart.mean(), abs=1e-6)
    assert found["ci95"] == pytest.approx([apart.mean() - half, apart.mean() + half], abs=1e-6)
    assert found["n_clusters"] == 5
    arms = {arm["name"]: arm for arm in compared.comparison["arms"]}
    wanted_row = ("ridge", "psnr", "members", 1)
    rows = arms["raw"]["rows"]
    row = next(row for row in rows if (row["attack"], row["metric"], row["target"], row["stream"]) == wanted_row)
    assert np.mean(list(other.values())) == pytest.approx(row["value"], abs=1e-4)


def test_what_would_lower_the_leak_is_the_other_arms_against_the_one_that_trained(compared):
    made = compared.comparison
    assert made["trained_arm"] == "entangled:RAP"
    level = {arm["name"]: arm["verdict"]["level"] for arm in made["arms"]}
    assert level["entangled:RAP"] == "NOT_ASSESSED"  # two rounds cannot be unmixed, and that is said
    assert level[made["reference_arm"]] != "NOT_ASSESSED"
    assert all("entangled" not in entry["change"] for entry in made["lowering"])
    assert (
        "Left out, because what was not assessed supports no statement: entangled:RAP." in compared.report.read_text()
    )
    arms = [{**arm, "verdict": {"level": "CLASS_LEVEL"}} for arm in made["arms"]]
    entries = {
        (entry["change"], entry["metric"]): entry for entry in make_lowering(arms, compared.path, "entangled:RAP")
    }
    found = entries["Send every representation (raw)", "psnr"]
    wanted = ("raw", "entangled:RAP", "ridge", "psnr")
    paired = next(
        d for d in made["differences"] if (d["arm"], d["reference"], d["attack"], d["metric"]) == wanted
    )  # of one round each
    assert found["difference"] == pytest.approx(paired["value"], abs=1e-9)
    assert found["ci95"] == pytest.approx(paired["ci95"], abs=1e-9)
    assert found["value"] - found["before"] == pytest.approx(found["difference"], abs=1e-9)
    row = next(r for r in arms[0]["rows"] if (r["attack"], r["metric"], r["target"]) == ("ridge", "psnr", "members"))
    assert found["value"] == pytest.approx(row["value"], abs=1e-4)
    assert found["difference"] > 0


def test_what_is_complete_is_not_run_again_and_other_forms_are_refused(compared):
    before = {path: path.stat().st_mtime_ns for path in compared.path.rglob("scores.json")}
    again = compare(out=compared.path, forms=FORMS, **OPTIONS)
    assert {path: path.stat().st_mtime_ns for path in again.path.rglob("scores.json")} == before
    with pytest.raises(AuditError, match="trained for other --forms"):
        compare(out=compared.path, forms=[*FORMS, "entangled:VAP"], **OPTIONS)


def test_forms_of_two_trainings_are_never_mixed(compared, tmp_path):
    out = tmp_path / "compared"
    shutil.copytree(compared.path, out)
    shutil.rmtree(out / "arms" / "entangled-RAP")  # what `--forms raw,prototype` leaves: another arm trained for all
    with pytest.raises(AuditError, match="trained for other --forms"):
        compare(out=out, forms=["raw", "entangled:RAP"], **OPTIONS)


def trained(forms, root):
    base = AuditConfig(**OPTIONS | {"rounds": 3, "workers": 1})
    return train_arms(arms_of(base, forms, own_system=False), root, quiet=True)


def test_an_interrupted_training_goes_on_with_the_same_forms_alone(tmp_path, monkeypatch):
    record = Recorder.record

    def stop(self, round_, *rest):
        if round_ == 2:
            raise KeyboardInterrupt
        return record(self, round_, *rest)

    with monkeypatch.context() as patched:
        patched.setattr(Recorder, "record", stop)
        with pytest.raises(KeyboardInterrupt):
            trained(["raw", "entangled:RAP"], tmp_path)
    before = sorted(tmp_path.rglob("*"))
    for forms in (["raw", "entangled:RAP", "entangled:RAR"], ["raw", "entangled:RSR"], ["prototype", "entangled:RAP"]):
        with pytest.raises(AuditError, match=r"trained for other --forms \(entangled:RAP,raw, by entangled:RAP\)"):
            trained(forms, tmp_path)
    assert sorted(tmp_path.rglob("*")) == before
    runs = trained(["entangled:RAP", "raw"], tmp_path)
    for run in runs.values():
        assert len(list((run.path / "uploads" / run.config.form).iterdir())) == 3


def test_a_finished_training_serves_fewer_forms_but_no_other_trainer(tmp_path):
    trained(["raw", "prototype", "entangled:RAP"], tmp_path)
    assert set(trained(["raw", "entangled:RAP"], tmp_path)) == {"raw", "entangled:RAP"}
    with pytest.raises(AuditError, match="by entangled:RAP"):
        trained(["raw", "prototype"], tmp_path)


@pytest.mark.parametrize(
    ("forms", "needle"),
    [
        (["raw"], "at least two"),
        (["raw", "raw"], "at least two different"),
        (["raw:RAP", "prototype"], "names 'raw:RAP'"),
        (["entangled:XYZ", "raw"], "MECHANISM one of"),
        (["raw", "foo"], r"names 'foo'; write entangled, prototype, raw, entangled:MECHANISM or .* one of RAP"),
    ],
)
def test_forms_that_cannot_be_compared_are_refused(forms, needle):
    with pytest.raises(AuditError, match=needle):
        arms_of(AuditConfig(), forms, False)


def test_an_unknown_form_leaves_nothing_behind(tmp_path, capsys):
    for more in ([], ["--dry-run"]):
        assert main(["compare", "--forms", "raw,foo", "--rounds", "3", "--out", str(tmp_path / "run"), *more]) == 2
        assert "--forms names 'foo'" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_every_arm_is_checked_not_the_one_alone_that_trains():
    with pytest.raises(AuditError, match="unknown mechanism 'XYZ'"):
        arms_of(AuditConfig(mechanism="XYZ"), ["entangled:RAP", "entangled"], False)


def test_each_form_by_its_own_system():
    arms = arms_of(AuditConfig(), ["raw", "prototype", "entangled:RAP"], True)
    assert [config.system for config in arms.values()] == ["fedallrep", "fedgh", "fedre"]


def test_the_table_shows_the_numbers_of_the_page_and_names_a_smaller_group_that_decided():
    made = comparison(("raw", "prototype"))
    made["arms"][0]["verdict"] = {**made["arms"][0]["verdict"], "worst": {"attack": "ridge", "slice": "n1"}}
    made["arms"][1]["rows"] = []
    made["arms"][1]["verdict"] = {**made["arms"][1]["verdict"], "worst": None}
    head, raw, prototype = table(made["arms"])
    assert "over all classes" in head
    row = made["arms"][0]["rows"][0]
    low, high = row["ci95"]
    assert f"floor {row['floor']['best']:.2f} · value {row['value']:.2f} [95 % {low:.2f} to " in raw
    assert f" to {high:.2f}] · ceiling {row['ceiling']:.2f}" in raw
    assert raw.endswith("(ridge, one round); decided by classes of 1 image")
    row |= {"n_clusters": 1, "status": "not_validated", "ci95": None}
    few = table(made["arms"])[1]
    assert f"value {row['value']:.2f} [no interval] · ceiling {row['ceiling']:.2f}" in few
    assert few.endswith("(ridge, one round, ? not validated; 1 client only); decided by classes of 1 image")
    assert prototype.endswith("no attack was scored")
