"""FedAvgCNN, the plain CNN of federated learning (McMahan et al., AISTATS 2017, arXiv 1602.05629)."""

from torch import nn

from fedre_audit.models.base import FAMILIES, MODELS, ImageShape
from knowledge_forms.errors import AuditError


@MODELS.register("fedavg_cnn")
def fedavg_cnn(image_shape: ImageShape) -> nn.Module:
    """Two 5x5 convolutions (32, 64) with max pooling, then 512 units: [N,c,h,w] -> [N,512] >= 0.

    873,408 parameters at 3x32x32 (flatten 1,600), 5,592,000 at 3x64x64 (flatten 10,816).
    """
    channels, height, width = image_shape
    grid = [((side - 4) // 2 - 4) // 2 for side in (height, width)]
    if min(grid) < 1:
        raise AuditError(f"model 'fedavg_cnn' needs images of at least 16x16, got {height}x{width}")
    extractor = nn.Sequential(
        nn.Conv2d(channels, 32, 5), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(32, 64, 5), nn.ReLU(), nn.MaxPool2d(2),
        nn.Flatten(), nn.Linear(64 * grid[0] * grid[1], 512), nn.ReLU(),
    )  # fmt: skip
    return extractor


FAMILIES.register("fedavg_cnn")(("fedavg_cnn",))
