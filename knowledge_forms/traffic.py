"""How much crosses the wire: scalars and bytes, counted tensor by tensor."""

from collections.abc import Iterable
from dataclasses import dataclass

from knowledge_forms.base import Classifier, Upload


@dataclass(frozen=True)
class Traffic:
    """Scalars and bytes of one round, all clients together.

    upload_scalars is the honest count: every scalar sent (label encodings dense). upload_scalars_published_count
    counts representations alone, as the published tables do. broadcast_scalars counts weight and bias per client.
    """

    upload_scalars: int
    upload_scalars_published_count: int
    broadcast_scalars: int
    bytes: int


def count_traffic(uploads: Iterable[Upload], broadcast: Classifier | None, receivers: int) -> Traffic:
    """Traffic of one round from the recorded tensors; `receivers` clients get the broadcast.

    One-hot label encodings are sent as class ids, so they count one scalar a row; soft ones count all C.
    """
    honest = published = 0
    for upload in uploads:
        encoding = upload.label_encoding
        # A mean of one-hot rows can end a float below 1.
        one_hot = upload.form != "entangled" and bool((encoding.amax(1) > 1 - 1e-5).all())
        published += upload.representation.numel()
        honest += upload.representation.numel() + (len(encoding) if one_hot else encoding.numel())
        honest += sum(tensor.numel() for tensor in upload.extra.values())
    down = 0 if broadcast is None else receivers * (broadcast.weight.numel() + broadcast.bias.numel())
    return Traffic(honest, published, down, 4 * (honest + down))
