"""What makes the engine fast changes nothing it records: workers, resuming, bfloat16 and its rule."""

from itertools import pairwise

import pytest
import torch

from fedre_audit import hardware
from fedre_audit.config import AuditConfig, config_sha256, resolve
from fedre_audit.federation.client import HEAVY, SGDStep, forward_flops, represent_all, run_epochs
from fedre_audit.federation.local import CapturedStep, LocalClient
from fedre_audit.models import build_model
from fedre_audit.seeding import generator
from tests.fedre_audit.federation.small import LABELS, ROUNDS, client_data, federate


def contents(folder):
    return {str(p.relative_to(folder)): p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file()}


class Stop(Exception):
    """Stands for a power cut."""


def test_serial_pooled_and_resumed_runs_give_the_same_bytes(tmp_path):
    def stop(row):
        if row["round"] == 2:
            raise Stop

    also = {"raw": range(ROUNDS)}
    federate(tmp_path / "serial", workers=1, also=also)
    federate(tmp_path / "pooled", workers=3, also=also)
    with pytest.raises(Stop):
        federate(tmp_path / "resumed", workers=2, also=also, on_round=stop)
    federate(tmp_path / "resumed", workers=1, also=also)
    runs = [contents(tmp_path / name) for name in ("serial", "pooled", "resumed")]
    assert len(runs[0]) > 3 * ROUNDS
    assert all(a == b for a, b in pairwise(runs))


def test_absent_clients_stay_as_they_are_in_worker_processes(tmp_path):
    federate(tmp_path / "serial", workers=1, participation=0.5)
    federate(tmp_path / "pooled", workers=2, participation=0.5)
    assert contents(tmp_path / "serial") == contents(tmp_path / "pooled")


def test_workers_and_data_root_are_no_part_of_a_runs_identity():
    base = resolve(AuditConfig(workers=1))
    assert config_sha256(base) == config_sha256(resolve(AuditConfig(workers=7, data_root="/elsewhere")))
    assert config_sha256(base) != config_sha256(resolve(AuditConfig(workers=1, threads=2)))


@pytest.mark.parametrize(
    ("flags", "driver", "device", "expected"),
    [
        ("flags: avx2", False, "auto", "fp32"),
        ("flags: avx2 avx512_bf16", False, "auto", "bf16"),
        ("flags: amx_bf16", False, "cpu", "bf16"),
        ("flags: avx2", True, "cpu", "fp32"),
        ("flags: avx2", True, "auto", "bf16"),
    ],
)
def test_precision_follows_the_hardware_and_is_stored(tmp_path, monkeypatch, flags, driver, device, expected):
    (tmp_path / "cpuinfo").write_text(flags)
    if driver:
        (tmp_path / "nvidia").write_text("driver")
    monkeypatch.setattr(hardware, "CPU_INFO", tmp_path / "cpuinfo")
    monkeypatch.setattr(hardware, "NVIDIA", tmp_path / "nvidia")
    assert resolve(AuditConfig(device=device)).precision == expected
    assert resolve(AuditConfig(device=device, precision="fp32")).precision == "fp32"


def test_workers_are_one_a_core_and_one_where_forking_cannot_be(monkeypatch):
    monkeypatch.setattr(hardware, "cores", lambda: 4)
    monkeypatch.setattr(hardware, "has_nvidia", lambda: False)
    assert [hardware.choose_workers(clients, 1) for clients in (1, 3, 10)] == [1, 3, 4]
    assert hardware.choose_workers(10, 2) == 1
    monkeypatch.setattr(hardware, "has_nvidia", lambda: True)
    assert hardware.choose_workers(10, 1) == 1


def test_only_heavy_models_without_depthwise_convolutions_compute_in_bf16():
    config = AuditConfig(precision="bf16", lr=0.06)
    images = torch.zeros(2, 3, 32, 32, dtype=torch.uint8)
    for name, heavy, gains in (
        ("small_cnn", False, False), ("fedavg_cnn", True, True), ("mobilenet_v2", True, False)
    ):  # fmt: skip
        model = build_model(name, (3, 32, 32), 10, 64, seed=0)
        data = client_data(0, LABELS[0])
        client = LocalClient(
            0, model, data.__class__(images, torch.zeros(2).long(), data.ids[:2], images, data.labels[:2]), config
        )
        assert (forward_flops(model) >= HEAVY) is heavy
        assert client.bf16 is gains


def test_forward_flops_are_the_arithmetic_of_the_plain_cnn():
    # conv 3->32 k5 to 28x28, conv 32->64 k5 to 10x10, 1600->512, head 512->10; a multiply-add counts two.
    expected = 2 * (28 * 28 * 32 * 75 + 10 * 10 * 64 * 800 + 1600 * 512 + 512 * 10)
    assert forward_flops(build_model("fedavg_cnn", (3, 32, 32), 10, 512, seed=0)) == expected


def test_bf16_training_stays_near_fp32_and_keeps_float32_weights():
    draw = generator(0, "images")
    images = torch.randint(0, 256, (48, 1, 16, 16), generator=draw, dtype=torch.uint8)
    labels = torch.arange(48) % 3
    losses, features = {}, {}
    for bf16 in (False, True):
        model = build_model("fedavg_cnn", (1, 16, 16), 3, 32, seed=0).to(memory_format=torch.channels_last)
        step = SGDStep(model, images, labels, lr=0.05, bf16=bf16)
        losses[bf16] = run_epochs(
            step, model, 48, epochs=3, batch_size=8, shuffle=True, generator=generator(0, "loader")
        )  # fmt: skip
        features[bf16] = represent_all(model, images, bf16=bf16)
        assert {p.dtype for p in model.parameters()} == {torch.float32}
        assert all(p.grad is None for p in model.parameters())
        assert features[bf16].dtype == torch.float32
    assert not torch.equal(features[True], features[False])  # bfloat16 was used at all
    torch.testing.assert_close(losses[True], losses[False], rtol=0.02, atol=0)
    gap = (features[True] - features[False]).norm() / features[False].norm()
    assert gap < 0.05


@pytest.mark.skipif(not torch.cuda.is_available(), reason="captured steps need a CUDA device")
def test_captured_steps_train_like_eager_ones():
    images = torch.randint(0, 256, (40, 1, 16, 16), generator=generator(0, "images"), dtype=torch.uint8).cuda()
    labels = (torch.arange(40) % 3).cuda()
    results = []
    for wrap in (lambda step: step, CapturedStep):
        model = build_model("fedavg_cnn", (1, 16, 16), 3, 32, seed=0).cuda()
        run_epochs(
            wrap(SGDStep(model, images, labels, lr=0.05)), model, 40,
            epochs=4, batch_size=16, shuffle=True, generator=generator(0, "loader"),
        )  # fmt: skip
        results.append(model.classifier.weight.detach())
    torch.testing.assert_close(*results)
