"""The contract of the ground: an upload, a server's view, an encoder, and a knowledge form with one method to write.

Every form is a *mixing*: each sample of a client contributes, with a weight, to exactly one row of the upload.
    representation = M z        label_encoding = M onehot(y)        M [n, N], at most one entry per column
so truth (who contributed what) is the same small object for every form and an audit can always be scored.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import ClassVar, Protocol, final

import torch
from torch import Tensor
from torch.nn import functional as F

from knowledge_forms.errors import AuditError
from knowledge_forms.registry import Registry

AT_ONCE = 8192
"""Samples that a mixing turns into float64 at a time."""


class Encoder(Protocol):
    """Images [N,c,h,w] in [0,1] -> representations [N,d]. An encoder answers queries; it shows no weights."""

    def __call__(self, images: Tensor, /) -> Tensor: ...


@dataclass(frozen=True)
class Upload:
    """One client, one round: exactly what crosses the wire.

    representation: [n,d] float32 (n = samples, classes or 1). label_encoding: [n,C] float32, rows sum to 1
    (one-hot rows, or one soft vector). extra: whatever else the system sends, by name.
    """

    client: int
    round: int
    form: str
    representation: Tensor
    label_encoding: Tensor
    extra: Mapping[str, Tensor] = field(default_factory=dict)

    def __post_init__(self) -> None:
        where = f"upload of client {self.client}, round {self.round} ({self.form})"
        if self.representation.ndim != 2 or self.label_encoding.ndim != 2:
            raise AuditError(f"{where}: representation and label_encoding must be [n,d] and [n,C]")
        if len(self.representation) != len(self.label_encoding):
            raise AuditError(
                f"{where}: {len(self.representation)} representations but {len(self.label_encoding)} label encodings"
            )

    @property
    def tensors(self) -> dict[str, Tensor]:
        """Everything that is sent, by name."""
        return {"representation": self.representation, "label_encoding": self.label_encoding, **self.extra}


@dataclass(frozen=True)
class Classifier:
    """The server's broadcast head: weight [C,d], bias [C]."""

    weight: Tensor
    bias: Tensor


@dataclass(frozen=True)
class ServerView:
    """What an honest-but-curious server holds: uploads so far, the classifiers it sent, and nothing else."""

    system: str
    form: str
    mechanism: str
    feature_width: int
    num_classes: int
    uploads: tuple[Upload, ...]
    classifiers: Mapping[int, Classifier] = field(default_factory=dict)

    @property
    def clients(self) -> list[int]:
        """Ids of the clients that uploaded anything, ascending."""
        return sorted({upload.client for upload in self.uploads})

    def client(self, client: int) -> "ServerView":
        """The stream of one client, oldest round first."""
        own = [upload for upload in self.uploads if upload.client == client]
        return replace(self, uploads=tuple(sorted(own, key=lambda upload: upload.round)))

    @property
    def latest(self) -> Upload:
        """The newest upload of a view that holds one client."""
        if len(self.clients) != 1:
            raise AuditError(f"`latest` needs the view of one client; this one holds {len(self.clients)}")
        return max(self.uploads, key=lambda upload: upload.round)


@dataclass(frozen=True)
class Mixing:
    """A sparse M [n,N]: sample i enters row `row[i]` with weight `weight[i]` (0: it does not contribute).

    row: [N] int64 in [0, n). weight: [N] >= 0, summing to 1 within each row; float64 where an upload is made from it,
    lest 41 times 1/41 is not 1 and the label encoding tells how many images a class has.
    """

    row: Tensor
    weight: Tensor
    n: int

    def apply(self, values: Tensor) -> Tensor:
        """Weighted row sums: values [N,...] -> [n,...], summed in float64 and returned in float32."""
        out = values.new_zeros((self.n, *values.shape[1:]), dtype=torch.float64)
        row = self.row.to(values.device)
        weight = self.weight.double().reshape(-1, *(1,) * (values.ndim - 1)).to(values.device)
        for start in range(0, len(values), AT_ONCE):  # in order, so that sums do not depend on the blocks
            some = slice(start, start + AT_ONCE)
            out.index_add_(0, row[some], values[some].double() * weight[some])
        return out.float()


@dataclass(frozen=True)
class FormResult:
    """A form applied to one client in one round: what is sent, and the mixing that stays behind as truth."""

    representation: Tensor
    label_encoding: Tensor
    mixing: Mixing


class KnowledgeForm(ABC):
    """A knowledge form. A subclass writes `mixing`; the final `__call__` checks, applies and returns.

    name: registry name. mechanism: which of the form's mechanisms, where it has several.
    """

    name: ClassVar[str]
    mechanism: str = ""

    @property
    def lasting(self) -> bool:
        """Whether `mixing` wants the same draws every round: one generator per client, not per client and round."""
        return False

    @property
    @abstractmethod
    def discloses(self) -> str:
        """What the label encoding tells the server, in plain words."""

    @abstractmethod
    def mixing(self, labels: Tensor, num_classes: int, generator: torch.Generator) -> Mixing:
        """Labels [N] int64 in [0, C) -> the mixing of this client and round. Draw only from `generator`."""

    @final
    def __call__(
        self, representations: Tensor, labels: Tensor, num_classes: int, generator: torch.Generator
    ) -> FormResult:
        """Representations [N,d], labels [N] -> what is sent (float32) and its mixing."""
        if representations.ndim != 2 or len(representations) != len(labels) or len(labels) == 0:
            raise AuditError(
                f"form '{self.name}' needs representations [N,d] and labels [N], N > 0; "
                f"got {tuple(representations.shape)} and {tuple(labels.shape)}"
            )
        mixing = self.mixing(labels, num_classes, generator)
        return FormResult(
            representation=mixing.apply(representations),
            label_encoding=mixing.apply(F.one_hot(labels, num_classes).float()),
            mixing=replace(mixing, weight=mixing.weight.float()),
        )


FORMS: Registry[type[KnowledgeForm]] = Registry("form", package="knowledge_forms")
