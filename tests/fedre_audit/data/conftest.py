import io
import tarfile
import zipfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

Files = dict[str, bytes]


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))


@pytest.fixture
def png() -> Callable[..., bytes]:
    """An image file of one value: png(7), png(7, size=(height, width), mode="RGB")."""

    def make(value: int, *, size: tuple[int, int] = (4, 5), mode: str = "L", kind: str = "PNG") -> bytes:
        shape = size if mode == "L" else (*size, len(mode))
        stream = io.BytesIO()
        Image.fromarray(np.full(shape, value, np.uint8), mode=mode).save(stream, kind)
        return stream.getvalue()

    return make


@pytest.fixture
def pack(tmp_path: Path) -> Callable[[str, Files], Path]:
    """Write files as a folder, .tar, .tar.gz or .zip, by the ending of the name."""

    def make(name: str, files: Files) -> Path:
        path = tmp_path / name
        if name.endswith(".zip"):
            with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
                for file, data in files.items():
                    archive.writestr(file, data)
        elif ".tar" in name:
            with tarfile.open(path, "w:gz" if name.endswith("gz") else "w") as tar:
                for file, data in files.items():
                    info = tarfile.TarInfo(file)
                    info.size = len(data)
                    tar.addfile(info, io.BytesIO(data))
        else:
            for file, data in files.items():
                (path / file).parent.mkdir(parents=True, exist_ok=True)
                (path / file).write_bytes(data)
        return path

    return make
