"""`audit import` and `audit export`: arrays only, nothing private."""

import errno
import os
import pickle
import subprocess
import sys
import zipfile
from pathlib import Path

import numpy as np
import pytest
import yaml

from fedre_audit.cli import main
from fedre_audit.figures.fuzz_uploads import Bomb
from fedre_audit.foreign.export import export
from fedre_audit.foreign.npz import import_folder
from knowledge_forms.errors import AuditError
from knowledge_forms.store import read_tensors

ROOT = Path(__file__).resolve().parents[3]


def write_npz(folder: Path, client: int = 0, **arrays: np.ndarray) -> None:
    folder.mkdir(exist_ok=True)
    np.savez(folder / f"{client}.npz", **arrays)


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda pixels: pixels.astype(np.float32) / 127.5 - 1, "[-1,1] mapped to [0,1]"),
        (lambda pixels: pixels.transpose(0, 2, 3, 1), "channels moved to the front"),
        (lambda pixels: pixels / 255, ""),
    ],
)
def test_layouts_and_ranges_of_the_libraries_give_the_same_pixels(tmp_path, make, said):
    pixels = np.random.default_rng(0).integers(0, 256, (5, 3, 6, 4), dtype=np.uint8)
    write_npz(tmp_path / "train", 7, x=make(pixels), y=np.array([0, 1, 2, 1, 0]))
    assert said in import_folder(tmp_path / "train", tmp_path / "out")[0]
    tensors, metadata = read_tensors(tmp_path / "out" / "images" / "client-00007.safetensors")
    np.testing.assert_array_equal(tensors["images"], pixels)
    assert metadata["client"] == 7


def test_a_pickle_bomb_does_not_go_off_and_the_way_out_is_named(tmp_path, capsys):
    write_npz(tmp_path / "train", data=np.array({"x": Bomb(tmp_path / "went-off")}, dtype=object))
    assert main(["import", str(tmp_path / "train"), "--out", str(tmp_path / "out")]) == 2
    assert "convert_pickled_npz.py" in capsys.readouterr().err
    (tmp_path / "train" / "0.npz").write_bytes(pickle.dumps(Bomb(tmp_path / "went-off")))
    assert main(["import", str(tmp_path / "train"), "--out", str(tmp_path / "out")]) == 2
    assert "not a readable .npz" in capsys.readouterr().err
    assert not (tmp_path / "went-off").exists()


def test_the_converter_asks_first_and_gives_plain_arrays(tmp_path):
    pixels = np.zeros((4, 1, 5, 5), np.float32)
    write_npz(tmp_path / "train", data=np.array({"x": pixels, "y": np.arange(4)}, dtype=object))
    command = [sys.executable, str(ROOT / "examples" / "convert_pickled_npz.py")]
    places = [str(tmp_path / "train"), str(tmp_path / "plain")]
    refused = subprocess.run([*command, *places], capture_output=True, text=True)
    assert refused.returncode == 1
    assert "RISK" in refused.stderr
    subprocess.run([*command, "--i-made-these-files", *places], check=True, capture_output=True)
    assert len(import_folder(tmp_path / "plain", tmp_path / "out")) == 1


def test_lying_headers_and_wrong_arrays_are_refused(tmp_path):
    folder = tmp_path / "train"
    for named, arrays in (
        ("runs from -3 to 5", {"x": np.array([-3.0, 5, 0, 0]).reshape(1, 1, 2, 2), "y": np.zeros(1, int)}),
        ("no images", {"x": np.zeros((2, 5)), "y": np.zeros(2, int)}),
        ("must hold x", {"a": np.zeros(1)}),
        ("must be whole numbers", {"x": np.zeros((2, 1, 2, 2)), "y": np.zeros((2, 3))}),
    ):
        write_npz(folder, **arrays)
        with pytest.raises(AuditError, match=named):
            import_folder(folder, tmp_path / "out")
    head = b"\x93NUMPY\x01\x00" + (118).to_bytes(2, "little")
    head += str({"descr": "<f8", "fortran_order": False, "shape": (10**15,)}).encode().ljust(117) + b"\n"
    with zipfile.ZipFile(folder / "0.npz", "w") as archive:
        archive.writestr("x.npy", head + b"\x00" * 64)
    with pytest.raises(AuditError, match="not what it holds"):
        import_folder(folder, tmp_path / "out")
    with pytest.raises(AuditError, match=r"no 0\.npz"):
        import_folder(tmp_path / "nothing", tmp_path / "out")


