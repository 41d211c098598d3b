"""The contract of a federated system: what it sends, and what it does with the uploads."""

from abc import ABC
from collections.abc import Sequence
from typing import ClassVar

import torch

from fedre_audit.config import AuditConfig
from fedre_audit.models.base import ClientModel
from knowledge_forms.base import Classifier, Upload
from knowledge_forms.registry import Registry


class System(ABC):
    """A federation's protocol around the engine's round: send -> evaluate -> train locally -> upload -> aggregate.

    The defaults are those of a system that sends nothing. The only state is the server's classifier, which the
    engine keeps and hands back, so a system itself has none.
    form: name of the knowledge form its clients upload; None: they upload nothing.
    """

    name: ClassVar[str]
    form: ClassVar[str | None] = None

    def start(self, models: Sequence[ClientModel]) -> Classifier | None:
        """The server's classifier before round 0, on the CPU."""
        return None

    def send(self, server: Classifier | None, models: Sequence[ClientModel], config: AuditConfig) -> Classifier | None:
        """Overwrite what the server may overwrite at the clients; returns what was sent, None for nothing."""
        return None

    def aggregate(
        self, server: Classifier | None, uploads: Sequence[Upload], config: AuditConfig
    ) -> tuple[Classifier | None, float | None]:
        """The round's uploads in client order -> the server's new classifier and its loss."""
        return server, None


def head_of(model: ClientModel) -> Classifier:
    """A copy of a client's classifier, on the CPU."""
    head = model.classifier
    return Classifier(head.weight.detach().cpu().clone(), head.bias.detach().cpu().clone())


def overwrite_head(model: ClientModel, classifier: Classifier) -> None:
    """Copy a classifier's values into a client's own parameters."""
    with torch.no_grad():
        model.classifier.weight.copy_(classifier.weight)
        model.classifier.bias.copy_(classifier.bias)


class SharedClassifier(System):
    """A system whose server trains one classifier on the uploads and sends it to every client, present or not."""

    def start(self, models: Sequence[ClientModel]) -> Classifier | None:
        """Client 0's initial head: a copy, so that its local training never moves the global one."""
        return head_of(models[0])

    def send(self, server: Classifier | None, models: Sequence[ClientModel], config: AuditConfig) -> Classifier | None:
        """Every client's head becomes the global one; nothing is sent with `--broadcast off`."""
        if server is None or not config.broadcast:
            return None
        for model in models:
            overwrite_head(model, server)
        return server


SYSTEMS: Registry[type[System]] = Registry("system", package="fedre_audit.federation.systems")
