"""Every representation with its label: what FedAllRep uploads, and the ceiling of every audit."""

import torch
from torch import Tensor

from knowledge_forms.base import FORMS, KnowledgeForm, Mixing


@FORMS.register("raw")
class Raw(KnowledgeForm):
    """Upload every mapped representation, one-hot label encoding; rows in sample order."""

    name = "raw"
    discloses = "the label of every sample"

    def mixing(self, labels: Tensor, num_classes: int, generator: torch.Generator) -> Mixing:
        """The identity: sample i is row i."""
        n = len(labels)
        return Mixing(row=torch.arange(n), weight=torch.ones(n), n=n)
