"""FedRE: clients upload one entangled representation, the server trains the shared classifier on them.

CVPR 2026, arXiv 2511.22265; round order as in the authors' later repair: send -> evaluate -> train -> upload -> step.
"""

from collections.abc import Sequence

import torch

from fedre_audit.config import AuditConfig
from fedre_audit.federation.server import server_step
from fedre_audit.federation.systems.base import SYSTEMS, System, head_of, overwrite_head
from fedre_audit.models.base import ClientModel
from knowledge_forms.base import Classifier, Upload


@SYSTEMS.register("fedre")
class FedRE(System):
    """The global classifier starts as a copy of client 0's and continues from round to round."""

    name = "fedre"
    form = "entangled"

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

    def aggregate(
        self, server: Classifier | None, uploads: Sequence[Upload], config: AuditConfig
    ) -> tuple[Classifier | None, float | None]:
        """One pass of the released server optimiser over the uploads."""
        if server is None:
            return None, None
        return server_step(
            server,
            torch.cat([upload.representation for upload in uploads]),
            torch.cat([upload.label_encoding for upload in uploads]),
            lr=config.server_lr,
        )
