"""Shadow encoder: a server that can query no client trains its own, through the classifiers it broadcast.

After PCAT (Gao & Zhang, USENIX Security 2023): labelled public images, a pseudo-client trained with cross-entropy
through the sequence of server classifiers, and a decoder on its representations. Client and pseudo-client agree only
on what those classifiers look at, so the decoder reads the representation in their row space and nowhere else. How
much of it carries over to an encoder never seen is asked of a second pseudo-client, of another architecture and on its
own images: the penalty of the decoder is the one that reads the stranger best, up to where only the mean image is left.
"""

from collections.abc import Callable, Mapping

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from attacks.base import ATTACKS, Attack
from attacks.knowledge import Q0
from attacks.ridge import ridge
from knowledge_forms.base import Classifier, Upload
from knowledge_forms.errors import AuditError

PENALTIES = (1.0, 10.0, 100.0, 1e4)  # a real client is stranger than the stranger, so not below 1


def pseudo_encoder(channels: int, width: int) -> nn.Sequential:
    """Images [N,c,h,w] in [0,1] of any size -> non-negative representations [N,width]; the decoder's."""
    return nn.Sequential(
        nn.Conv2d(channels, 32, 5, stride=2, padding=2), nn.ReLU(),
        nn.Conv2d(32, 64, 3, stride=2, padding=1), nn.ReLU(),
        nn.AdaptiveAvgPool2d(6), nn.Flatten(), nn.Linear(64 * 36, width), nn.ReLU(),
    )  # fmt: skip


def stranger(channels: int, width: int) -> nn.Sequential:
    """The same by another architecture: the unknown client that the penalty is chosen for."""
    return nn.Sequential(
        nn.Conv2d(channels, 24, 3, padding=1), nn.ReLU(), nn.AdaptiveMaxPool2d(12),
        nn.Conv2d(24, 48, 3, padding=1), nn.ReLU(), nn.AdaptiveMaxPool2d(4),
        nn.Flatten(), nn.Linear(48 * 16, width), nn.ReLU(),
    )  # fmt: skip


def spread(centred: Tensor) -> Tensor:
    """Root mean square of all entries; 1 where they are all 0."""
    size = centred.square().mean().sqrt()
    return torch.where(size > 0, size, torch.ones_like(size))


def seen_by(classifiers: Mapping[int, Classifier], tolerance: float) -> Tensor:
    """Orthonormal basis [d,k] of what the classifiers look at: contrasts between their rows, all rounds stacked.

    Directions weaker than `tolerance` times the strongest are left out.
    """
    weights = torch.cat([head.weight - head.weight.mean(0) for head in classifiers.values()])
    _, strength, directions = torch.linalg.svd(weights.double(), full_matrices=False)
    return directions[strength > tolerance * strength[0]].T.float()


@ATTACKS.register("shadow")
class Shadow(Attack):
    """Ridge decoder of a pseudo-client trained through the broadcast classifiers, the newest of them last.

    steps: training steps of each of the two pseudo-clients. tolerance: see `seen_by`.
    """

    name = "shadow"
    level = "Q0"
    cost = "medium"

    def __init__(
        self,
        *,
        steps: int = 200,
        lr: float = 1e-3,
        batch_size: int = 64,
        tolerance: float = 0.2,
        penalties: tuple[float, ...] = PENALTIES,
    ) -> None:
        self.steps = steps
        self.lr = lr
        self.batch_size = batch_size
        self.tolerance = tolerance
        self.penalties = penalties

    def _fit(self, knowledge: Q0) -> None:
        if not knowledge.classifiers:
            raise AuditError(
                "attack 'shadow' is trained through the classifiers that the server broadcast and there are none; "
                "turn --broadcast on or take 'shadow' off --attacks"
            )
        heads = [knowledge.classifiers[round] for round in sorted(knowledge.classifiers)]
        generator = knowledge.generator()
        self.basis_ = seen_by(knowledge.classifiers, self.tolerance).to(knowledge.images)
        images, labels = knowledge.images, knowledge.labels
        target = images.flatten(1)
        fit_on, unseen = slice(None, None, 2), slice(1 if len(images) > 1 else 0, None, 2)
        own = self._represent(pseudo_encoder, images, labels, images, heads, generator)
        other = self._represent(stranger, images[unseen], labels[unseen], images[unseen], heads, generator)
        errors = [
            (ridge(own[fit_on], target[fit_on], penalty)(other) - target[unseen]).square().mean()
            for penalty in self.penalties
        ]
        self.penalty_ = self.penalties[int(torch.stack(errors).argmin())]
        self.pseudo_ = own
        self.means_ = knowledge.class_means(own)
        self.decoder_ = ridge(own, target, self.penalty_)

    def _represent(
        self,
        build: Callable[[int, int], nn.Module],
        images: Tensor,
        labels: Tensor,
        asked: Tensor,
        heads: list[Classifier],
        generator: torch.Generator,
    ) -> Tensor:
        """Train a pseudo-client on images and labels; its answers for `asked` as the classifiers see them, [N,k].

        Centred, and divided by their overall size.
        """
        with torch.random.fork_rng(devices=[]):
            torch.default_generator.manual_seed(int(torch.randint(2**62, (), generator=generator)))
            encoder = build(images.shape[1], heads[0].weight.shape[1]).to(images.device)
        labelled = labels >= 0
        if labelled.any():
            self._train(encoder, images[labelled], labels[labelled], heads, generator)
        with torch.no_grad():
            z = torch.cat([encoder(batch) for batch in asked.split(512)]) @ self.basis_
        return (z - z.mean(0)) / spread(z - z.mean(0))

    def _train(
        self, encoder: nn.Module, images: Tensor, labels: Tensor, heads: list[Classifier], generator: torch.Generator
    ) -> None:
        """`steps` of Adam on the cross-entropy; every classifier has its turn, in the order of the rounds."""
        encoder.to(memory_format=torch.channels_last)
        optimiser = torch.optim.Adam(encoder.parameters(), lr=self.lr)
        for step in range(self.steps):
            head = heads[step * len(heads) // self.steps]
            index = torch.randint(len(images), (self.batch_size,), generator=generator).to(images.device)
            z = encoder(images[index].contiguous(memory_format=torch.channels_last))
            loss = F.cross_entropy(z @ head.weight.to(z).T + head.bias.to(z), labels[index].to(z.device))
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()

    def _reconstruct(self, upload: Upload) -> Tensor:
        z = upload.representation.to(self.basis_) @ self.basis_
        expected = upload.label_encoding.to(self.means_) @ self.means_
        # Centre and scale of an unknown encoder are read off the upload: one shift and one factor for all rows, since
        # more would take from each row what tells it from its class. A single row has neither: only its label is left.
        reference = self.pseudo_ if upload.form == "raw" else expected
        centred, width = z - z.mean(0), spread(reference - reference.mean(0))
        aligned = expected.mean(0) + centred / spread(centred) * width
        return self.decoder_(aligned).reshape(-1, *self.image_shape_)
