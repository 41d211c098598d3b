"""Encoders of one's own: built by a factory, filled from safetensors, probed before any attack relies on them."""

import hashlib
import importlib
import inspect
from collections.abc import Sequence
from pathlib import Path

import torch
from torch import Tensor, nn

from fedre_audit.models.base import ClientModel, ImageShape, evaluating
from fedre_audit.models.store import load_arrays, state_arrays
from fedre_audit.seeding import derive_seed
from knowledge_forms.errors import AuditError
from knowledge_forms.header import read_arrays, read_header

TOLERANCE = 1e-4
"""Relative; an image's representation may differ this much between batch sizes by rounding alone."""
MODAL = (nn.modules.batchnorm._NormBase, nn.modules.dropout._DropoutNd)
"""Modules that answer differently in train mode."""
TRUSTED: set[str] = set()
"""Factories that this process was asked to load: a run folder may name others, and importing one runs its code."""
# What a forward pass raises on images it was not made for.
MISFIT = (RuntimeError, ValueError, TypeError, LookupError, AttributeError, AssertionError)
# What the user's own code raises is up to it; a script without a main guard even exits.
ANYTHING = (Exception, SystemExit)


class ForeignEncoder(nn.Module):
    """Images [N,c,h,w] in [0,1] -> [N,d]: the first tensor of whatever the inner module returns, flattened."""

    def __init__(self, inner: nn.Module) -> None:
        super().__init__()
        self.inner = inner

    def forward(self, images: Tensor) -> Tensor:
        """[N,c,h,w] -> [N,d]."""
        answer = self.inner(images)
        while isinstance(answer, Sequence) and answer:
            answer = answer[0]
        if not isinstance(answer, Tensor):
            raise TypeError(f"returns {type(answer).__name__}, not a tensor or a tuple of them")
        return answer.flatten(1)


class ForeignModel(ClientModel):
    """A foreign encoder where a client model is expected; `name` is the factory, and its head was never seen."""

    def __init__(self, spec: str, client: int, image_shape: ImageShape, num_classes: int, feature_width: int) -> None:
        nn.Module.__init__(self)
        self.name, self.client = f"{spec}#{client}", client
        self.image_shape, self.mapping = image_shape, "AP"
        self.encoder = ForeignEncoder(build(spec, client, derive_seed(0, "model", client=client)))  # type: ignore[assignment]
        self.classifier = nn.Linear(feature_width, num_classes)

    def rebuild(self) -> nn.Module:
        """Another encoder from the factory: what knowing the architecture gives."""
        return ForeignEncoder(build(self.name.partition("#")[0], self.client, seed=0))


def named_model(name: str, image_shape: ImageShape, num_classes: int, feature_width: int) -> ForeignModel:
    """The model of `package.module:factory#client`, as models.json names it; AuditError where nobody asked for it."""
    spec, _, client = name.partition("#")
    refuse_untrusted(spec)
    return ForeignModel(spec, int(client), image_shape, num_classes, feature_width)


def refuse_untrusted(spec: str) -> None:
    """AuditError for a factory that a run folder names and that nobody asked for."""
    if spec not in TRUSTED:
        raise AuditError(
            f"this run's encoders come from '{spec}', which is code; run `audit --uploads ... --encoder {spec}` again "
            "to use it"
        )


def build(spec: str, client: int, seed: int) -> nn.Module:
    """Call the factory; it is given the client's id where it has a parameter `client`.

    seed: of initial weights that the factory does not seed itself, so that the same command goes on with the same.
    """
    module_name, _, function = spec.partition(":")
    try:
        module = importlib.import_module(module_name)
    except ImportError as error:
        raise AuditError(f"--encoder {spec}: cannot import {module_name} ({error}); set PYTHONPATH") from error
    except ANYTHING as error:
        raise AuditError(f"--encoder {spec}: importing {module_name} raised {_said(error)}; mend it") from error
    factory = getattr(module, function, None)
    if not callable(factory):
        raise AuditError(f"--encoder {spec}: {module_name} has no function '{function}'; name the one that builds it")
    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(seed)
        try:
            made = factory(client=client) if "client" in inspect.signature(factory).parameters else factory()
        except ANYTHING as error:
            raise AuditError(f"--encoder {spec}: {function} raised {_said(error)}; mend it") from error
    if not isinstance(made, nn.Module):
        raise AuditError(f"--encoder {spec} returns {type(made).__name__}; it must return a torch.nn.Module")
    return made


