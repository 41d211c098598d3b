"""FedRE: clients upload one entangled representation, the server trains the shared classifier on them.

CVPR 2026, arXiv 2511.22265; round order as in the authors' later repair: send -> evaluate -> train -> upload -> step.
"""

from collections.abc import Sequence

from fedre_audit.config import AuditConfig
from fedre_audit.federation.server import server_step, stack
from fedre_audit.federation.systems.base import SYSTEMS, SharedClassifier
from knowledge_forms.base import Classifier, Upload


@SYSTEMS.register("fedre")
class FedRE(SharedClassifier):
    """The global classifier continues from round to round, by the released server optimiser: batch 32, summed loss."""

    name = "fedre"
    form = "entangled"

    def aggregate(
        self, server: Classifier | None, uploads: Sequence[Upload], config: AuditConfig
    ) -> tuple[Classifier | None, float | None]:
        """Ten uploads and one epoch are exactly one gradient step."""
        if server is None:
            return None, None
        return server_step(server, *stack(uploads), lr=config.server_lr, epochs=config.server_epochs)