def test_export_leaves_everything_private_behind(tmp_path, capsys):
    run, out = tmp_path / "run", tmp_path / "shared"
    (run / "truth").mkdir(parents=True)
    config = {"form": "prototype", "dataset": "imagefolder:/home/me/secret", "data_root": "/home/me", "seed": 77}
    (run / "config.yaml").write_text(yaml.safe_dump(config))
    from tests.knowledge_forms.uploads import prototypes, write

    write(run / "uploads" / "prototype" / "round-000000.safetensors")
    write(run / "uploads" / "raw" / "round-000000.safetensors", {(0, 0): prototypes()}, form="raw")
    assert main(["export", str(run), "--out", str(out)]) == 0
    said = capsys.readouterr().out
    assert "left out: truth, uploads/raw, seed and data set" in said
    files = sorted(str(path.relative_to(out)) for path in out.rglob("*") if path.is_file())
    assert files == ["config.yaml", "prototype/round-000000.safetensors"]
    shared = (out / "config.yaml").read_text()
    assert "secret" not in shared
    assert "77" not in shared
    assert main(["check", str(out)]) == 0
    assert main(["export", str(run), "--out", str(out)]) == 2


@pytest.mark.parametrize("exists", [False, True])
def test_an_import_that_fails_leaves_nothing_that_would_refuse_the_mended_command(tmp_path, capsys, exists):
    folder, out = tmp_path / "train", tmp_path / "out"
    pixels = np.zeros((2, 1, 4, 4), np.uint8)
    if exists:
        out.mkdir()
    write_npz(folder, 0, x=pixels, y=np.arange(2))
    write_npz(folder, 1, x=pixels, y=np.arange(3))
    command = ["import", str(folder), "--out", str(out)]
    assert main(command) == 2
    assert "images of client 1 are" in capsys.readouterr().err
    assert out.exists() == exists
    assert not exists or not any(out.iterdir())
    write_npz(folder, 1, x=pixels, y=np.arange(2))
    assert main(command) == 0
    assert len(list((out / "images").iterdir())) == 2


def test_a_folder_nobody_may_look_into_is_named(tmp_path, monkeypatch):
    def refuse(_path, _pattern):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))

    monkeypatch.setattr("pathlib.Path.glob", refuse)
    with pytest.raises(AuditError, match=r"cannot look into .* \(Permission denied\)"):
        import_folder(tmp_path, tmp_path / "out")


def test_an_export_that_cannot_be_written_is_named(tmp_path, monkeypatch):
    run = tmp_path / "run"
    run.mkdir()
    (run / "config.yaml").write_text("form: prototype\n")
    from tests.knowledge_forms.uploads import write

    write(run / "uploads" / "prototype" / "round-000000.safetensors")

    def refuse(*_args, **_options):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))

    monkeypatch.setattr("pathlib.Path.mkdir", refuse)
    with pytest.raises(AuditError, match=r"cannot copy .*run/uploads/.* \(Permission denied\); .*another --out"):
        export(run, tmp_path / "out")


def test_an_export_of_several_seeds_names_their_folders(tmp_path):
    (tmp_path / "config.yaml").write_text("seeds: [3, 5]\n")
    with pytest.raises(AuditError, match=rf"export each by itself: {tmp_path}/seed-3, {tmp_path}/seed-5$"):
        export(tmp_path, tmp_path / "out")