def _said(error: BaseException) -> str:
    """Class and text of an exception, in one short line."""
    return f"{type(error).__name__}: {' '.join(str(error).split())[:200]}"


def load_encoder(
    spec: str, weights: str | None, client: int, image_shape: ImageShape, num_classes: int, feature_width: int
) -> tuple[ForeignModel, list[str]]:
    """One client's encoder, filled and probed, and notes on it; AuditError where it cannot serve.

    spec: from the auditor, never from a run folder: it is trusted from here on.
    """
    TRUSTED.add(spec)
    model = ForeignModel(spec, client, image_shape, num_classes, feature_width)
    inner = model.encoder.get_submodule("inner")
    if weights is not None:
        path = Path(weights.replace("{client}", str(client)))
        load_arrays(inner, read_arrays(read_header(path)), path)
    return model, probe(model.encoder, image_shape, feature_width, f"--encoder {spec}, client {client}")


def encoder_sha256(model: ForeignModel) -> str:
    """SHA-256 (hex) of an encoder's weights and of its answers to random images, which its code decides."""
    digest = hashlib.sha256()
    for name, value in state_arrays(model.encoder).items():
        digest.update(f"{name} {value.dtype} {value.shape}".encode())
        digest.update(value.tobytes())
    images = torch.rand(4, *model.image_shape, generator=torch.Generator().manual_seed(0))
    with evaluating(model.encoder):
        digest.update(model.encoder(images).float().numpy().tobytes())
    return digest.hexdigest()


def probe(encoder: nn.Module, image_shape: ImageShape, width: int, where: str) -> list[str]:
    """Size, channels, width, mode, determinism, gradient of an encoder; notes, or AuditError where it cannot serve."""
    notes = []
    if any(module.training and isinstance(module, MODAL) for module in encoder.modules()):
        notes.append("left in train mode; asked in eval mode, as uploads should be made")
    images = torch.rand(4, *image_shape, generator=torch.Generator().manual_seed(0))
    size = "x".join(map(str, image_shape))
    with evaluating(encoder):
        try:
            shape = getattr(encoder, "inner", encoder)(images)
            answer, again = encoder(images), encoder(images)
            single = torch.cat([encoder(image[None]) for image in images])
        except MISFIT as error:
            raise AuditError(
                f"{where} cannot answer images {size} ({str(error)[:200]}); give images of the size and channels "
                "it was trained on, or let the factory convert them"
            ) from error
    if isinstance(shape, tuple | list):
        notes.append(f"returns {len(shape)} things; the first is taken as the representation")
        shape = shape[0]
    if isinstance(shape, Tensor) and shape.ndim != 2:
        notes.append(f"returns [N, {', '.join(map(str, shape.shape[1:]))}]; flattened")
    if answer.shape != (4, width):
        raise AuditError(
            f"{where} turns an image {size} into {answer.shape[-1]} numbers, the uploads have {width}; "
            "let the factory return the layer (and the pooling) that is uploaded"
        )
    if not bool(answer.isfinite().all()):
        raise AuditError(f"{where} answers NaN or infinity to random images in [0,1]; check its weights")
    scale = answer.abs().max().clamp(min=1e-12)
    if bool((answer - again).abs().max() > TOLERANCE * scale):
        raise AuditError(f"{where} answers the same image differently each time; take the randomness out")
    if bool((answer - single).abs().max() > TOLERANCE * scale):
        raise AuditError(
            f"{where} answers an image differently in another batch; let its normalisation use stored statistics"
        )
    if bool((answer - answer[:1]).abs().max() <= TOLERANCE * scale):
        notes.append("answers different images alike; is it trained, are these its weights?")
    probing = images[:1].requires_grad_()
    modes = [(module, module.training) for module in encoder.modules()]
    encoder.eval()
    followed = encoder(probing).requires_grad
    for module, training in modes:
        module.training = training
    if not followed:
        notes.append("no gradient reaches the images; attacks that need one cannot run")
    return notes
