"""Is the class recognisable? A small classifier of images, trained on auxiliary images and never on the victim's."""

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from fedre_audit.seeding import derive_seed

STEPS, BATCH, RATE = 150, 64, 2e-3


def train_evaluator(images: Tensor, labels: Tensor, num_classes: int, seed: int, steps: int = STEPS) -> nn.Module:
    """Two strided convolutions and a linear layer; images [N,c,h,w] in [0,1]. Its own generator, no global draw."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(derive_seed(seed, "evaluator"))
        model = nn.Sequential(
            nn.Conv2d(images.shape[1], 16, 5, stride=2, padding=2), nn.ReLU(),
            nn.Conv2d(16, 32, 5, stride=2, padding=2), nn.ReLU(),
            nn.AdaptiveAvgPool2d(4), nn.Flatten(), nn.Linear(512, num_classes),
        )  # fmt: skip
        optimiser = torch.optim.Adam(model.parameters(), lr=RATE)
        for _ in range(steps):
            batch = torch.randint(len(images), (BATCH,))
            optimiser.zero_grad()
            F.cross_entropy(model(images[batch] - 0.5), labels[batch].long()).backward()
            optimiser.step()
    return model.eval()


@torch.no_grad()
def recognised(model: nn.Module, images: Tensor) -> Tensor:
    """Class [n] that the evaluator sees in each image; -1 where a pixel is not finite."""
    seen = torch.cat([model(batch.nan_to_num(0.5) - 0.5).argmax(1) for batch in images.split(512)])
    seen[~torch.isfinite(images).flatten(1).all(1)] = -1
    return seen
