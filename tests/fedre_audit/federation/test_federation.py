"""The whole loop on tiny clients: order, records, truth, traffic, seeds, resume."""

import errno
import json
import os
import shutil

import pytest
import torch

from fedre_audit.config import AuditConfig
from fedre_audit.federation import local
from fedre_audit.federation.client import ClientData
from fedre_audit.federation.engine import run_federation
from fedre_audit.federation.history import read_history
from fedre_audit.federation.recorder import Recorder
from fedre_audit.federation.systems import SYSTEMS
from fedre_audit.federation.view import read_view
from fedre_audit.models import ClientModel, build_clients, load_clients
from knowledge_forms.base import FORMS, Mixing, Upload
from knowledge_forms.entangled import EntangledRepresentation
from knowledge_forms.errors import AuditError
from knowledge_forms.prototype import Prototype
from knowledge_forms.raw import Raw
from knowledge_forms.store import read_entries
from tests.fedre_audit.federation.small import CLASSES, LABELS, ROUNDS, SHAPE, WIDTH, client_data, federate

ALL = [client_data(client, own) for client, own in enumerate(LABELS)]


def contents(folder):
    return {str(p.relative_to(folder)): p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file()}


def read_truth(run_dir, form, round_):
    entries, _ = read_entries(run_dir / "truth" / form / f"round-{round_:06d}.safetensors")
    return {client: {k: torch.from_numpy(v) for k, v in named.items()} for (client, _), named in entries.items()}


@pytest.fixture(scope="module")
def run_dir(tmp_path_factory):
    folder = tmp_path_factory.mktemp("run")
    federate(folder, also={"prototype": range(ROUNDS), "raw": {ROUNDS - 1}})
    return folder


def test_forms_are_registered():
    assert {"raw": Raw, "prototype": Prototype, "entangled": EntangledRepresentation}.items() <= dict(
        FORMS.items()
    ).items()


def test_upload_is_the_weighted_sum_of_the_true_prototypes(run_dir):
    view = read_view(run_dir, "entangled")
    assert len(view.uploads) == ROUNDS * len(LABELS)
    for upload in view.uploads:
        truth = read_truth(run_dir, "entangled", upload.round)[upload.client]
        weights = upload.label_encoding[0, truth["classes"]]
        torch.testing.assert_close(upload.representation[0], weights @ truth["prototypes"], rtol=0, atol=1e-5)
        assert weights.sum() == pytest.approx(1, abs=1e-6)


def test_truth_mixing_rebuilds_the_upload_from_raw_representations(run_dir):
    last = ROUNDS - 1
    raw = {upload.client: upload.representation for upload in read_view(run_dir, "raw").uploads}
    for form in ("entangled", "prototype"):
        truth = read_truth(run_dir, form, last)
        for upload in read_view(run_dir, form).uploads:
            if upload.round == last:
                own = truth[upload.client]
                mixing = Mixing(own["row"], own["weight"], len(upload.representation))
                torch.testing.assert_close(mixing.apply(raw[upload.client]), upload.representation, rtol=0, atol=1e-5)


def test_truth_names_the_samples_and_counts_the_classes(run_dir):
    truth = read_truth(run_dir, "entangled", 0)
    for client, labels in enumerate(LABELS):
        own = truth[client]
        assert own["sample_ids"].tolist() == [100 * client + i for i in range(len(labels))]
        assert own["class_counts"].tolist() == [labels.count(c) for c in range(CLASSES)]
        assert own["classes"].tolist() == sorted(set(labels))


def test_one_class_client_entangles_nothing(run_dir):
    for round_ in range(ROUNDS):
        prototype = read_truth(run_dir, "entangled", round_)[1]["prototypes"]
        upload = next(u for u in read_view(run_dir, "entangled").client(1).uploads if u.round == round_)
        torch.testing.assert_close(upload.representation, prototype, rtol=0, atol=1e-6)


def test_prototype_of_a_one_image_class_is_that_representation(run_dir):
    raw = read_view(run_dir, "raw").client(2).latest
    prototypes = read_view(run_dir, "prototype").client(2).latest
    assert torch.equal(prototypes.representation[0], raw.representation[0])


def test_raw_is_recorded_in_the_last_round_alone(run_dir):
    assert {upload.round for upload in read_view(run_dir, "raw").uploads} == {ROUNDS - 1}


def test_the_view_never_opens_truth(run_dir, tmp_path):
    copy = tmp_path / "copy"
    shutil.copytree(run_dir, copy)
    shutil.rmtree(copy / "truth")
    ours, theirs = read_view(run_dir, "entangled"), read_view(copy, "entangled")
    assert [(u.client, u.round) for u in ours.uploads] == [(u.client, u.round) for u in theirs.uploads]
    assert all(
        torch.equal(a.representation, b.representation) for a, b in zip(ours.uploads, theirs.uploads, strict=True)
    )
    assert sorted(theirs.classifiers) == list(range(ROUNDS))


