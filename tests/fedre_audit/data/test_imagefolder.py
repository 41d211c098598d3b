import errno
import io
import os
import struct
import zlib

import numpy as np
import pytest
import torch
from PIL import Image

from fedre_audit.config import AuditConfig
from fedre_audit.data import load_dataset
from fedre_audit.data.decode import decode_images
from fedre_audit.options import command_line
from knowledge_forms.errors import AuditError

KINDS = ["tree", "tree.tar", "tree.tar.gz", "tree.zip"]


@pytest.mark.parametrize("name", KINDS)
def test_tree_of_any_kind(pack, png, name):
    path = pack(name, {"top/dog/1.png": png(9), "top/cat/2.png": png(7), "top/cat/10.png": png(8)})
    data = load_dataset(f"imagefolder:{path}")
    assert data.classes == ("cat", "dog")
    assert data.labels.tolist() == [0, 0, 1]
    assert data.shape == (1, 4, 5)
    assert data.images[:, 0, 0, 0].tolist() == [8, 7, 9]
    assert data.official_split.tolist() == [0, 0, 0]


def test_odd_size_keeps_rows_columns_and_colours(pack):
    pixels = np.random.RandomState(0).randint(0, 256, (2, 24, 40, 3), dtype=np.uint8)
    files = {}
    for label, image in zip("ab", pixels, strict=True):
        stream = io.BytesIO()
        Image.fromarray(image).save(stream, "PNG")
        files[f"{label}/x.png"] = stream.getvalue()
    data = load_dataset(f"imagefolder:{pack('tree.zip', files)}")
    assert data.shape == (3, 24, 40)
    np.testing.assert_array_equal(data.images.numpy(), pixels.transpose(0, 3, 1, 2))


def test_grey_among_colour_becomes_colour(pack, png):
    path = pack("tree", {"a/1.png": png(50), "b/2.png": png(60, mode="RGB"), "b/3.png": png(70, mode="RGBA")})
    data = load_dataset(f"imagefolder:{path}")
    assert data.shape == (3, 4, 5)
    assert data.images[:, :, 0, 0].tolist() == [[50] * 3, [60] * 3, [70] * 3]


def test_official_parts_are_recognised(pack, png):
    files = {"x/train/a/1.png": png(1), "x/train/b/2.png": png(2), "x/val/b/3.png": png(3), "x/test/a/4.png": png(4)}
    data = load_dataset(f"imagefolder:{pack('tree.zip', files)}")
    assert data.classes == ("a", "b")
    assert data.images[:, 0, 0, 0].tolist() == [1, 2, 4, 3]
    assert data.labels.tolist() == [0, 1, 0, 1]
    assert data.official_split.tolist() == [0, 0, 1, 1]


def test_flat_validation_folder_is_no_class(pack, png):
    files = {"train/a/1.png": png(1), "train/b/2.png": png(2), "val/images/3.png": png(3)}
    with pytest.raises(AuditError, match="of class 'images', which train/ lacks"):
        load_dataset(f"imagefolder:{pack('tree', files)}")


@pytest.mark.parametrize(
    ("names", "message"),
    [
        ([], "holds no image"),
        (["a/1.png"], "single class"),
        (["1.png", "2.png"], "lie directly in it"),
        (["train/a/1.png", "test/a/2.png"], "single class"),
        (["a/1.png", "b/1.png", "1.png"], "'1.png' lies in no class folder"),
        (["a/1.png", "b/.hidden.png", "__MACOSX/b/1.png"], "single class"),
    ],
)
def test_trees_without_classes(pack, png, names, message):
    path = pack("tree.zip", {"note.txt": b"", **{name: png(1) for name in names}})
    with pytest.raises(AuditError, match=message):
        load_dataset(f"imagefolder:{path}")


def test_an_empty_class_folder_is_named(pack, png):
    path = pack("tree", {"a/1.png": png(1), "b/note.txt": b"x", ".c/x": b""})
    with pytest.raises(AuditError, match=r"single class folder \(class folder b holds no image\)"):
        load_dataset(f"imagefolder:{path}")


def test_mixed_sizes_name_two_images(pack, png):
    path = pack("tree", {"a/1.png": png(1), "b/2.png": png(2, size=(6, 3))})
    with pytest.raises(AuditError, match=r"'a/1.png' is 5x4, 'b/2.png' is 3x6.*resize"):
        load_dataset(f"imagefolder:{path}")


def test_broken_image_is_named(pack, png):
    noise = np.random.RandomState(0).randint(0, 256, (64, 64), dtype=np.uint8)
    stream = io.BytesIO()
    Image.fromarray(noise).save(stream, "PNG")
    for broken in (b"", b"text", stream.getvalue()[:900]):
        good = png(1, size=(64, 64))
        with pytest.raises(AuditError, match=r"'b/2.png' is no readable image"):
            load_dataset(f"imagefolder:{pack('tree', {'a/1.png': good, 'b/2.png': broken})}")


