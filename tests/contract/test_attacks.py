"""Every registered attack, floors included, runs through one contract on tiny analytic encoders."""

import inspect
from dataclasses import fields, replace

import pytest
import torch
from torch import nn

from attacks.base import ATTACKS, Attack
from attacks.knowledge import LEVELS, Q0, Q3
from fedre_audit.models import build_model
from knowledge_forms.base import Classifier, ServerView, Upload
from knowledge_forms.errors import AuditError

SHAPES = [(1, 12, 12), (3, 8, 10)]
CLASSES = 4
SMALL = {  # budgets of the heavier attacks, so that the contract stays cheap
    "decoder": {"steps": 8},
    "optimisation": {"steps": 8},
    "corrector": {"steps": 8},
    "shadow": {"steps": 8},
    "random_features_ridge": {"features": 64},
}


SHARED = ("optimisation", "corrector", "shadow")  # rows share a loss, or a scale


class Flatten(nn.Module):
    """An encoder that keeps everything: the flattened image."""

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        return images.flatten(1)


def knowledge(shape, count: int = 60, seed: int = 0) -> Q3:
    generator = torch.Generator().manual_seed(seed)
    return Q3(
        images=torch.rand(count, *shape, generator=generator),
        labels=torch.randint(0, CLASSES, (count,), generator=generator),
        num_classes=CLASSES,
        seed=seed,
        architecture=Flatten,
        encoder=Flatten(),
        module=Flatten(),
        classifiers=classifiers(shape),
    )


def classifiers(shape) -> dict[int, Classifier]:
    """What the server broadcast in two rounds."""
    generator = torch.Generator().manual_seed(3)
    width = shape[0] * shape[1] * shape[2]
    return {r: Classifier(torch.randn(CLASSES, width, generator=generator), torch.zeros(CLASSES)) for r in range(2)}


def view(shape, rows: int = 3, client: int = 5) -> ServerView:
    generator = torch.Generator().manual_seed(9)
    images = torch.rand(rows, *shape, generator=generator)
    encoding = torch.eye(CLASSES)[torch.arange(rows) % CLASSES]
    older = Upload(client, 0, "raw", torch.zeros(rows, images[0].numel()), encoding)
    newest = Upload(client, 1, "raw", images.flatten(1), encoding)
    return ServerView("fedallrep", "raw", "", images[0].numel(), CLASSES, (older, newest))


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("name", ATTACKS)
def test_contract(name, shape):
    attack = ATTACKS[name](**SMALL.get(name, {}))
    known = knowledge(shape)
    before = known.images.clone()
    assert attack.fit(known) is attack
    found = attack.reconstruct(view(shape))
    assert found.images.shape == (3, *shape)
    assert found.images.dtype == torch.float32
    assert (found.client, found.round) == (5, 1)
    assert found.images.min() >= 0
    assert found.images.max() <= 1
    assert torch.equal(known.images, before)
    again = ATTACKS[name](**SMALL.get(name, {})).fit(knowledge(shape)).reconstruct(view(shape))
    assert torch.equal(found.images, again.images)


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
@pytest.mark.parametrize("name", ATTACKS)
def test_a_row_that_is_no_number_has_no_image(name, value):
    """An image made of it would be scored as if the attack had run and found little."""
    shape = SHAPES[0]
    broken = view(shape)
    upload = broken.uploads[-1]
    representation = upload.representation.clone()
    representation[1, 0] = value
    broken = replace(broken, uploads=(replace(upload, representation=representation),))
    images = ATTACKS[name](**SMALL.get(name, {})).fit(knowledge(shape)).reconstruct(broken).images
    floor = not ATTACKS[name].uses_upload
    assert images[[0, 2]].isfinite().all() or name in SHARED
    assert images[1].isfinite().all() if floor else images[1].isnan().all()


def test_an_image_that_overflows_is_no_image():
    class Overflows(Attack):
        """Planted."""

        name = "overflows"

        def _reconstruct(self, upload):
            images = torch.full((3, *SHAPES[0]), 0.5)
            images[0, 0, 0, 0] = torch.inf
            images[1, 0, 0, 0] = 3e38
            return images

    images = Overflows().fit(knowledge(SHAPES[0])).reconstruct(view(SHAPES[0])).images
    assert images[0].isnan().all()
    assert images[1, 0, 0, 0] == 1.0
    assert (images[2] == 0.5).all()


