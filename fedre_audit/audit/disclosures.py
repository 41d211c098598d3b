"""What leaks without any attack, read off the label encodings; flags for clients and classes that are too small."""

from typing import Any

from fedre_audit.audit.truth import Truth
from fedre_audit.federation.history import History
from knowledge_forms.base import ServerView


def disclosures(view: ServerView) -> list[dict[str, Any]]:
    """Per client: the class set of its newest label encoding, and how many rounds of exact weights the server keeps."""
    found: list[dict[str, Any]] = []
    for client in view.clients:
        stream = view.client(client)
        held = stream.latest.label_encoding.sum(0) > 0
        found.append({"client": client, "kind": "class_set", "value": held.nonzero().flatten().tolist()})
        if view.form == "entangled":
            rounds = len({upload.round for upload in stream.uploads})
            found.append({"client": client, "kind": "mixing_weights_rounds", "value": rounds})
    return found


def flags(truth: Truth) -> list[dict[str, Any]]:
    """One-class clients (the entangled representation *is* a prototype) and one-image classes (the prototype *is* a
    representation), from the newest round of each client."""
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