def test_sixteen_bits_are_refused(pack):
    stream = io.BytesIO()
    Image.fromarray(np.full((4, 5), 40000, np.uint16)).save(stream, "PNG")
    path = pack("tree", {"a/1.png": stream.getvalue(), "b/2.png": stream.getvalue()})
    with pytest.raises(AuditError, match="more than 8 bits"):
        load_dataset(f"imagefolder:{path}")


def test_progress_ends_at_the_total(png):
    files = [(f"{i}.png", png(i % 256)) for i in range(600)]
    seen: list[tuple[int, int]] = []
    images = decode_images(files, progress=lambda done, total: seen.append((done, total)))
    assert seen == [(256, 600), (512, 600), (600, 600)]
    assert torch.equal(images[:, 0, 0, 0].long(), torch.arange(600) % 256)


def test_path_is_needed():
    with pytest.raises(AuditError, match="write --dataset imagefolder:PATH"):
        load_dataset("imagefolder:")


@pytest.mark.parametrize("folder", [b"tree", b"tr\xff"])
def test_names_that_are_not_utf8_are_shown_with_their_bytes(tmp_path, png, folder):
    for name in (b"\xff\xe9/0.png", b"b/\xfe.png"):
        file = os.path.join(os.fsencode(tmp_path), folder, name)
        os.makedirs(os.path.dirname(file))
        with open(file, "wb") as stream:
            stream.write(png(3))
    path = os.fsdecode(os.path.join(os.fsencode(tmp_path), folder))
    first, again = (load_dataset(f"imagefolder:{path}") for _ in range(2))
    assert first.classes == again.classes == (r"\xff\xe9", "b")
    assert first.name == again.name == folder.decode(errors="backslashreplace")
    assert len(list((tmp_path / "xdg").rglob("*.safetensors"))) == 1
    command_line(AuditConfig(dataset=f"imagefolder:{path}")).encode()


def test_names_in_an_archive_need_not_be_utf8(pack, png):
    path = pack("tree.tar", {"a/1.png": png(1), "\udcff/2.png": png(2)})
    assert load_dataset(f"imagefolder:{path}").classes == (r"\xff", "a")


def test_a_path_that_leads_nowhere_is_named(tmp_path):
    with pytest.raises(AuditError, match=r"imagefolder:~nosuchuser/x leads nowhere .*; give the path in full"):
        load_dataset("imagefolder:~nosuchuser/x")
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    with pytest.raises(AuditError, match="loop leads nowhere"):
        load_dataset(f"imagefolder:{tmp_path / 'loop'}")


def test_a_folder_that_may_not_be_read_is_named(tmp_path, monkeypatch):
    def refuse(_path):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))

    monkeypatch.setattr("pathlib.Path.is_dir", refuse)
    with pytest.raises(AuditError, match=r"cannot read .* \(Permission denied\); mend its permissions"):
        load_dataset(f"imagefolder:{tmp_path}")


def png_of(depth: int, kind: int, channels: int) -> bytes:
    """A PNG that Pillow reads and cannot write."""

    def part(name: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))

    header, row = struct.pack(">IIBBBBB", 4, 3, depth, kind, 0, 0, 0), bytes(1 + 4 * channels * depth // 8)
    return b"\x89PNG\r\n\x1a\n" + part(b"IHDR", header) + part(b"IDAT", zlib.compress(row * 3)) + part(b"IEND", b"")


def tiff_of(depth: int) -> bytes:
    """An uncompressed colour TIFF of 4x3."""
    size = 4 * 3 * 3 * depth // 8
    tags = [(256, 3, 1, 4), (257, 3, 1, 3), (258, 3, 3, 122), (259, 3, 1, 1), (262, 3, 1, 2), (273, 4, 1, 128),
            (277, 3, 1, 3), (278, 3, 1, 3), (279, 4, 1, size)]  # fmt: skip
    table = b"".join(struct.pack("<HHII", *tag) for tag in tags)
    return (
        b"II*\0" + struct.pack("<IH", 8, len(tags)) + table + bytes(4) + struct.pack("<3H", *[depth] * 3) + bytes(size)
    )


@pytest.mark.parametrize(
    ("eight", "more"),
    [
        (png_of(8, 2, 3), png_of(16, 2, 3)),
        (png_of(8, 6, 4), png_of(16, 6, 4)),
        (png_of(8, 4, 2), png_of(16, 4, 2)),
        (png_of(8, 0, 1), png_of(16, 0, 1)),
        (tiff_of(8), tiff_of(16)),
        (b"P6 4 3 255\n" + bytes(36), b"P6 4 3 65535\n" + bytes(72)),
        (b"P6 4 3 100\n" + bytes(36), b"P6 4 3 1023\n" + bytes(72)),
    ],
    ids=["RGB", "RGBA", "grey and alpha", "grey", "TIFF", "PPM", "odd PPM"],
)
def test_more_than_eight_bits_are_refused_in_colour_too(eight, more):
    assert decode_images([("a/1", eight)]).shape[2:] == (3, 4)
    with pytest.raises(AuditError, match=r"'a/2' has more than 8 bits a channel"):
        decode_images([("a/1", eight), ("a/2", more)])
