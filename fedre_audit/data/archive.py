"""Files of a folder, .tar, .tar.gz or .zip, read in memory: nothing is ever extracted to disk.

An archive is untrusted input. Absolute names, `..`, links and devices are refused, sizes are limited
before a member is read, and a truncated or corrupt archive is an AuditError.
"""

import hashlib
import lzma
import os
import stat
import struct
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path, PurePosixPath

from knowledge_forms.errors import AuditError

MEMBER_LIMIT = 256 * 2**20
TOTAL_LIMIT = 16 * 2**30
RATIO_LIMIT = 200
RATIO_FREE = 64 * 2**20

Wanted = Callable[[str], bool]
UNREADABLE = (
    tarfile.TarError, zipfile.BadZipFile, zlib.error, lzma.LZMAError, EOFError, OSError, NotImplementedError,
    UnicodeError, struct.error,
)  # fmt: skip


def read_files(path: Path, wanted: Wanted) -> Iterator[tuple[str, bytes]]:
    """(relative posix name, content) of every wanted file below a folder or inside an archive.

    Raises AuditError where the path is missing, is no archive, is damaged or holds a hostile member.
    """
    if path.is_dir():
        yield from _read_folder(path, wanted)
        return
    if not path.is_file():
        raise AuditError(f"{path} does not exist; check the path of the folder or archive")
    try:
        if _is_zip(path):
            yield from _read_zip(path, wanted)
        else:
            yield from _read_tar(path, wanted)
    except UNREADABLE as error:
        reason = str(error).split("\n")[0].rstrip(":") or type(error).__name__
        raise AuditError(
            f"{path} is truncated, corrupt or no .tar, .tar.gz or .zip ({reason}); fetch it again"
        ) from error


def shown(name: str) -> str:
    r"""A file name as it can be written anywhere: bytes of it that are not UTF-8 as \xff.

    >>> shown("caf\udce9/é.png")
    'caf\\xe9/é.png'
    """
    return name.encode(errors="surrogateescape").decode(errors="backslashreplace")


def content_key(path: Path, purpose: str) -> str:
    """Hex key of what `path` holds: an archive's bytes, or a folder's names, sizes and modification times."""
    digest = hashlib.sha256(purpose.encode())
    try:
        if path.is_dir():
            for file in _files_below(path):
                info = file.stat()
                line = f"{file.relative_to(path)}|{info.st_size}|{info.st_mtime_ns}\n"
                digest.update(line.encode(errors="surrogateescape"))  # names need not be UTF-8
        elif path.is_file():
            with path.open("rb") as stream:
                digest.update(hashlib.file_digest(stream, "sha256").digest())
        else:
            raise AuditError(f"{path} does not exist; check the path of the folder or archive")
    except OSError as error:
        raise AuditError(f"cannot read {path} ({error.strerror}); mend its permissions") from error
    return digest.hexdigest()[:32]


class _Budget:
    """Bytes an archive may still expand to; refuses a member before it is read."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.left = min(TOTAL_LIMIT, RATIO_FREE + RATIO_LIMIT * path.stat().st_size)

    def spend(self, name: str, size: int) -> None:
        self.left -= size
        if size > MEMBER_LIMIT or self.left < 0:
            raise AuditError(
                f"{self.path}: '{name}' makes the archive larger than is safe to unpack "
                f"(limits: {MEMBER_LIMIT >> 20} MiB a file, {TOTAL_LIMIT >> 30} GiB in all, "
                f"{RATIO_LIMIT} times its packed size); unpack it yourself and give the folder"
            )


def _is_zip(path: Path) -> bool:
    # zipfile.is_zipfile looks for the end record anywhere, so a zip packed last inside a tar would pass.
    with path.open("rb") as stream:
        return stream.read(2) == b"PK"


def _safe_name(path: Path, name: str) -> str:
    pure = PurePosixPath(name.replace("\\", "/"))
    if pure.is_absolute() or ".." in pure.parts or name[1:2] == ":" or "\0" in name:
        raise AuditError(f"{path}: member '{name}' points outside the archive; do not trust it, fetch another copy")
    return shown(str(pure))


def _refuse_special(path: Path, name: str) -> None:
    raise AuditError(f"{path}: member '{name}' is a link or a device; pack plain files and folders only")


def _read_tar(path: Path, wanted: Wanted) -> Iterator[tuple[str, bytes]]:
    budget = _Budget(path)
    with tarfile.open(path, "r:*") as tar:
        for member in tar:
            name = _safe_name(path, member.name)
            if member.isdir():
                continue
            if not member.isreg():
                _refuse_special(path, member.name)
            budget.spend(name, member.size)
            if wanted(name):
                stream = tar.extractfile(member)
                assert stream is not None  # a regular member always has one
                yield name, stream.read()
        # tarfile stops at the end marker; only reading on makes gzip compare its checksum.
        while tar.fileobj is not None and (rest := len(tar.fileobj.read(2**20))):
            budget.spend("padding after the last file", rest)


def _read_zip(path: Path, wanted: Wanted) -> Iterator[tuple[str, bytes]]:
    budget = _Budget(path)
    with zipfile.ZipFile(path) as archive:
        for info in archive.infolist():
            name = _safe_name(path, info.filename)
            if info.is_dir():
                continue
            # Archives written outside Unix carry no file type: 0 is a plain file.
            if stat.S_IFMT(info.external_attr >> 16) not in (0, stat.S_IFREG):
                _refuse_special(path, info.filename)
            if info.flag_bits & 1:
                raise AuditError(f"{path}: member '{info.filename}' is encrypted; pack it without a password")
            budget.spend(name, info.file_size)
            if wanted(name):
                yield name, archive.read(info)


def _files_below(folder: Path) -> list[Path]:
    found = [Path(base) / name for base, _, names in os.walk(folder) for name in names]
    return sorted(file for file in found if file.is_file())


def _read_folder(folder: Path, wanted: Wanted) -> Iterator[tuple[str, bytes]]:
    for file in _files_below(folder):
        name = shown(file.relative_to(folder).as_posix())
        if not wanted(name):
            continue
        try:
            yield name, file.read_bytes()
        except OSError as error:
            raise AuditError(f"cannot read {file} ({error.strerror}); mend its permissions or remove it") from error
