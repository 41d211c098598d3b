"""Systems by their own form, participation, edge clients, and the mechanisms on real images."""

import json

import numpy as np
import pytest
import torch
from torch.nn import functional as F

from fedre_audit.audit.truth import read_truth
from fedre_audit.config import OWN_SYSTEM, AuditConfig, resolve
from fedre_audit.data.partition import practical, split_train_test
from fedre_audit.federation.client import represent_all, train_local
from fedre_audit.federation.engine import collapsed, last_rounds, participants
from fedre_audit.federation.history import History, read_history
from fedre_audit.federation.recorder import LocalState, Recorder, make_upload
from fedre_audit.federation.server import server_step
from fedre_audit.federation.systems import SYSTEMS
from fedre_audit.federation.view import read_view
from fedre_audit.models import build_clients, load_clients
from fedre_audit.seeding import generator
from fedre_audit.stages.prepare import prepare
from knowledge_forms.base import FORMS, Classifier
from knowledge_forms.entangled import LAWS, MECHANISMS, EntangledRepresentation
from knowledge_forms.errors import AuditError
from knowledge_forms.traffic import count_traffic
from tests.fedre_audit.federation.small import CLASSES, LABELS, SHAPE, WIDTH, client_data, federate


@pytest.mark.parametrize(("form", "system"), OWN_SYSTEM.items())
def test_own_system_learns_from_its_own_form(form, system, tmp_path):
    assert resolve(AuditConfig(form=form, own_system=True)).system == system
    history = federate(tmp_path, form=form, own_system=True)
    view = read_view(tmp_path, form)
    assert view.system == system == SYSTEMS[system].name
    assert not torch.equal(view.classifiers[0].weight, view.classifiers[1].weight)
    assert all(row["server_loss"] > 0 for row in history.rows)
    assert history.rows[0]["traffic"]["broadcast_scalars"] == 4 * (WIDTH + 1) * CLASSES


def test_fedgh_takes_mean_steps_over_shuffled_prototypes(tmp_path):
    federate(tmp_path, form="prototype", own_system=True, rounds=2)
    view = read_view(tmp_path, "prototype")
    r = torch.cat([u.representation for u in view.uploads if u.round == 0])
    y = torch.cat([u.label_encoding for u in view.uploads if u.round == 0])
    weight, bias = (t.clone().requires_grad_() for t in (view.classifiers[0].weight, view.classifiers[0].bias))
    optimiser = torch.optim.SGD([weight, bias], lr=0.01)
    for index in torch.randperm(len(r), generator=generator(0, "server", round=0)).split(4):
        optimiser.zero_grad()
        F.cross_entropy(F.linear(r[index], weight, bias), y[index].argmax(1)).backward()
        optimiser.step()
    torch.testing.assert_close(view.classifiers[1].weight, weight.detach(), rtol=1e-5, atol=1e-6)


def test_server_epochs_are_passes():
    start = Classifier(torch.zeros(2, 3), torch.zeros(2))
    r, y = torch.randn(5, 3, generator=torch.Generator().manual_seed(0)), torch.eye(2)[[0, 1, 1, 0, 1]]
    once, _ = server_step(start, r, y, lr=0.1)
    twice, _ = server_step(once, r, y, lr=0.1)
    both, _ = server_step(start, r, y, lr=0.1, epochs=2)
    assert torch.equal(both.weight, twice.weight)


# --- participation ---


def test_absent_clients_neither_train_nor_upload(tmp_path):
    config = resolve(AuditConfig(clients=4, rounds=6, participation=0.5))
    rounds = [participants(4, config, t) for t in range(6)]
    assert all(len(present) == 2 for present in rounds)
    assert len({tuple(present) for present in rounds}) > 1
    history = federate(tmp_path, rounds=6, participation=0.5, also={"raw": last_rounds(4, config)})
    view, raw = read_view(tmp_path, "entangled"), read_view(tmp_path, "raw")
    assert {(u.round, u.client) for u in view.uploads} == {(t, k) for t in range(6) for k in rounds[t]}
    for row, present in zip(history.rows, rounds, strict=True):
        assert row["participants"] == present
        assert [k for k, loss in enumerate(row["train_loss"]) if loss is not None] == present
    for client in view.clients:  # the saved model is the one that made the newest upload
        model, newest = load_clients(tmp_path)[client], raw.client(client).latest
        assert newest.round == view.client(client).latest.round
        again = represent_all(model, client_data(client, LABELS[client]).images)
        torch.testing.assert_close(again, newest.representation, atol=1e-5, rtol=0)


