"""What leaks without any attack, read off the label encodings; flags for clients and classes that are too small."""

from typing import Any

import torch
from torch import Tensor

from fedre_audit.audit.truth import Truth
from fedre_audit.federation.history import History
from knowledge_forms.base import ServerView

WITHIN = ("RSR", "RAR")
"""Mechanisms that weigh images unlike inside a class, which the label encoding does not tell."""


def label_histogram(stream: ServerView) -> tuple[str, Tensor] | None:
    """What the label encodings of one client tell of its class shares [C]: (how, shares), or None for nothing.

    Raw uploads and VAR tell them exactly; RSR and RAR in a noisy way that averages out over rounds, with an error
    that shrinks as 1 / sqrt(rounds). Mixtures of prototypes tell the class set and no counts.
    """
    encodings = torch.stack([upload.label_encoding.mean(0) for upload in stream.uploads])
    if stream.form == "raw" or stream.mechanism == "VAR":
        return "label_histogram_exact", encodings[-1]
    if stream.form == "entangled" and stream.mechanism in ("RSR", "RAR"):
        return "label_histogram_estimated", encodings.mean(0)
    return None


def disclosures(view: ServerView) -> list[dict[str, Any]]:
    """Per client: the class set of its label encodings, how many rounds of weights the server keeps (exact ones; of
    RSR and RAR those of classes alone), and the class shares where the encodings tell them."""
    found: list[dict[str, Any]] = []
    for client in view.clients:
        stream = view.client(client)
        held = torch.stack([upload.label_encoding.sum(0) for upload in stream.uploads]).sum(0) > 0
        found.append({"client": client, "kind": "class_set", "value": held.nonzero().flatten().tolist()})
        if view.form == "entangled":
            rounds = len({upload.round for upload in stream.uploads})
            kind = "class_weights_rounds" if stream.mechanism in WITHIN else "mixing_weights_rounds"
            found.append({"client": client, "kind": kind, "value": rounds})
        histogram = label_histogram(stream)
        if histogram is not None:
            how, shares = histogram
            named = {str(label): round(float(shares[label]), 4) for label in shares.nonzero().flatten().tolist()}
            found.append({"client": client, "kind": how, "value": named})
    return found


def flags(truth: Truth) -> list[dict[str, Any]]:
    """One-class clients (a mixture of one class is its prototype) and one-image classes (their prototype is a
    representation), from the newest round of each client; what it means for a form is said by the page."""
    newest: dict[int, int] = {}
    for client, round_ in truth:
        newest[client] = max(round_, newest.get(client, -1))
    found: list[dict[str, Any]] = []
    for client, round_ in sorted(newest.items()):
        counts = truth[client, round_].class_counts
        if int((counts > 0).sum()) == 1:
            found.append({"client": client, "class": int(counts.argmax()), "kind": "one_class_client"})
        found += [
            {"client": client, "class": label, "kind": "one_image_class"}
            for label in (counts == 1).nonzero().flatten().tolist()
        ]
    return found


def collapse_flags(history: History) -> list[dict[str, Any]]:
    """Clients whose encoder answered every image alike in their newest round: whatever they send, it tells nothing."""
    return [{"client": client, "class": None, "kind": "encoder_collapsed"} for client in history.collapsed()]
