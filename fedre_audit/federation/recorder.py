"""Writes what left the clients, and apart from it the truth that only the auditor may read.

    uploads/<form>/round-000059.safetensors      client/round/representation [n,d], label_encoding [n,C], extras
    uploads/broadcast/round-000059.safetensors   00000/round/classifier.weight [C,d], classifier.bias [C]: one copy
                                                 under client 0, for every client gets the same
    truth/<form>/round-000059.safetensors        client/round/
        sample_ids int64 [N]      id of each private image, in training-set order
        row int64 [N], weight f32 [N]   the mixing: sample i entered upload row row[i] with weight weight[i]
        class_counts int64 [C]    images per class
        classes int64 [h], prototypes f32 [h,d]     held classes, ascending, and their true mean representations

All metadata: system, form, mechanism, feature_width, classes. `history.jsonl`: see history.py.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from numpy.typing import NDArray
from torch import Tensor

from fedre_audit.federation.view import BROADCAST
from fedre_audit.seeding import generator
from knowledge_forms.base import FORMS, Classifier, KnowledgeForm, Mixing, Upload
from knowledge_forms.class_means import class_means
from knowledge_forms.store import Entries, write_entries


@dataclass(frozen=True)
class LocalState:
    """One client after its local training, on the CPU: ids, labels [N] int64, representations [N,d] float32."""

    client: int
    round: int
    ids: Tensor
    labels: Tensor
    representations: Tensor


def make_upload(form: KnowledgeForm, state: LocalState, num_classes: int, seed: int) -> tuple[Upload, Mixing]:
    """What the client sends in this form, and the mixing that stays behind. Weights have their own generator."""
    draw = generator(seed, "form", round=0 if form.lasting else state.round, client=state.client)
    result = form(state.representations, state.labels, num_classes, draw)
    upload = Upload(state.client, state.round, form.name, result.representation, result.label_encoding)
    return upload, result.mixing


def truth_of(state: LocalState, mixing: Mixing, num_classes: int) -> dict[str, NDArray[Any]]:
    """The truth entry of one upload; keys as in the head of this file."""
    means, counts = class_means(state.representations, state.labels, num_classes)
    held = counts.nonzero().flatten()
    named = {
        "sample_ids": state.ids,
        "row": mixing.row,
        "weight": mixing.weight,
        "class_counts": counts,
        "classes": held,
        "prototypes": means[held],
    }
    return {name: value.numpy() for name, value in named.items()}


@dataclass(frozen=True, kw_only=True)
class Recorder:
    """Records the audited `form` every round and the forms of `also` (name -> rounds), all from one trajectory.

    build: makes a form of `also` from its name. others: recorders of further run folders, fed the same rounds.
    """

    run_dir: Path
    system: str
    form: KnowledgeForm
    num_classes: int
    feature_width: int
    seed: int
    also: Mapping[str, Collection[int]] = field(default_factory=dict)
    build: Callable[[str], KnowledgeForm] = lambda name: FORMS[name]()
    others: Sequence["Recorder"] = ()

    def record(self, round_: int, states: Sequence[LocalState], sent: Classifier | None) -> list[Upload]:
        """Write one round; returns the audited form's uploads, in client order. Touches no model."""
        for other in self.others:
            other.record(round_, states, sent)
        if sent is not None:
            arrays = {"classifier.weight": sent.weight.numpy(), "classifier.bias": sent.bias.numpy()}
            self._write(f"uploads/{BROADCAST}", round_, {(0, round_): arrays}, BROADCAST, "")
        others = [self.build(name) for name, rounds in self.also.items() if round_ in rounds and name != self.form.name]
        for form in others:
            self._record_form(form, round_, states)
        return self._record_form(self.form, round_, states)

    def _record_form(self, form: KnowledgeForm, round_: int, states: Sequence[LocalState]) -> list[Upload]:
        made = [make_upload(form, state, self.num_classes, self.seed) for state in states]
        key = [(state.client, round_) for state in states]
        uploads: Entries = {
            at: {name: value.numpy() for name, value in upload.tensors.items()}
            for at, (upload, _) in zip(key, made, strict=True)
        }
        truth: Entries = {
            at: truth_of(state, mixing, self.num_classes)
            for at, state, (_, mixing) in zip(key, states, made, strict=True)
        }
        # Truth first: an upload that is there always has its truth.
        self._write(f"truth/{form.name}", round_, truth, form.name, form.mechanism)
        self._write(f"uploads/{form.name}", round_, uploads, form.name, form.mechanism)
        return [upload for upload, _ in made]

    def _write(self, folder: str, round_: int, entries: Entries, form: str, mechanism: str) -> None:
        metadata = {
            "system": self.system,
            "form": form,
            "mechanism": mechanism,
            "feature_width": self.feature_width,
            "classes": self.num_classes,
        }
        write_entries(self.run_dir / folder / f"round-{round_:06d}.safetensors", entries, metadata)
