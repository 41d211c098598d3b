"""Representation mappings: features of any native width a to the one width d that a federation agrees on.

AP and MP pool over the feature axis, FC is learned (FedRE, arXiv 2511.22265). A pooling window i covers entries
floor(i*a/d) to ceil((i+1)*a/d) - 1: the identity at a = d, pairs at a = 2d, repeats where a < d.
"""

from collections.abc import Callable

from torch import Tensor, nn
from torch.nn import functional as F

from knowledge_forms.registry import Registry

MAPPINGS: Registry[Callable[[int, int], nn.Module]] = Registry("mapping", package="knowledge_forms")
"""Name -> builder of the mapping [N,a] -> [N,d] from (a, d)."""


@MAPPINGS.register("AP")
class AveragePool(nn.Module):
    """Adaptive average pooling: a fixed linear map that server and attacker know."""

    def __init__(self, native_width: int, width: int) -> None:
        super().__init__()
        self.width = width

    def forward(self, features: Tensor) -> Tensor:
        """[N,a] -> [N,d]."""
        return features if features.shape[1] == self.width else F.adaptive_avg_pool1d(features, self.width)


@MAPPINGS.register("MP")
class MaxPool(AveragePool):
    """Adaptive max pooling: fixed and known, but not linear."""

    def forward(self, features: Tensor) -> Tensor:
        """[N,a] -> [N,d]."""
        return features if features.shape[1] == self.width else F.adaptive_max_pool1d(features, self.width)


@MAPPINGS.register("FC")
class Learned(nn.Linear):
    """A linear layer of each client's own, trained with its local loss and never shared: secret to the client."""