def test_recorded_classifier_is_the_server_step_on_the_recorded_uploads(run_dir):
    view = read_view(run_dir, "entangled")
    for round_ in range(ROUNDS - 1):
        uploads = [upload for upload in view.uploads if upload.round == round_]
        r, y = (torch.cat([getattr(u, k) for u in uploads]) for k in ("representation", "label_encoding"))
        old, new = view.classifiers[round_], view.classifiers[round_ + 1]
        gap = (r @ old.weight.T + old.bias).softmax(1) - y
        torch.testing.assert_close(new.weight, old.weight - 0.01 * gap.T @ r, rtol=1e-4, atol=1e-6)


def test_the_first_classifier_is_client_zeros_initial_head(run_dir):
    sent = read_view(run_dir, "entangled").classifiers[0]
    assert torch.equal(sent.weight, build_clients("small", 1, SHAPE, CLASSES, WIDTH, 0)[0].classifier.weight)


def test_saved_clients_made_the_last_uploads(run_dir):
    raw = read_view(run_dir, "raw")
    for client, (model, own) in enumerate(zip(load_clients(run_dir), ALL, strict=True)):
        with torch.no_grad():
            torch.testing.assert_close(model.represent(own.images / 255), raw.client(client).latest.representation)


def test_same_seed_same_bytes_another_seed_differs(run_dir, tmp_path):
    also = {"prototype": range(ROUNDS), "raw": {ROUNDS - 1}}
    federate(tmp_path / "same", also=also)
    federate(tmp_path / "other", seed=1)
    assert contents(tmp_path / "same") == contents(run_dir)
    ours, other = contents(run_dir / "uploads" / "entangled"), contents(tmp_path / "other" / "uploads" / "entangled")
    assert ours.keys() == other.keys()
    assert all(ours[name] != other[name] for name in ours)


def test_the_audited_form_does_not_change_the_trajectory(run_dir, tmp_path):
    federate(tmp_path, form="prototype")
    assert contents(tmp_path / "uploads" / "broadcast") == contents(run_dir / "uploads" / "broadcast")
    assert contents(tmp_path / "uploads" / "prototype") == contents(run_dir / "uploads" / "prototype")


class Stop(Exception):
    """Stands for a power cut."""


@pytest.mark.parametrize("cut", [0, 2])
def test_a_resumed_run_equals_an_uninterrupted_one(run_dir, tmp_path, cut):
    def stop(row):
        if row["round"] == cut:
            raise Stop

    also = {"prototype": range(ROUNDS), "raw": {ROUNDS - 1}}
    with pytest.raises(Stop):
        federate(tmp_path, also=also, on_round=stop)
    seen = []
    federate(tmp_path, also=also, on_round=lambda row: seen.append(row["round"]))
    assert seen == list(range(0 if cut == 0 else 2, ROUNDS))
    assert contents(tmp_path) == contents(run_dir)


@pytest.mark.parametrize("writes", [1, 9, 17, 22])
def test_a_full_disk_is_one_error_and_loses_nothing(run_dir, tmp_path, monkeypatch, writes):
    real, left = os.fsync, iter(range(writes))

    def full(descriptor):
        if next(left, None) is None:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        real(descriptor)

    also = {"prototype": range(ROUNDS), "raw": {ROUNDS - 1}}
    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", full)
        with pytest.raises(AuditError, match=r"cannot write .*No space left on device"):
            federate(tmp_path, also=also)
    federate(tmp_path, also=also)
    assert contents(tmp_path) == contents(run_dir)


def test_a_checkpoint_of_another_configuration_is_refused(run_dir):
    with pytest.raises(AuditError, match="another configuration"):
        federate(run_dir, lr=0.01)


def test_broadcast_off_sends_nothing_and_still_uploads(tmp_path):
    history = federate(tmp_path, broadcast=False)
    view = read_view(tmp_path, "entangled")
    assert view.classifiers == {}
    assert len(view.uploads) == ROUNDS * len(LABELS)
    assert history.rows[-1]["server_loss"] is not None
    assert history.rows[-1]["traffic"]["broadcast_scalars"] == 0


def test_local_sends_nothing_but_the_form_is_recorded(tmp_path):
    history = federate(tmp_path, system="local")
    assert len(read_view(tmp_path, "entangled").uploads) == ROUNDS * len(LABELS)
    assert read_view(tmp_path, "entangled").classifiers == {}
    row = history.rows[-1]
    assert row["server_loss"] is None
    assert row["traffic"] == dict.fromkeys(row["traffic"], 0)