@pytest.mark.parametrize("name", ATTACKS)
def test_facts_and_constructor(name):
    cls = ATTACKS[name]
    assert cls.name == name
    assert cls.level in LEVELS
    assert cls.__doc__
    parameters = inspect.signature(cls).parameters.values()
    assert all(p.kind is inspect.Parameter.KEYWORD_ONLY for p in parameters if p.name not in ("args", "kwargs"))
    assert name.replace("_", "") in repr(cls()).lower().replace("_", "")


@pytest.mark.parametrize("name", ATTACKS)
def test_unfitted_and_below_level_are_refused(name):
    with pytest.raises(AuditError, match="not fitted"):
        ATTACKS[name]().reconstruct(view(SHAPES[0]))
    full = knowledge(SHAPES[0])
    least = Q0(full.images, full.labels, CLASSES, 0, classifiers=full.classifiers)
    if ATTACKS[name].level != "Q0":
        with pytest.raises(AuditError, match="needs threat level"):
            ATTACKS[name]().fit(least)
    else:
        assert ATTACKS[name](**SMALL.get(name, {})).fit(least).reconstruct(view(SHAPES[0])).images.shape[0] == 3


@pytest.mark.parametrize("name", ATTACKS)
def test_an_attack_sees_what_its_level_allows_and_answers_alike_with_no_more(name):
    seen = []

    class Watched(ATTACKS[name]):
        def _fit(self, knowledge):
            seen.append(knowledge)
            super()._fit(knowledge)

    full, shape = knowledge(SHAPES[0]), SHAPES[0]
    found = Watched(**SMALL.get(name, {})).fit(full).reconstruct(view(shape))
    level = LEVELS[ATTACKS[name].level]
    assert type(seen[0]) is level
    exact = level(**{item.name: getattr(full, item.name) for item in fields(level)})
    assert torch.equal(found.images, ATTACKS[name](**SMALL.get(name, {})).fit(exact).reconstruct(view(shape)).images)


@pytest.mark.parametrize(
    ("level", "reach"),
    [
        ("Q0", lambda known: known.architecture),
        ("Q0", lambda known: known.encoder),
        ("Q1", lambda known: known.auxiliary_representations),
        ("Q1", lambda known: known.architecture.__self__),
        ("Q2", lambda known: known.module),
        ("Q2", lambda known: known.encoder.state_dict()),
    ],
)
def test_an_attack_that_reaches_further_than_its_level_fails(level, reach):
    class Greedy(Attack):
        name = "greedy"

        def _fit(self, knowledge):
            reach(knowledge)

        def _reconstruct(self, upload):
            raise NotImplementedError

    Greedy.level = level
    model = build_model("small_cnn", (1, 12, 12), CLASSES, 8, seed=0)
    known = knowledge((1, 12, 12))
    full = Q3(known.images, known.labels, CLASSES, 0, model.rebuild, model.encoder, model.encoder)
    with pytest.raises(AttributeError):
        Greedy().fit(full)


def test_what_a_lower_level_asks_is_asked_once():
    asked = []

    class Counting(Flatten):
        def forward(self, images):
            asked.append(len(images))
            return super().forward(images)

    known = knowledge(SHAPES[0])
    full = replace(known, encoder=Counting())
    for _ in range(3):
        ATTACKS["ridge"]().fit(full)
    assert sum(asked) == len(full.images)


@pytest.mark.parametrize("name", [name for name in ATTACKS if not ATTACKS[name].uses_upload])
def test_floors_ignore_the_representation(name):
    attack = ATTACKS[name]().fit(knowledge(SHAPES[0]))
    one = view(SHAPES[0])
    blank = ServerView("", "raw", "", 1, CLASSES, tuple(
        Upload(u.client, u.round, u.form, torch.full_like(u.representation, 7.0), u.label_encoding) for u in one.uploads
    ))  # fmt: skip
    assert torch.equal(attack.reconstruct(one).images, attack.reconstruct(blank).images)


def test_no_auxiliary_images_is_refused():
    with pytest.raises(AuditError, match="no auxiliary images"):
        Q0(torch.zeros(0, 1, 4, 4), torch.zeros(0), 2, 0)
