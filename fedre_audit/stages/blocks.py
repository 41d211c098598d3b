"""Blocks of scores.json that need no attacker: what was trained and sent, and what unmixing could do."""

from collections.abc import Sequence
from typing import Any

import torch

from fedre_audit.audit.recovery import relative_error
from fedre_audit.audit.truth import Contribution, read_truth
from fedre_audit.federation.history import read_history
from fedre_audit.runs import Run
from fedre_audit.stages.attack import STREAMED, read_unmixed
from knowledge_forms.base import ServerView


def unmixing_block(run: Run, view: ServerView, offset: int) -> list[dict[str, Any]]:
    """What unmixing could and could not do, client by client; its true error where there is truth."""
    if view.form != STREAMED:
        return []
    found: list[dict[str, Any]] = []
    truth = read_truth(run.path, view.form) if (run.path / "truth" / view.form).is_dir() else {}
    for client in view.clients:
        contribution = truth.get((client, view.client(client).latest.round))
        recovered, meta = read_unmixed(run, view, client)
        classes = (
            int((view.client(client).latest.label_encoding.sum(0) > 0).sum())
            if recovered is None
            else len(recovered.latest.representation)
        )
        found.append(
            {"client": offset + client, "rounds": meta["rounds"], "classes": classes, "rank": meta["rank"],
             "condition": meta["condition"], "predicted_error": meta["predicted_error"], "null_gap": meta["null_gap"],
             "recovered": recovered is not None, "validated": meta["status"] == "validated", "reason": meta["reason"],
             "oldest": meta.get("oldest", 0), "true_error": true_error(recovered, contribution)}
        )  # fmt: skip
    return found


def true_error(recovered: ServerView | None, contribution: Contribution | None) -> float | None:
    """Relative error of recovered prototypes; None for samples, without truth, or where the classes differ."""
    if recovered is None or contribution is None or recovered.form != "prototype":
        return None
    classes = recovered.latest.label_encoding.argmax(1)
    if not torch.equal(classes, contribution.classes):
        return None
    return relative_error(recovered.latest.representation, contribution.prototypes)


def mean_of(blocks: Sequence[Any]) -> Any:
    """Mean, place by place, of blocks of equal keys; null where no block has a number.

    >>> mean_of([{"a": 1, "b": None}, {"a": 2, "b": None}]), mean_of([{"a": 1}])
    ({'a': 1.5, 'b': None}, {'a': 1})
    """
    if isinstance(blocks[0], dict):
        return {key: mean_of([block[key] for block in blocks]) for key in blocks[0]}
    known = [value for value in blocks if value is not None]
    return known[0] if len(set(known)) == 1 else sum(known) / len(known) if known else None


def federation_block(run: Run, view: ServerView, others: Sequence[Run] = ()) -> dict[str, Any]:
    """What was trained, how well, and what it sent; the numbers are means over this run and the `others`, its seeds."""
    histories = [read_history(one.path) for one in (run, *others)]
    return {
        "system": run.config.system,
        "form": run.config.form,
        "mechanism": view.mechanism,
        "clients": run.config.clients,
        "rounds": run.config.rounds,
        "broadcast": bool(view.classifiers),
        "accuracy": mean_of([history.accuracy() for history in histories]),
        "traffic": mean_of([history.rows[-1]["traffic"] for history in histories]),
        **({"seeds_averaged": len(histories)} if others else {}),
    }
