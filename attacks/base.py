"""The contract of an attack: `fit` learns from what the threat level gives, `reconstruct` turns a view into images.

A subclass writes `_reconstruct` (and usually `_fit`). The final callers check level and shapes, and clamp to [0,1].
What was made from no number, or overflowed, is NaN: the auditor counts it, and it never reads as privacy.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar, Self, final

import torch
from torch import Tensor

from attacks.knowledge import Q0, limited
from knowledge_forms.base import ServerView, Upload
from knowledge_forms.errors import AuditError
from knowledge_forms.registry import Registry


@dataclass(frozen=True)
class Reconstructions:
    """One image per row of an upload: images [n,c,h,w] in [0,1], made from `client`'s upload of `round`."""

    client: int
    round: int
    images: Tensor


class Attack(ABC):
    """Base of all attackers. name: registry name. level: the lowest threat level it needs. cost: cheap|medium|heavy."""

    name: ClassVar[str]
    level: ClassVar[str] = "Q0"
    cost: ClassVar[str] = "cheap"
    uses_upload: ClassVar[bool] = True

    @final
    def fit(self, knowledge: Q0) -> Self:
        """Learn from the attacker's knowledge, of which `_fit` sees what `level` allows; returns self.

        Raises AuditError below the attack's level.
        """
        knowledge = limited("attack", self.name, self.level, knowledge)
        self.image_shape_ = tuple(knowledge.images.shape[1:])
        self._fit(knowledge)
        return self

    def _fit(self, knowledge: Q0) -> None:
        """Learned state goes to attributes that end in `_`. Draw only from `knowledge.generator()`."""

    @abstractmethod
    def _reconstruct(self, upload: Upload) -> Tensor:
        """One upload of n rows -> images [n,c,h,w], any float range (the caller clamps)."""

    @final
    def reconstruct(self, view: ServerView) -> Reconstructions:
        """The view of one client -> reconstructions of its newest upload, clamped to [0,1]; NaN where it is no number.

        An image is NaN as a whole where a pixel is not finite, or where it was to use a row that is not.
        """
        if not hasattr(self, "image_shape_"):
            raise AuditError(f"attack '{self.name}' is not fitted; call fit(knowledge) first")
        upload = view.latest
        with torch.no_grad():
            images = self._reconstruct(upload)
        expected = (len(upload.representation), *self.image_shape_)
        if tuple(images.shape) != expected:
            raise ValueError(f"attack '{self.name}' returned {tuple(images.shape)} instead of {expected}")
        broken = ~images.flatten(1).isfinite().all(1)
        if self.uses_upload:  # an answer of finite pixels to such a row rests on nothing
            broken |= ~upload.representation.flatten(1).isfinite().all(1).to(broken.device)
        whole = images.float().clamp(0.0, 1.0)
        return Reconstructions(upload.client, upload.round, whole.masked_fill(broken[:, None, None, None], torch.nan))

    def __repr__(self) -> str:
        options = ", ".join(f"{k}={v!r}" for k, v in vars(self).items() if not k.endswith("_"))
        return f"{type(self).__name__}({options})"


ATTACKS: Registry[type[Attack]] = Registry("attack", package="attacks")
