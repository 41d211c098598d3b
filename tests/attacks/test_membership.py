"""Membership: members stand out where their upload holds them, non-members never do."""

import pytest
import torch

from attacks.knowledge import Q0
from attacks.membership import MEMBERSHIP
from knowledge_forms.errors import AuditError
from tests.attacks.tiny import knowledge, upload_of


def auc(members, others):
    return float((members[:, None] > others[None]).float().mean() + 0.5 * (members[:, None] == others).float().mean())


def draw(count, seed):
    return torch.rand(count, 1, 6, 6, generator=torch.Generator().manual_seed(seed))


def scores(name, n, *, seed=0):
    """Prototypes of n images for each of 4 classes: scores of the members, and of as many non-members."""
    attack = MEMBERSHIP[name]().fit(knowledge(count=800))
    members, others = draw(4 * n, seed + 10), draw(4 * n, seed + 11)
    labels = torch.arange(4).repeat_interleave(n)
    prototypes = members.flatten(1).reshape(4, n, 36).mean(1)
    own = upload_of(prototypes, torch.eye(4))
    return attack.score(own, members, labels), attack.score(own, others, labels)


@pytest.mark.parametrize("name", MEMBERSHIP)
def test_a_prototype_of_one_image_gives_its_member_away(name):
    members, others = scores(name, 1)
    assert auc(members, others) == 1.0


@pytest.mark.parametrize("name", MEMBERSHIP)
def test_raw_rows_give_their_members_away(name):
    attack = MEMBERSHIP[name]().fit(knowledge(count=800))
    members, labels = draw(40, 10), torch.arange(40) % 4
    own = upload_of(members.flatten(1), torch.eye(4)[labels])
    assert auc(attack.score(own, members, labels), attack.score(own, draw(40, 11), labels)) > 0.9


def test_more_images_in_a_prototype_hide_each_of_them():
    found = [auc(*scores("projection", n)) for n in (1, 5, 20, 400)]
    assert found == sorted(found, reverse=True)
    assert found[1] > 0.9
    assert found[3] < 0.65


@pytest.mark.parametrize("name", MEMBERSHIP)
def test_an_upload_of_other_images_shows_no_member(name):
    attack = MEMBERSHIP[name]().fit(knowledge(count=800))
    labels = torch.arange(4).repeat_interleave(200)
    own = upload_of(draw(4, 30).flatten(1), torch.eye(4))
    assert auc(attack.score(own, draw(800, 10), labels), attack.score(own, draw(800, 11), labels)) == pytest.approx(
        0.5, abs=0.05
    )


@pytest.mark.parametrize("name", MEMBERSHIP)
def test_calibrated_to_non_members_of_the_class(name):
    known = knowledge(count=800)
    attack = MEMBERSHIP[name]().fit(known)
    own = upload_of(draw(4, 30).flatten(1), torch.eye(4))
    held = known.labels == 2
    found = attack.score(own, known.images[held], known.labels[held])
    assert float(found.mean()) == pytest.approx(0.0, abs=1e-3)
    assert float(found.std(correction=0)) == pytest.approx(1.0, abs=1e-3)


def test_a_class_that_was_not_uploaded_has_no_members():
    attack = MEMBERSHIP["distance"]().fit(knowledge())
    own = upload_of(draw(1, 30).flatten(1), torch.eye(4)[[1]])
    found = attack.score(own, draw(2, 10), torch.tensor([0, 1]))
    assert found[0] == -torch.inf
    assert found[1].isfinite()


@pytest.mark.parametrize("name", MEMBERSHIP)
def test_level_is_checked(name):
    full = knowledge()
    with pytest.raises(AuditError, match="needs threat level Q2"):
        MEMBERSHIP[name]().fit(Q0(full.images, full.labels, 4, 0))
