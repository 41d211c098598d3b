"""Entangled representations: one vector and one soft label encoding per round (FedRE, CVPR 2026, arXiv 2511.22265)."""

import torch
from torch import Tensor

from knowledge_forms.base import FORMS, KnowledgeForm, Mixing


def normalised_uniform(size: int, generator: torch.Generator) -> Tensor:
    """FedRE's weights: i.i.d. U(0,1) divided by their sum; [size] float32, each >= 0, summing to 1."""
    draw = torch.rand(size, generator=generator, dtype=torch.float64).clamp_(min=1e-12)
    return (draw / draw.sum()).float()


@FORMS.register("entangled")
class EntangledRepresentation(KnowledgeForm):
    """RAP, random average prototype: r = sum_c w_c p_c over held classes, label encoding w, drawn afresh each round."""

    name = "entangled"
    mechanism = "RAP"
    discloses = "the set of classes the client holds and the exact mixing weights"

    def mixing(self, labels: Tensor, num_classes: int, generator: torch.Generator) -> Mixing:
        """Sample i enters the one row with weight w_{y_i} / (images of class y_i)."""
        held, rank, counts = labels.unique(return_inverse=True, return_counts=True)
        weights = normalised_uniform(len(held), generator)
        return Mixing(row=torch.zeros_like(labels), weight=(weights / counts)[rank], n=1)
