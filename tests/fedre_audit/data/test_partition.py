import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.model_selection import train_test_split

from fedre_audit.data.partition import pathological, practical, split_train_test
from knowledge_forms.errors import AuditError

CIFAR100, CIFAR10 = [600] * 100, [6000] * 10
TINY_BUG, TINY_FIXED, TINY_TRAIN = [10500] + [500] * 199, [550] * 200, [500] * 200

# Class counts; classes per client (None: practical); train images, client-classes before and after the split;
# classes and training images of each client. Made once with the public code's own procedure (seed 0, K=10).
PUBLISHED = {
    "cifar100-pra": (
        CIFAR100, None, 44996, 533, 502, [47, 48, 40, 52, 56, 38, 47, 50, 59, 65],
        [4652, 4530, 4117, 3879, 4351, 4764, 4515, 4526, 4866, 4796],
    ),
    "cifar100-pat": (CIFAR100, 10, 45000, 100, 100, [10] * 10, [4500] * 10),
    "cifar10-pra": (
        CIFAR10, None, 44997, 62, 61, [5, 7, 6, 4, 7, 6, 4, 8, 4, 10],
        [2205, 3830, 6207, 6948, 3861, 4808, 5831, 4427, 4591, 2289],
    ),
    "cifar10-pat": (
        CIFAR10, 2, 44997, 20, 20, [2] * 10, [3645, 5355, 1648, 7351, 2523, 6477, 1991, 7008, 3806, 5193],
    ),
    "tiny-pra-released": (
        TINY_BUG, None, 82496, 982, 937, [12, 86, 95, 98, 100, 105, 72, 89, 107, 173],
        [8286, 8353, 7668, 8346, 8481, 8430, 8352, 8390, 7685, 8505],
    ),
    "tiny-pra-fixed": (
        TINY_FIXED, None, 82496, 1073, 1005, [90, 97, 82, 99, 82, 83, 93, 112, 104, 163],
        [8639, 8291, 8268, 7077, 8518, 8531, 8485, 8541, 7929, 8217],
    ),
    "tiny-pra-train": (
        TINY_TRAIN, None, 74997, 1040, 987, [97, 94, 94, 86, 89, 97, 86, 88, 108, 148],
        [7616, 7606, 7512, 7558, 7512, 6462, 7511, 7695, 7856, 7669],
    ),
    "tiny-pat-released": (TINY_BUG, 20, 82500, 200, 200, [20] * 10, [15000] + [7500] * 9),
}  # fmt: skip


@pytest.mark.parametrize("row", PUBLISHED.values(), ids=PUBLISHED.keys())
def test_published_partitions(row):
    counts, per_client, total, before, after, classes, sizes = row
    labels, rng = np.repeat(np.arange(len(counts)), counts), np.random.RandomState(0)
    if per_client is None:
        parts = practical(labels, 10, alpha=0.1, num_classes=len(counts), rng=rng)
    else:
        parts = pathological(labels, 10, classes_per_client=per_client, num_classes=len(counts), rng=rng)
    train = [ids for ids, _ in split_train_test(parts, labels, rng)]
    assert sum(len(np.unique(labels[ids])) for ids in parts) == before
    assert [len(np.unique(labels[ids])) for ids in train] == classes
    assert [len(ids) for ids in train] == sizes
    assert (sum(map(len, train)), sum(len(np.unique(labels[ids])) for ids in train)) == (total, after)


def test_split_is_scikit_learns():
    parts = [np.arange(start, start + size) for start, size in ((0, 2), (2, 3), (5, 40), (45, 101))]
    theirs = np.random.RandomState(3)
    for (train, test), ids in zip(
        split_train_test(parts, np.zeros(146, int), np.random.RandomState(3)), parts, strict=True
    ):
        want = train_test_split(ids, train_size=0.75, shuffle=True, random_state=theirs)
        np.testing.assert_array_equal(train, want[0])
        np.testing.assert_array_equal(test, want[1])


def test_single_image_trains_and_none_is_none():
    one, none = np.array([4]), np.array([], dtype=np.int64)
    (train, test), (no_train, no_test) = split_train_test([one, none], np.zeros(5, int), np.random.RandomState(0))
    assert (train.tolist(), len(test), len(no_train), len(no_test)) == ([4], 0, 0, 0)


labels_of = st.integers(1, 6).flatmap(
    lambda classes: st.tuples(st.just(classes), st.lists(st.integers(0, classes - 1), min_size=1, max_size=150))
)


@settings(max_examples=80, deadline=None)
@given(labels_of, st.integers(1, 12), st.sampled_from([1e-4, 0.1, 10.0]), st.integers(0, 2**32 - 1))
def test_practical_gives_every_image_to_one_client(data, clients, alpha, seed):
    classes, labels = data[0], np.array(data[1])
    rng = np.random.RandomState(seed)
    if len(labels) < clients:
        with pytest.raises(AuditError, match="cannot be shared"):
            practical(labels, clients, alpha=alpha, num_classes=classes, rng=rng)
        return
    parts = practical(labels, clients, alpha=alpha, num_classes=classes, rng=rng, max_tries=5)
    assert len(parts) == clients
    assert sorted(np.concatenate(parts).tolist()) == list(range(len(labels)))
    assert min(map(len, parts)) >= max(min(2, len(labels) // clients), min(40, len(labels) / clients / 2))


@settings(max_examples=80, deadline=None)
@given(labels_of, st.integers(1, 12), st.integers(1, 6), st.integers(0, 2**32 - 1))
def test_pathological_parts_are_disjoint_and_hold_whole_classes(data, clients, per_client, seed):
    classes, labels = data[0], np.array(data[1])
    per_client = min(per_client, classes)
    rng = np.random.RandomState(seed)
    try:
        parts = pathological(labels, clients, classes_per_client=per_client, num_classes=classes, rng=rng)
    except AuditError as error:
        few = re.search(r"(\d+) clients share the (\d+) images|(\d+) private images cannot be shared", str(error))
        assert few is not None
        assert int(few[2] or few[3]) < clients
        return
    ids = np.concatenate(parts)
    assert len(set(ids.tolist())) == len(ids)
    assert set(labels[ids]) & set(labels[~np.isin(np.arange(len(labels)), ids)]) == set()
    assert min(map(len, parts)) >= min(2, len(ids) // clients)


def test_unreachable_minimum_ends_and_is_met_from_the_largest():
    labels = np.repeat(np.arange(2), 50)
    parts = practical(labels, 10, alpha=1e-3, num_classes=2, rng=np.random.RandomState(0), min_size=10, max_tries=1)
    assert [len(ids) for ids in parts] == [10] * 10


def test_same_seed_same_parts():
    labels = np.arange(300) % 7
    first, second = (practical(labels, 5, alpha=0.1, num_classes=7, rng=np.random.RandomState(1)) for _ in range(2))
    assert [ids.tolist() for ids in first] == [ids.tolist() for ids in second]


@pytest.mark.parametrize("per_client", [0, 4])
def test_impossible_classes_per_client(per_client):
    with pytest.raises(AuditError, match="choose 1 to 3"):
        pathological(np.arange(30) % 3, 2, classes_per_client=per_client, num_classes=3, rng=np.random.RandomState(0))
