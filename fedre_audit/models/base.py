"""Client models: extractor -> mapping -> classifier, split by construction, one declared head type for all.

Heterogeneous clients agree on two things only: the width d of what leaves them and the head Linear(d, C)
(FedRE, arXiv 2511.22265; model-heterogeneous federations as in HtFLlib, arXiv 2506.03954).
"""

import copy
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

import torch
from torch import Tensor, nn

from fedre_audit.models.single_position import as_matrix_products
from fedre_audit.seeding import derive_seed
from knowledge_forms.errors import AuditError
from knowledge_forms.mapping import MAPPINGS
from knowledge_forms.registry import Registry

ImageShape = tuple[int, int, int]


class ClientEncoder(nn.Module):
    """What makes representations: images [N,c,h,w] in [0,1] -> extractor [N,a] -> mapping [N,d]."""

    def __init__(self, extractor: nn.Module, mapping: nn.Module) -> None:
        super().__init__()
        self.extractor = extractor
        self.mapping = mapping

    def forward(self, images: Tensor) -> Tensor:
        """[N,c,h,w] in [0,1] -> [N,d]; the only place where images are normalised, to [-1,1]."""
        return self.mapping(self.extractor(images * 2.0 - 1.0))


class ClientModel(nn.Module):
    """One client's model: encoder (extractor and mapping to width d), then classifier Linear(d, C)."""

    def __init__(
        self,
        *,
        name: str,
        extractor: nn.Module,
        image_shape: ImageShape,
        num_classes: int,
        feature_width: int,
        mapping: str = "AP",
    ) -> None:
        super().__init__()
        self.name = name
        self.image_shape = image_shape
        self.mapping = mapping
        native = native_width(extractor, image_shape)
        self.encoder = ClientEncoder(extractor, MAPPINGS[mapping](native, feature_width))
        self.classifier = nn.Linear(feature_width, num_classes)

    def represent(self, images: Tensor) -> Tensor:
        """Images [N,c,h,w] in [0,1] -> representations [N,d]."""
        return self.encoder(images)

    def forward(self, images: Tensor) -> Tensor:
        """Images [N,c,h,w] in [0,1] -> logits [N,C]."""
        return self.classifier(self.represent(images))

    def rebuild(self) -> nn.Module:
        """An untrained, trainable encoder of this architecture: what knowing the architecture gives."""
        head = self.classifier
        width, mapping = head.in_features, self.mapping
        return build_model(self.name, self.image_shape, head.out_features, width, seed=0, mapping=mapping).encoder


MODELS: Registry[Callable[[ImageShape], nn.Module]] = Registry("model", package="fedre_audit.models")
FAMILIES: Registry[tuple[str, ...]] = Registry("family", package="fedre_audit.models")


SMALLEST_SIDE = {"googlenet": 15}
"""Extractors whose pooling leaves nothing of an image with a shorter side."""


def native_width(extractor: nn.Module, image_shape: ImageShape) -> int:
    """Width a of an extractor's features, from a forward pass of one black image."""
    with evaluating(extractor):
        return extractor(torch.zeros(1, *image_shape)).shape[1]


def build_model(
    name: str, image_shape: ImageShape, num_classes: int, feature_width: int, seed: int, mapping: str = "AP"
) -> ClientModel:
    """A freshly initialised model; the same seed gives the same weights and the global generator is left alone.

    A name with a colon, package.module:factory#client, is an encoder of the user's own.
    """
    if ":" in name:
        from fedre_audit.foreign.encoder import named_model

        return named_model(name, image_shape, num_classes, feature_width)
    build, smallest = MODELS[name], SMALLEST_SIDE.get(name, 1)
    if min(image_shape[1:]) < smallest:
        size = "x".join(map(str, image_shape[1:]))
        raise AuditError(
            f"model '{name}' needs images of at least {smallest}x{smallest}, got {size}; "
            "give larger images or choose another --family"
        )
    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(seed)
        model = ClientModel(
            name=name,
            extractor=build(image_shape),
            image_shape=image_shape,
            num_classes=num_classes,
            feature_width=feature_width,
            mapping=mapping,
        )
    as_matrix_products(model)
    return model


def build_clients(
    family: str,
    clients: int,
    image_shape: ImageShape,
    num_classes: int,
    feature_width: int,
    seed: int,
    mapping: str = "AP",
) -> list[ClientModel]:
    """Client k gets member k mod (family size), each with its own initial weights."""
    members = FAMILIES[family]
    return [
        build_model(
            members[client % len(members)],
            image_shape,
            num_classes,
            feature_width,
            derive_seed(seed, "model", client=client),
            mapping,
        )
        for client in range(clients)
    ]


@contextmanager
def evaluating(model: nn.Module) -> Iterator[None]:
    """Eval mode without gradients inside; afterwards every submodule has the mode it had before."""
    modes = [(module, module.training) for module in model.modules()]
    model.eval()
    try:
        with torch.no_grad():
            yield
    finally:
        for module, training in modes:
            module.training = training


def check_width(models: Sequence[ClientModel], server_width: int) -> None:
    """Raise one AuditError naming every client whose representation does not fit the server classifier.

    Widths come from a real forward pass of one black image.
    """
    problems = []
    for client, model in enumerate(models):
        with evaluating(model):
            weight = model.classifier.weight
            width = model.represent(weight.new_zeros(1, *model.image_shape)).shape[1]
        if not width == weight.shape[1] == server_width:
            problems.append(
                f"client {client} ({model.name}) sends width {width} through a head of width {weight.shape[1]}, "
                f"the server classifier expects {server_width}"
            )
    if problems:
        raise AuditError("; ".join(problems) + "; give every client the same --feature_width")


def as_encoder(model: ClientModel) -> ClientEncoder:
    """A frozen copy of a client's encoder in eval mode; gradients flow to images only, the model is not touched."""
    return copy.deepcopy(model.encoder).eval().requires_grad_(False).to(memory_format=torch.channels_last)
