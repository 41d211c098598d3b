"""The stream of one client as a linear system: r_t = P_t^T w_t + noise, w_t known, P_t drifting."""

from dataclasses import dataclass

import torch
from torch import Tensor

from knowledge_forms.base import ServerView
from knowledge_forms.errors import AuditError


@dataclass(frozen=True)
class Stream:
    """T uploads of one client, oldest first, in float64.

    weights: [T,h], the label encodings restricted to the classes ever held (0 where a class is absent in a round).
    uploads: [T,d]. classes: int64 [h], ascending. rounds: int64 [T], ascending; gaps are rounds without upload.
    """

    weights: Tensor
    uploads: Tensor
    classes: Tensor
    rounds: Tensor

    @property
    def shape(self) -> tuple[int, int, int]:
        """(T, h, d)."""
        return (*self.weights.shape, self.uploads.shape[1])


def stream_of(view: ServerView) -> Stream:
    """The stream in the view of one client. Raises AuditError on several clients, other forms, non-finite uploads."""
    client = view.latest.client
    uploads = view.client(client).uploads
    for upload in uploads:
        if len(upload.representation) != 1:
            raise AuditError(
                f"client {client}, round {upload.round}: unmixing takes one entangled vector a round, this upload has "
                f"{len(upload.representation)} rows of form '{view.form}'; decode those directly"
            )
    encodings = torch.cat([upload.label_encoding for upload in uploads]).double().cpu()
    vectors = torch.cat([upload.representation for upload in uploads]).double().cpu()
    for upload, *values in zip(uploads, encodings, vectors, strict=True):
        if not all(bool(value.isfinite().all()) for value in values):
            raise AuditError(f"client {client}, round {upload.round}: the upload is not finite; record it again")
    classes = (encodings != 0).any(0).nonzero().flatten()
    return Stream(encodings[:, classes], vectors, classes, torch.tensor([upload.round for upload in uploads]))


def smoothed_norms(uploads: Tensor, reach: int = 2) -> Tensor:
    """Uploads [T,d] -> [T], geometric mean of their norms over rounds t-reach..t+reach, edge values repeated.

    Dividing by the own norm would distort the linear model; a mean over rounds hardly depends on one w_t.
    """
    norms = uploads.norm(dim=1)
    logs = norms.clamp(min=float(norms.max()) * 1e-6 or 1.0).log()
    padded = torch.cat([logs[:1].expand(reach), logs, logs[-1:].expand(reach)])
    return padded.unfold(0, 2 * reach + 1, 1).mean(1).exp()


def scale_of(uploads: Tensor, last: int = 10) -> float:
    """Standard deviation of all entries of the last ten uploads: the only scale an attacker can know."""
    return float(uploads[-last:].std(correction=0))


def permuted_weights(weights: Tensor, count: int, seed: int) -> Tensor:
    """Weights [T,h] -> [count,T,h]: the non-zero entries of each row permuted independently (a null hypothesis)."""
    generator = torch.Generator().manual_seed(seed)
    order = torch.rand(count, *weights.shape, generator=generator, dtype=torch.float64)
    held = weights != 0
    # Argsort puts held entries first in random order; the k-th of them lands at the k-th held place.
    source = (order + 2.0 * ~held).argsort(-1)
    place = (~held).long().argsort(dim=-1, stable=True).expand_as(source)
    permuted = torch.zeros_like(order)
    return permuted.scatter_(-1, place, weights.expand_as(order).gather(-1, source))


def within_bounds(states: Tensor, weights: Tensor, uploads: Tensor) -> Tensor:
    """States [T,h,d] clipped to what non-negative uploads [T,d] allow: 0 <= P_tc <= r_t / w_tc, entry by entry.

    Representations after a rectifier are non-negative, and uploads show that; as the bounds are then true, clipping
    never moves an estimate away from the truth. Uploads with a negative entry leave the states as they are.
    """
    if float(uploads.min()) < 0:
        return states
    highest = (uploads[:, None, :] / weights[:, :, None]).nan_to_num(nan=torch.inf).to(states)
    return torch.minimum(states.clamp(min=0.0), highest)
