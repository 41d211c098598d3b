import io
import os
import tarfile
import zipfile

import numpy as np
import pytest

from fedre_audit.data import archive
from fedre_audit.data.archive import content_key, read_files
from knowledge_forms.errors import AuditError

KINDS = ["tree", "tree.tar", "tree.tar.gz", "tree.zip"]


def everything(path):
    return dict(read_files(path, lambda name: True))


def tar_of(path, *members):
    with tarfile.open(path, "w") as tar:
        for info in members:
            tar.addfile(info, io.BytesIO(b"\0" * info.size))
    return path


def member(name, type_=tarfile.REGTYPE, **fields):
    info = tarfile.TarInfo(name)
    info.type = type_
    for key, value in fields.items():
        setattr(info, key, value)
    return info


@pytest.mark.parametrize("name", KINDS)
def test_every_kind_gives_the_same_wanted_files(pack, name):
    path = pack(name, {"a/1.png": b"one", "b/2.png": b"two", "b/note.txt": b"no"})
    assert dict(read_files(path, lambda n: n.endswith(".png"))) == {"a/1.png": b"one", "b/2.png": b"two"}


def test_leading_dot_slash_is_dropped(pack):
    assert everything(pack("x.tar", {"./a/1.png": b"one"})) == {"a/1.png": b"one"}


@pytest.mark.parametrize("kind", ["x.tar", "x.tar.gz", "x.zip"])
@pytest.mark.parametrize("name", ["../out.png", "a/../../out.png", "/etc/out.png", "..\\out.png", "C:/out.png"])
def test_names_that_leave_the_archive_are_refused(pack, tmp_path, kind, name):
    path = pack(kind, {"a/1.png": b"one", name: b"evil"})
    with pytest.raises(AuditError, match="outside the archive"):
        everything(path)
    assert sorted(p.name for p in tmp_path.iterdir()) == [kind]


@pytest.mark.parametrize(
    "type_", [tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.CHRTYPE, tarfile.BLKTYPE, tarfile.FIFOTYPE]
)
def test_links_and_devices_in_a_tar_are_refused(tmp_path, type_):
    path = tar_of(tmp_path / "x.tar", member("a/1.png", type_, linkname="/etc/passwd"))
    with pytest.raises(AuditError, match=r"'a/1.png' is a link or a device"):
        everything(path)


def test_symlink_in_a_zip_is_refused(tmp_path):
    info = zipfile.ZipInfo("a/1.png")
    info.external_attr = 0o120777 << 16
    with zipfile.ZipFile(tmp_path / "x.zip", "w") as zip_:
        zip_.writestr(info, "/etc/passwd")
    with pytest.raises(AuditError, match="link or a device"):
        everything(tmp_path / "x.zip")


@pytest.mark.parametrize("name", ["bomb.tar.gz", "bomb.zip"])
def test_bomb_is_refused_by_its_ratio(pack, monkeypatch, name):
    monkeypatch.setattr(archive, "RATIO_FREE", 2**16)
    path = pack(name, {f"a/{i}.png": b"\0" * 2**20 for i in range(8)})
    assert path.stat().st_size * archive.RATIO_LIMIT < 8 * 2**20
    with pytest.raises(AuditError, match="larger than is safe"):
        everything(path)


@pytest.mark.parametrize("name", ["big.tar", "big.zip"])
def test_member_over_the_limit_is_refused_even_unwanted(pack, monkeypatch, name):
    monkeypatch.setattr(archive, "MEMBER_LIMIT", 10)
    with pytest.raises(AuditError, match="larger than is safe"):
        list(read_files(pack(name, {"a/1.png": b"\0" * 11}), lambda n: False))


@pytest.mark.parametrize("name", ["x.tar", "x.tar.gz", "x.zip"])
@pytest.mark.parametrize("share", [0.3, 0.6])
def test_truncated_archive_is_refused(pack, name, share):
    rng = np.random.RandomState(0)
    path = pack(name, {f"a/{i}.png": rng.bytes(3000) for i in range(9)})
    path.write_bytes(path.read_bytes()[: int(path.stat().st_size * share)])
    with pytest.raises(AuditError, match=r"truncated, corrupt or no .*fetch it again"):
        everything(path)


@pytest.mark.parametrize("name", ["x.tar", "x.tar.gz", "x.zip"])
def test_damaged_bytes_give_the_files_or_an_audit_error(pack, name):
    rng = np.random.RandomState(0)
    path = pack(name, {f"a/{i}.png": rng.bytes(300) for i in range(4)})
    good = path.read_bytes()
    refused = 0
    for _ in range(300):
        bad = bytearray(good)
        for place in rng.randint(0, len(bad), 3):
            bad[place] = rng.randint(256)
        path.write_bytes(bad)
        try:
            everything(path)
        except AuditError:
            refused += 1
    # A tar checks its headers only; gzip and zip check the content too.
    assert refused > (30 if name == "x.tar" else 200)


@pytest.mark.parametrize("data", [b"", b"not an archive", b"PK"])
def test_foreign_file_is_refused(tmp_path, data):
    (tmp_path / "x.zip").write_bytes(data)
    with pytest.raises(AuditError, match="truncated, corrupt or no"):
        everything(tmp_path / "x.zip")


def test_missing_path_is_named(tmp_path):
    for read in (everything, lambda path: content_key(path, "x")):
        with pytest.raises(AuditError, match="nowhere does not exist"):
            read(tmp_path / "nowhere")


def test_key_follows_content_and_purpose(pack):
    path = pack("x.zip", {"a/1.png": b"one"})
    key = content_key(path, "tree")
    assert content_key(path, "tree") == key != content_key(path, "other")
    assert content_key(pack("x.zip", {"a/1.png": b"two"}), "tree") != key
    folder = pack("tree", {"a/1.png": b"one"})
    key = content_key(folder, "tree")
    os.utime(folder / "a/1.png", ns=(1, 1))
    assert content_key(folder, "tree") != key
