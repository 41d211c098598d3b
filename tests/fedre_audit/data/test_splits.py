import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from fedre_audit.data.base import ImageData, image_hashes, to_float
from fedre_audit.data.splits import check_disjoint, make_split
from knowledge_forms.errors import AuditError


def numbered(values, *, tests=0, classes=3):
    """Images 1x2x2 that carry their value; equal values are equal images. The last `tests` are official test."""
    values = torch.tensor(values)
    images = torch.stack([values % 256, values // 256, values * 0, values * 0], 1).to(torch.uint8)
    split = torch.zeros(len(values), dtype=torch.int8)
    split[len(values) - tests :] = 1
    names = tuple(f"c{i}" for i in range(classes))
    return ImageData("toy", images.reshape(-1, 1, 2, 2), torch.arange(len(values)) % classes, names, split)


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.integers(0, 60), min_size=12, max_size=80),
    st.integers(0, 2**31),
    st.integers(1, 30),
    st.integers(1, 30),
)
def test_parts_share_no_image(values, seed, auxiliary, evaluation):
    data = numbered(values)
    try:
        split = make_split(data, private=5, auxiliary=auxiliary, evaluation=evaluation, seed=seed)
    except AuditError:
        assert len(set(values)) < 7
        return
    held = [{values[i] for i in ids.tolist()} for ids in (split.private, split.auxiliary, split.evaluation)]
    assert len(split.private) == 5
    assert sum(map(len, held)) == len(set.union(*held))
    assert 1 <= len(split.auxiliary) <= auxiliary
    assert 1 <= len(split.evaluation) <= evaluation


def test_duplicates_are_dropped_and_counted_whatever_their_label():
    values = list(range(100)) + list(range(100))
    split = make_split(numbered(values), private=50, auxiliary=20, evaluation=10, seed=0)
    everything = torch.cat([split.private, split.auxiliary, split.evaluation]) % 100
    twins_within_private = 50 - len(set((split.private % 100).tolist()))
    twins_within_auxiliary = 20 - len(set((split.auxiliary % 100).tolist()))
    assert len(everything) == 80
    assert split.duplicates_dropped == (50 - 2 * twins_within_private) + (20 - 2 * twins_within_auxiliary)


def test_official_parts_are_respected():
    data = numbered(range(100), tests=30)
    split = make_split(data, private=40, auxiliary=20, evaluation=25, seed=1)
    parts = [
        data.official_split[ids].float().mean().item() for ids in (split.private, split.auxiliary, split.evaluation)
    ]
    assert parts == [0, 0, 1]
    with pytest.raises(AuditError, match="has 70 training images, fewer than the 71"):
        make_split(data, private=71, auxiliary=1, evaluation=1, seed=1)


def test_classes_keep_their_shares_and_seeds_differ():
    data = numbered(range(3000))
    first, again, other = (make_split(data, private=300, auxiliary=300, evaluation=300, seed=s) for s in (0, 0, 1))
    for ids in (first.private, first.auxiliary, first.evaluation):
        assert all(abs(count - 100) <= 2 for count in data.labels[ids].bincount().tolist())
    assert torch.equal(first.private, again.private)
    assert torch.equal(first.evaluation, again.evaluation)
    assert not torch.equal(first.private, other.private)


def test_too_large_a_request_shrinks_in_proportion():
    split = make_split(numbered(range(100)), private=60, auxiliary=300, evaluation=100, seed=0)
    assert (len(split.auxiliary), len(split.evaluation)) == (30, 10)
    split = make_split(numbered(range(12)), private=10, auxiliary=1000, evaluation=1, seed=0)
    assert (len(split.auxiliary), len(split.evaluation)) == (1, 1)


def test_attackers_images_may_come_from_elsewhere():
    split = make_split(numbered(range(20)), private=10, auxiliary=None, evaluation=5, seed=0)
    assert (len(split.auxiliary), len(split.evaluation)) == (0, 5)


@pytest.mark.parametrize(
    ("sizes", "message"),
    [
        ({"private": 5, "auxiliary": 0, "evaluation": 5}, "at least 1 private and 1 auxiliary"),
        ({"private": 0, "auxiliary": 5, "evaluation": 5}, "at least 1 private and 1 auxiliary"),
        ({"private": 21, "auxiliary": 1, "evaluation": 0}, "lower --private-images, for instance to 6"),
        ({"private": 20, "auxiliary": 1, "evaluation": 0}, "left 0 different images"),
        ({"private": 19, "auxiliary": 5, "evaluation": 5}, "left 1 different images"),
        ({"private": 5, "auxiliary": 5, "evaluation": 5, "clients": 6}, "shared by 6 clients"),
    ],
)
def test_what_cannot_be_split(sizes, message):
    with pytest.raises(AuditError, match=message):
        make_split(numbered(range(20)), seed=0, **sizes)


def test_overlap_given_by_the_user_is_refused():
    ours, theirs = image_hashes(numbered([1, 2, 3]).images), image_hashes(numbered([9, 3, 1]).images)
    with pytest.raises(AuditError, match=r"2 of the 3 auxiliary images are also among the private ones.*number 1"):
        check_disjoint(ours, theirs, ("private", "auxiliary"))
    check_disjoint(ours, image_hashes(numbered([7, 8]).images), ("private", "auxiliary"))


def test_hash_depends_on_pixels_and_shape():
    image = torch.arange(12, dtype=torch.uint8)
    hashes = [image_hashes(image.reshape(1, *shape))[0] for shape in ((1, 3, 4), (1, 4, 3), (3, 2, 2))]
    changed = image.clone()
    changed[5] += 1
    hashes.append(image_hashes(changed.reshape(1, 1, 3, 4))[0])
    assert len(set(hashes)) == 4
    assert all(len(digest) == 32 for digest in hashes)
    with pytest.raises(ValueError, match="uint8"):
        image_hashes(torch.rand(1, 1, 3, 4))


def test_float_range():
    assert to_float(torch.tensor([0, 51, 255], dtype=torch.uint8)).tolist() == pytest.approx([0, 0.2, 1])
