"""The figures for a lent GPU: their code runs on the processor here, and says so where there is no device."""

import pytest
import torch

from fedre_audit.bench import cuda


@pytest.mark.skipif(torch.cuda.is_available(), reason="this machine has a CUDA device")
def test_without_a_device_it_says_so(tmp_path, capsys):
    assert cuda.main(["--json", str(tmp_path / "cuda.json")]) == 2
    assert "no CUDA device" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_the_same_code_measures_on_the_processor(monkeypatch):
    monkeypatch.setattr(cuda, "DEVICE", torch.device("cpu"))
    assert cuda.gemm_rate(torch.float32, side=64) > 0
    found = cuda.many_clients(clients=2, images=9, rounds=2)
    assert min(found.values()) > 0
    assert cuda.same_twice("fedavg_cnn", images=9) == {"equal_bytes": True}


@pytest.mark.skipif(not torch.cuda.is_available(), reason="captured steps need a CUDA device")
def test_a_captured_step_is_no_slower_than_an_eager_one():
    rates = cuda.training_rates("fedavg_cnn", 32)
    assert rates["captured"] > rates["eager"]
