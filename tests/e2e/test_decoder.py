"""The convolutional decoder inside an audit says, row by row, who decoded."""

from fedre_audit.config import AuditConfig, resolve
from fedre_audit.pipeline import audit
from knowledge_forms.store import read_tensors


def test_choice_is_recorded_and_printed(tmp_path, capsys):
    config = resolve(
        AuditConfig(form="prototype", clients=2, rounds=1, private_images=60, auxiliary_images=80, alpha=10.0,
                    attacks=["decoder"], decoder_steps=2, decoder_clients=1, device="cpu", workers=1)
    )  # fmt: skip
    run = audit(config, tmp_path / "run")
    tensors, meta = read_tensors(run.path / "attacks" / "prototype" / "decoder" / "client-000.safetensors")
    assert sum(meta["decoded_by"].values()) == len(tensors["images"])
    shares = ", ".join(f"{count} by {name}" for name, count in sorted(meta["decoded_by"].items()))
    lines = capsys.readouterr().err.splitlines()
    assert f"decoder, client 0, prototype: rows decoded: {shares}" in lines
    assert any(line.startswith("decoder, client 0, raw: rows decoded: ") for line in lines)
    assert not any("client 1" in line for line in lines if line.startswith("decoder,"))
