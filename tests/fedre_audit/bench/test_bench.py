"""The bench measures what it says: the naive reference is the same federation, rates and shares are of real work."""

import copy
import json
import time

import pytest
import torch
from torch.nn import functional as F

from fedre_audit.bench.__main__ import HEADLINES, SECTIONS, main, table
from fedre_audit.bench.attacks import random_view, unmixing_seconds
from fedre_audit.bench.federation import CLASSES, federate, random_client, training
from fedre_audit.bench.measure import machine_rate, peak_growth_mb, rate, share
from fedre_audit.bench.naive import NaiveFederation
from fedre_audit.federation.client import forward_flops, represent_all
from fedre_audit.models import build_clients, build_model
from knowledge_forms.class_means import class_means

SHAPE = (1, 16, 16)


@pytest.fixture
def naive(tmp_path):
    models = build_clients("fedavg_cnn", 2, SHAPE, CLASSES, 32, 0)
    data = [random_client(20, 6, SHAPE, client) for client in range(2)]
    return NaiveFederation(copy.deepcopy(models), data, tmp_path, batch_size=8, lr=0.05), models, data


def test_the_naive_upload_is_the_weighted_mean_of_the_true_prototypes(naive):
    federation, models, data = naive
    mixed, weights = federation.clients[1].entangle()
    own = data[1].whole_batches(8)  # the public code's loader leaves the tail out
    means, counts = class_means(represent_all(models[1], own.images), own.labels, CLASSES)
    assert sorted(weights) == counts.nonzero().flatten().tolist()
    assert sum(weights.values()) == pytest.approx(1)
    expected = sum(weight * means[label] for label, weight in weights.items())
    torch.testing.assert_close(mixed, expected, rtol=1e-4, atol=1e-5)


def test_a_naive_round_sends_trains_and_moves_the_head(naive):
    federation, _, data = naive
    head = federation.head.weight.detach().clone()
    before = [client._load().state_dict()["encoder.extractor.0.weight"].clone() for client in federation.clients]
    correct = federation.round()
    assert 0 <= correct <= sum(len(own.test_labels) for own in data)
    assert not torch.equal(head, federation.head.weight)
    after = [client._load().state_dict()["encoder.extractor.0.weight"] for client in federation.clients]
    assert all(not torch.equal(a, b) for a, b in zip(before, after, strict=True))


def test_naive_training_lowers_the_loss(naive):
    federation, _, data = naive
    client = federation.clients[0]
    images = data[0].images / 255
    first = F.cross_entropy(client._load().eval()(images), data[0].labels)
    for _ in range(10):
        client.train()
    assert F.cross_entropy(client._load().eval()(images), data[0].labels) < first


def test_rate_counts_units_per_second():
    assert rate(lambda: time.sleep(0.01), 3.0, 0.1) == pytest.approx(300, rel=0.5)


def test_a_step_twice_as_slow_is_half_of_its_ceiling():
    def sleeper(seconds):
        return lambda: (lambda: time.sleep(seconds), 1.0)

    found = share(sleeper(0.02), sleeper(0.01), repeats=3, seconds=0.1)
    assert found["share"] == pytest.approx(0.5, rel=0.4)
    assert found["lowest"] <= found["share"] <= found["highest"]


def test_training_flops_are_three_forward_passes_less_the_first_layers_input():
    _, flops = training("fedavg_cnn", 4, (3, 32, 32))
    forward = forward_flops(build_model("fedavg_cnn", (3, 32, 32), CLASSES, 512, seed=0))
    assert flops == 3 * forward - 2 * 28 * 28 * 32 * 75
    assert machine_rate(training("small_cnn", 4, (1, 12, 12))[0], 0.05) > 0


def test_peak_memory_sees_what_is_held():
    assert peak_growth_mb(lambda: torch.ones(32 * 2**20)) > 100


def test_federation_and_unmixing_run_at_any_size(tmp_path):
    rows = []
    federate(tmp_path, 2, 6, 2, shape=(1, 12, 12), on_round=rows.append, workers=1)
    assert [row["round"] for row in rows] == [0, 1]
    assert len(random_view(3, 4, 2, 8).uploads) == 12
    found = unmixing_seconds(clients=4, rounds=12, classes=3, measured=2)
    assert found["measured_clients"] == 2
    assert found["seconds"] > 0


def test_the_command_writes_sections_headlines_and_the_machine(tmp_path, capsys):
    path = tmp_path / "bench.json"
    assert main(["--json", str(path), "--repeats", "1", "--only", "help_seconds"]) == 0
    found = json.loads(path.read_text())
    assert found["help_seconds"] > 0
    assert found["machine"]["cores"] >= 1
    assert "help_seconds" in capsys.readouterr().out
    assert {section for section, _ in HEADLINES.values()} <= set(SECTIONS)


def test_table_names_nested_values():
    assert [line.split() for line in table("a", {"b": {"c": 1234.5}, "d": 2})] == [["a.b.c", "1,234.5"], ["a.d", "2"]]
