"""Official archives, fetched whole or not at all: a file appears under its name only after its checksum fits."""

import hashlib
import http.client
import os
import urllib.request
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from knowledge_forms.errors import AuditError

CHUNK = 2**20
TIMEOUT = 20.0  # seconds without a byte


@dataclass(frozen=True)
class Source:
    """A file at its official address, and the MD5 (hex) its publisher gives. MD5 finds damage, not forgery."""

    url: str
    md5: str

    @property
    def name(self) -> str:
        """The file's name."""
        return self.url.rpartition("/")[2]


def fetch(source: Source, folder: Path, *, progress: Callable[[int, int], None] | None = None) -> Path:
    """Download into `folder` unless it is there; returns the file. `progress(done, total)` counts MiB.

    Raises AuditError that names the address, and where to put the file by hand, where that fails.
    """
    path = folder / source.name
    if path.exists():
        return path
    part = path.with_name(f".{path.name}.{os.getpid()}.part")
    by_hand = f"fetch it by other means and put it at {path}"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        found = _save(source.url, part, progress)
        if found != source.md5:
            raise AuditError(
                f"{source.url} arrived with MD5 {found} instead of {source.md5}, so it is damaged or another file; "
                f"try again, or {by_hand}"
            )
        part.replace(path)
    except (OSError, http.client.HTTPException) as error:
        reason = str(error) or type(error).__name__
        raise AuditError(f"{source.url} could not be fetched ({reason}); {by_hand}") from error
    finally:
        if part.exists():
            part.unlink()
    return path


def _save(url: str, part: Path, progress: Callable[[int, int], None] | None) -> str:
    """Write what `url` gives to `part`; returns its MD5."""
    digest = hashlib.md5(usedforsecurity=False)
    done = 0
    with urllib.request.urlopen(url, timeout=TIMEOUT) as answer, part.open("wb") as stream:
        total = int(answer.headers.get("Content-Length") or 0)
        while block := answer.read(CHUNK):
            stream.write(block)
            digest.update(block)
            done += len(block)
            if progress:
                progress(-(-done // CHUNK), -(-max(total, done) // CHUNK))
    return digest.hexdigest()
