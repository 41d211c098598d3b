import io

import numpy as np
import pytest
import torch
from PIL import Image

from fedre_audit.data import load_dataset
from fedre_audit.data.decode import decode_images
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
