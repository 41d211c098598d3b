"""Tiny analytic knowledge and views for attack tests."""

import torch
from torch import nn

from attacks.knowledge import Q3
from knowledge_forms.base import ServerView, Upload


def knowledge(
    count: int = 80,
    shape: tuple[int, int, int] = (1, 6, 6),
    classes: int = 4,
    seed: int = 0,
    module: nn.Module | None = None,
) -> Q3:
    """Random auxiliary images behind `module`, by default an encoder that flattens and keeps everything."""
    module = module or nn.Flatten()
    generator = torch.Generator().manual_seed(seed)
    return Q3(
        images=torch.rand(count, *shape, generator=generator),
        labels=torch.randint(0, classes, (count,), generator=generator),
        num_classes=classes,
        seed=seed,
        architecture=nn.Flatten,
        encoder=module,
        module=module,
    )


def view(encoding: torch.Tensor, width: int = 36, client: int = 0) -> ServerView:
    """One upload of random representations with the given label encoding [n,C]."""
    representation = torch.rand(len(encoding), width, generator=torch.Generator().manual_seed(5))
    upload = Upload(client, 0, "raw", representation, encoding)
    return ServerView("fedallrep", "raw", "", width, encoding.shape[1], (upload,))


def upload_of(representation: torch.Tensor, encoding: torch.Tensor | None = None) -> ServerView:
    """One upload of the given rows [n,d]; without an encoding [n,C] the rows take four classes in turn."""
    if encoding is None:
        encoding = torch.eye(4)[torch.arange(len(representation)) % 4]
    upload = Upload(0, 0, "raw", representation, encoding)
    return ServerView("fedallrep", "raw", "", representation.shape[1], encoding.shape[1], (upload,))