def test_evaluation_comes_after_the_overwrite_and_before_training(tmp_path, monkeypatch):
    events = []
    for name in ("count_correct", "run_epochs", "represent_all"):
        real = getattr(local, name)

        def spy(*args, real=real, name=name, **options):
            model = next(value for value in args if isinstance(value, ClientModel))
            events.append((name, model.classifier.weight.detach().clone()))
            return real(*args, **options)

        monkeypatch.setattr(local, name, spy)
    federate(tmp_path, rounds=2, workers=1)  # a worker process would keep its events to itself
    k = len(LABELS)
    one_round = ["count_correct", "run_epochs", "represent_all"] * k
    assert [name for name, _ in events] == one_round * 2
    sent = read_view(tmp_path, "entangled").classifiers
    for round_ in range(2):
        evaluated = events[round_ * 3 * k : (round_ + 1) * 3 * k : 3]
        assert all(torch.equal(head, sent[round_].weight) for _, head in evaluated)


def test_history_has_both_means_and_traffic(run_dir):
    history = read_history(run_dir)
    row = history.rows[-1]
    each = row["accuracy"]["clients"]
    assert each[3] is None  # no test images
    assert row["accuracy"]["unweighted"] == pytest.approx(sum(each[:3]) / 3)
    assert history.accuracy()["best"]["weighted"] == max(r["accuracy"]["weighted"] for r in history.rows)
    assert row["traffic"]["upload_scalars_published_count"] == len(LABELS) * WIDTH
    assert row["traffic"]["upload_scalars"] == len(LABELS) * (WIDTH + CLASSES)
    assert row["traffic"]["broadcast_scalars"] == len(LABELS) * (WIDTH * CLASSES + CLASSES)
    assert len((run_dir / "history.jsonl").read_text().splitlines()) == ROUNDS == len(history.rows)
    json.dumps(history.rows, allow_nan=False)


def test_fedre_traffic_at_a_hundred_classes(tmp_path, monkeypatch):
    monkeypatch.setattr(local, "run_epochs", lambda *args, **options: torch.zeros(()))
    models = build_clients("small", 10, SHAPE, 100, 512, 0)
    own = ClientData(
        torch.zeros(3, *SHAPE, dtype=torch.uint8), torch.tensor([4, 7, 99]), torch.arange(3),
        torch.zeros(0, *SHAPE, dtype=torch.uint8), torch.empty(0, dtype=torch.int64),
    )  # fmt: skip
    form = FORMS["entangled"]()
    history = run_federation(
        models=models,
        client_data=[own] * 10,
        system=SYSTEMS["fedre"](),
        form=form,
        config=AuditConfig(rounds=1, device="cpu", lr=0.06),
        recorder=Recorder(run_dir=tmp_path, system="fedre", form=form, num_classes=100, feature_width=512, seed=0),
    )
    assert history.rows[0]["traffic"] == {
        "upload_scalars": 6_120,
        "upload_scalars_published_count": 5_120,
        "broadcast_scalars": 513_000,
        "bytes": 4 * 519_120,
    }
    assert history.rows[0]["accuracy"]["weighted"] is None


def test_diverging_training_names_client_and_round(tmp_path):
    with pytest.raises(AuditError, match=r"client \d, round \d: the .* is not finite; lower --lr .*, or --server_lr"):
        federate(tmp_path, lr=1e30)


def test_width_mismatch_is_found_before_anything_is_written(tmp_path):
    models = [build_clients("small", 1, SHAPE, CLASSES, width, 0)[0] for width in (WIDTH, WIDTH + 1)]
    form = FORMS["entangled"]()
    with pytest.raises(AuditError, match=rf"client 1 \(small_cnn\) sends width {WIDTH + 1} .* expects {WIDTH}"):
        run_federation(
            models=models,
            client_data=ALL[:2],
            system=SYSTEMS["fedre"](),
            form=form,
            config=AuditConfig(rounds=1, device="cpu", lr=0.06),
            recorder=Recorder(
                run_dir=tmp_path, system="fedre", form=form, num_classes=CLASSES, feature_width=WIDTH, seed=0
            ),
        )
    assert list(tmp_path.iterdir()) == []


def test_a_mixed_folder_of_uploads_is_refused(run_dir, tmp_path):
    shutil.copytree(run_dir / "uploads", tmp_path / "uploads")
    (tmp_path / "uploads" / "raw" / "round-000000.safetensors").write_bytes(
        (run_dir / "uploads" / "prototype" / "round-000000.safetensors").read_bytes()
    )
    with pytest.raises(AuditError, match="not that of the other files"):
        read_view(tmp_path, "raw")
    assert all(isinstance(u, Upload) for u in read_view(tmp_path, "prototype").uploads)
