"""Foreign uploads in a run folder, as the training stage would have left it.

uploads/<form>, uploads/broadcast    as recorded
uploads/raw, truth/raw               made here from truth and encoder: the ceiling
truth/<form>                         who made the newest upload of each client; under RSR each one recorded
clients/                             the encoders
"""

from dataclasses import asdict

import numpy as np
import torch
from torch import Tensor

from fedre_audit.federation.client import represent_all
from fedre_audit.federation.history import History
from fedre_audit.foreign.encoder import ForeignModel
from fedre_audit.foreign.truth import ForeignTruth
from fedre_audit.foreign.uploads import ForeignUploads, write_form
from fedre_audit.models import save_clients
from fedre_audit.runs import Run
from fedre_audit.stages.train import CEILING, versions
from knowledge_forms.base import Classifier, Mixing, Upload
from knowledge_forms.check import BROADCAST
from knowledge_forms.class_means import class_means
from knowledge_forms.store import Entries
from knowledge_forms.traffic import count_traffic

MANIFEST = "manifest.json"
MISFIT = 0.01
"""Relative difference between an upload and what encoder and truth make of it, from which on it is reported."""


def lay_out(run: Run, found: ForeignUploads, truth: ForeignTruth | None, models: list[ForeignModel]) -> list[str]:
    """Write everything, the manifest last; notes where uploads, truth and encoders contradict each other."""
    write_form(run.path, found, found.form, found.uploads)
    write_form(run.path, found, BROADCAST, found.broadcast)
    notes = [] if truth is None else write_truth(run, found, truth, models)
    if models:
        save_clients(run.path, models)
    unknown = {"weighted": None, "unweighted": None}
    row = {"round": 0, "participants": list(range(len(found.ids))), "collapsed": [], "accuracy": unknown}
    History([{**row, "traffic": newest_traffic(found)}]).write(run.path)
    known = {"seed": run.config.seed, "config_sha256": run.sha256, "device": "cpu"}  # attacks run on the processor
    run.write_json(MANIFEST, {"versions": versions(), **known})
    return notes


def write_truth(run: Run, found: ForeignUploads, truth: ForeignTruth, models: list[ForeignModel]) -> list[str]:
    """Truth of the uploads; with encoders also what the images of the newest look like raw. Notes as in `lay_out`."""
    notes = unknown_streams(found, truth)
    truths: Entries = {}
    raw: Entries = {}
    raw_truths: Entries = {}
    for key, (ids, row, weight) in truth.contributions.items():
        client, round_ = key
        labels, images = truth.labels[ids], truth.images[ids]
        newest = round_ == found.newest(client)
        seen = represent_all(models[client].eval(), images) if models and newest else None
        entry = _entry(ids, labels, seen, found)
        truths[key] = {**entry, "row": row, "weight": weight}
        if seen is not None:
            one_hot = np.eye(found.classes, dtype=np.float32)[labels.numpy()]
            raw[key] = {"representation": seen.numpy(), "label_encoding": one_hot}
            raw_truths[key] = {**entry, "row": np.arange(len(ids)), "weight": np.ones(len(ids), np.float32)}
            notes += misfit(found, key, torch.from_numpy(row), torch.from_numpy(weight), seen)
    write_form(run.path, found, found.form, truths, "truth")
    if models and found.form != CEILING:
        write_form(run.path, found, CEILING, raw)
        write_form(run.path, found, CEILING, raw_truths, "truth")
    return notes


def unknown_streams(found: ForeignUploads, truth: ForeignTruth) -> list[str]:
    """A note where a stream of single images cannot be scored, since nothing says which they were."""
    if found.mechanism != "RSR":
        return []
    unknown = {client for client, round_ in found.uploads if (client, round_) not in truth.contributions}
    if not unknown:
        return []
    named = ", ".join(str(found.ids[client]) for client in sorted(unknown))
    return [
        f"RSR sends another image each round: the streams of clients {named} are scored only as far as "
        "Truth.members says which one it was"
    ]


def _entry(ids: np.ndarray, labels: Tensor, seen: Tensor | None, found: ForeignUploads) -> dict[str, np.ndarray]:
    """What is true of the images whatever the form; prototypes are NaN without an encoder."""
    if seen is None:
        seen = torch.full((len(ids), found.feature_width), torch.nan)
    means, counts = class_means(seen, labels, found.classes)
    held = counts.nonzero().flatten()
    named = {"class_counts": counts, "classes": held, "prototypes": means[held]}
    return {"sample_ids": ids, **{name: value.numpy() for name, value in named.items()}}


def misfit(found: ForeignUploads, key: tuple[int, int], row: Tensor, weight: Tensor, seen: Tensor) -> list[str]:
    """A note where the newest upload is not the mixture that encoder and truth make of it."""
    sent = torch.from_numpy(found.uploads[key]["representation"])
    error = float((Mixing(row, weight, len(sent)).apply(seen) - sent).norm() / sent.norm().clamp(min=1e-12))
    if error <= MISFIT:
        return []
    return [
        f"client {found.ids[key[0]]}: its newest upload differs by {100 * error:.0f} % from what encoder and truth "
        "make of it (weights of another round, images left out, noise added?)"
    ]


def newest_traffic(found: ForeignUploads) -> dict[str, int]:
    """Traffic of the newest round."""
    newest = found.rounds[-1]
    uploads = []
    for (client, round_), arrays in found.uploads.items():
        if round_ == newest:
            tensors = {name: torch.from_numpy(np.asarray(value)) for name, value in arrays.items()}
            first, second = tensors.pop("representation"), tensors.pop("label_encoding")
            uploads.append(Upload(client, round_, found.form, first, second, tensors))
    sent, head = found.broadcast.get((0, newest)), None
    if sent is not None:
        head = Classifier(torch.from_numpy(sent["classifier.weight"]), torch.from_numpy(sent["classifier.bias"]))
    return asdict(count_traffic(uploads, head, len(found.ids)))