def test_a_hundred_clients_at_ten_percent(tmp_path):
    labels = [LABELS[k % 4] for k in range(100)]
    history = federate(tmp_path, labels, rounds=1, participation=0.1)
    assert [len(row["participants"]) for row in history.rows] == [10]
    assert history.rows[0]["traffic"]["upload_scalars_published_count"] == 10 * WIDTH
    assert history.rows[0]["traffic"]["broadcast_scalars"] == 100 * (WIDTH + 1) * CLASSES


@pytest.mark.parametrize("share", [0.0, -1.0, 1.5, float("nan")])
def test_participation_is_a_share(share):
    with pytest.raises(AuditError, match="--participation"):
        resolve(AuditConfig(participation=share))


# --- the released loader ---


def test_the_released_loader_drops_the_tail_everywhere(tmp_path):
    labels = [own for own in LABELS if len(own) >= 4]
    federate(tmp_path, labels, released_loader=True, rounds=1)
    truth = read_truth(tmp_path, "entangled")
    for client, own in enumerate(labels):
        assert truth[client, 0].sample_ids.tolist() == [100 * client + i for i in range(len(own) // 4 * 4)]
    with pytest.raises(AuditError, match=r"no images to train on at client 3 .*lower --batch_size"):
        federate(tmp_path / "small", released_loader=True, rounds=1)


# --- edge clients ---


def test_a_collapsed_encoder_is_flagged_and_training_goes_on(tmp_path):
    models = build_clients("small", 4, SHAPE, CLASSES, WIDTH, 0)
    last = models[2].encoder.extractor
    models[2].encoder.extractor = torch.nn.Sequential(last, torch.nn.Hardtanh(1e9, 1e9 + 1))  # answers 1e9 to all
    history = federate(tmp_path, models=models, rounds=2)
    assert [row["collapsed"] for row in history.rows] == [[2], [2]]
    assert read_history(tmp_path).collapsed() == [2]
    assert len(read_view(tmp_path, "entangled").client(2).uploads) == 2


def test_collapse_is_about_several_images():
    assert not collapsed(torch.ones(1, 4))
    assert collapsed(torch.zeros(2, 4))
    assert collapsed(torch.full((3, 4), 7.0))
    assert not collapsed(torch.tensor([[1.0, 2.0], [1.0, 2.001]]))


@pytest.mark.parametrize("weights", ["per_round", "fixed"])
def test_a_class_set_that_changes_between_rounds(weights):
    form = EntangledRepresentation(weights=weights)
    encodings = []
    for round_, labels in enumerate([[0, 1, 1, 2], [1, 2, 2], [3, 1, 2]]):
        z = torch.randn(len(labels), 5, generator=torch.Generator().manual_seed(round_))
        state = LocalState(0, round_, torch.arange(len(labels)), torch.tensor(labels), z)
        upload, mixing = make_upload(form, state, CLASSES, seed=0)
        assert (upload.label_encoding[0] > 0).nonzero().flatten().tolist() == sorted(set(labels))
        torch.testing.assert_close(mixing.apply(z), upload.representation)
        encodings.append(upload.label_encoding[0])
    ratios = [float(e[1] / e[2]) for e in encodings]
    assert (max(ratios) / min(ratios) < 1 + 1e-5) == (weights == "fixed")


def test_fixed_weights_make_every_round_alike_and_clients_differ(tmp_path):
    federate(tmp_path, weights="fixed")
    view = read_view(tmp_path, "entangled")
    for client in (0, 2):
        rounds = [upload.label_encoding for upload in view.client(client).uploads]
        assert all(torch.equal(rounds[0], other) for other in rounds)
    assert not torch.equal(view.client(0).latest.label_encoding, view.client(2).latest.label_encoding)


# --- the diary ---


def test_a_torn_last_line_is_left_out(tmp_path):
    history = History()
    for round_ in range(3):
        history.append(tmp_path, {"round": round_, "text": "x" * 50})
    path = tmp_path / "history.jsonl"
    whole = path.read_bytes()
    path.write_bytes(whole[:-10])
    assert read_history(tmp_path).rows == [json.loads(line) for line in whole.splitlines()[:2]]
    path.write_bytes(whole)
    assert len(read_history(tmp_path).rows) == 3


# --- real images: every mechanism, law and mode equals its definition, from recorded truth ---


@pytest.fixture(scope="module")
def digits():
    """Two rounds of two clients on mnist5k: the data set, and each client's state after each round."""
    prepared = prepare(resolve(AuditConfig(clients=2, private_images=160, auxiliary_images=10)))
    models = build_clients("small", 2, prepared.data.shape, 10, 64, 0)
    rounds = []
    for round_ in range(2):
        states = []
        for client, (model, own) in enumerate(zip(models, prepared.client_data(), strict=True)):
            train_local(model, own.images, own.labels, epochs=1, lr=0.06, batch_size=32, shuffle=True,
                        generator=generator(0, "loader", round=round_, client=client))  # fmt: skip
            states.append(LocalState(client, round_, own.ids, own.labels, represent_all(model, own.images)))
        rounds.append(states)
    return prepared.data, rounds


@pytest.mark.parametrize("weights", ["per_round", "fixed"])
@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_uploads_on_digits_equal_their_definition(digits, mechanism, law, weights, tmp_path):
    data, rounds = digits
    form = EntangledRepresentation(mechanism=mechanism, law=law, weights=weights)
    recorder = Recorder(run_dir=tmp_path, system="fedre", form=form, num_classes=10, feature_width=64, seed=0)
    for round_, states in enumerate(rounds):
        recorder.record(round_, states, None)
    view, truth = read_view(tmp_path, "entangled"), read_truth(tmp_path, "entangled")
    assert view.mechanism == mechanism
    for upload in view.uploads:
        true, z = truth[upload.client, upload.round], rounds[upload.round][upload.client].representations
        assert true.weight.sum() == pytest.approx(1, abs=1e-6)
        torch.testing.assert_close(upload.representation[0], true.weight @ z, atol=1e-5, rtol=0)
        shares = torch.zeros(10).index_add_(0, data.labels[true.sample_ids], true.weight)
        torch.testing.assert_close(upload.label_encoding[0], shares, atol=1e-6, rtol=0)
        if MECHANISMS[mechanism].items == "prototypes":
            by_class = upload.label_encoding[0, true.classes] @ true.prototypes
            torch.testing.assert_close(upload.representation[0], by_class, atol=1e-5, rtol=0)
    same = [torch.equal(view.client(k).uploads[0].label_encoding, view.client(k).latest.label_encoding) for k in (0, 1)]
    if weights == "fixed" or MECHANISMS[mechanism].weighting == "equal":
        assert all(same)
    elif MECHANISMS[mechanism].weighting == "random":
        assert not any(same)


# --- traffic of the published setting: CIFAR-100, practical partition, ten clients, d = 512 ---


def test_traffic_of_the_published_setting():
    classes, width = 100, 512
    labels = np.repeat(np.arange(classes), 600)
    rng = np.random.RandomState(0)
    parts = practical(labels, 10, alpha=0.1, num_classes=classes, rng=rng)
    train = [labels[ids] for ids, _ in split_train_test(parts, labels, rng)]
    assert sum(len(own) for own in train) == 44_996
    server = Classifier(torch.zeros(classes, width), torch.zeros(classes))
    expected = {  # published count, honest count, in scalars
        "raw": (23_037_952, 23_082_948),
        "prototype": (257_024, 257_526),
        "entangled": (5_120, 6_120),
    }
    for form, (published, honest) in expected.items():
        sent = [0, 0]
        for client, own in enumerate(train):
            z = torch.zeros(1).expand(len(own), width)  # shapes alone decide
            state = LocalState(client, 0, torch.arange(len(own)), torch.from_numpy(own), z)
            upload, _ = make_upload(FORMS[form](), state, classes, seed=0)
            traffic = count_traffic([upload], server, 1)
            sent = [sent[0] + traffic.upload_scalars_published_count, sent[1] + traffic.upload_scalars]
            assert traffic.broadcast_scalars == (width + 1) * classes
            assert traffic.bytes == 4 * (traffic.upload_scalars + traffic.broadcast_scalars)
        assert sent == [published, honest], form
