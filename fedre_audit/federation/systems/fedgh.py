"""FedGH: clients upload class prototypes, the server trains the shared classifier on them as on samples.

ACM MM 2023, arXiv 2303.13137; settings as in HtFLlib (arXiv 2506.03954), since the original code never updates the
header: SGD with lr 0.01, mean loss, shuffled batches of the clients' size, one epoch.
"""

from collections.abc import Sequence

from fedre_audit.config import AuditConfig
from fedre_audit.federation.server import server_step, stack
from fedre_audit.federation.systems.base import SYSTEMS, SharedClassifier
from fedre_audit.seeding import generator
from knowledge_forms.base import Classifier, Upload


@SYSTEMS.register("fedgh")
class FedGH(SharedClassifier):
    """The header learns from prototypes without counts; that of a class of one image is that image's representation."""

    name = "fedgh"
    form = "prototype"

    def aggregate(
        self, server: Classifier | None, uploads: Sequence[Upload], config: AuditConfig
    ) -> tuple[Classifier | None, float | None]:
        """One pass, or `--server_epochs`, over all uploaded rows of the round in random order."""
        if server is None:
            return None, None
        return server_step(
            server,
            *stack(uploads),
            lr=config.server_lr,
            epochs=config.server_epochs,
            batch_size=config.batch_size,
            reduction="mean",
            shuffle=generator(config.seed, "server", round=uploads[0].round),
        )
