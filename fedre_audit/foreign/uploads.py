"""Foreign uploads: checked whole, chosen by form, clients numbered from 0, and put into a run folder."""

from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from fedre_audit.record import as_label_encoding
from knowledge_forms.base import FORMS
from knowledge_forms.check import BROADCAST, check, upload_files
from knowledge_forms.errors import AuditError
from knowledge_forms.store import Entries, read_entries, write_entries


@dataclass(frozen=True)
class ForeignUploads:
    """One form of what was recorded. ids: the clients' own ids; client i of `uploads` is ids[i].

    uploads: (client, round) -> representation f32 [n,d], label_encoding f32 [n,C], extras. broadcast: (0, round) ->
    classifier.weight, classifier.bias. notes: what the check says may be meant so.
    """

    system: str
    form: str
    mechanism: str
    feature_width: int
    classes: int
    ids: tuple[int, ...]
    uploads: Entries
    broadcast: Entries
    notes: tuple[str, ...]

    @property
    def rounds(self) -> list[int]:
        """Rounds with any upload, ascending."""
        return sorted({round_ for _, round_ in self.uploads})

    def newest(self, client: int) -> int:
        """The newest round of a client."""
        return max(round_ for own, round_ in self.uploads if own == client)


def choose_form(found: set[str], asked: str | None, where: Path) -> str:
    """The form to audit; a raw form beside another one is the ceiling of an earlier audit and not what is meant."""
    if asked is not None and asked not in FORMS:
        raise AuditError(FORMS.refusal(asked))
    if asked is not None and asked not in found:
        raise AuditError(f"{where} holds no {asked} uploads, but {', '.join(sorted(found)) or 'none'}; choose --form")
    others = found - {"raw"} or found
    if asked is None and len(others) != 1:
        raise AuditError(f"{where} holds several forms ({', '.join(sorted(others))}); choose one with --form")
    return asked or others.pop()


def read_uploads(path: Path, asked: str | None = None) -> ForeignUploads:
    """Everything recorded below `path` in one form; AuditError with the first problems where the check finds any."""
    checked = check([path])
    if checked.problems:
        more = f"; and {len(checked.problems) - 3} more" if len(checked.problems) > 3 else ""
        shown = "; ".join(checked.problems[:3])
        raise AuditError(f"{len(checked.problems)} problems in the uploads: {shown}{more}; see audit check {path}")
    form = choose_form({name for name in checked.entries if name != BROADCAST}, asked, path)
    ids = tuple(sorted({client for client, _ in checked.entries[form]}))
    number = {client: i for i, client in enumerate(ids)}
    uploads: Entries = {}
    broadcast: Entries = {}
    meta: dict[str, object] = {}
    for file in upload_files([path]):
        entries, described = read_entries(file)
        if described["form"] == BROADCAST:
            broadcast |= {(0, round_): arrays for (_, round_), arrays in entries.items()}
        elif described["form"] == form:
            meta = described
            for (client, round_), arrays in entries.items():
                encoding = as_label_encoding(arrays["label_encoding"], described["classes"])
                representation = arrays["representation"].astype(np.float32)
                uploads[number[client], round_] = {
                    **arrays, "representation": representation, "label_encoding": encoding
                }  # fmt: skip
    return ForeignUploads(
        system=str(meta["system"]),
        form=form,
        mechanism=str(meta["mechanism"]),
        feature_width=int(str(meta["feature_width"])),
        classes=int(str(meta["classes"])),
        ids=ids,
        uploads=uploads,
        broadcast=broadcast,
        notes=tuple(checked.notes),
    )


def write_form(run_dir: Path, found: ForeignUploads, form: str, entries: Entries, folder: str = "uploads") -> None:
    """Entries of one form into a run folder, a file a round, as the engine's recorder lays them out."""
    by_round: dict[int, Entries] = defaultdict(dict)
    for key in sorted(entries):
        by_round[key[1]][key] = entries[key]
    metadata = {
        "system": found.system, "form": form, "mechanism": found.mechanism if form == found.form else "",
        "feature_width": found.feature_width, "classes": found.classes,
    }  # fmt: skip
    for round_, named in by_round.items():
        write_entries(run_dir / folder / form / f"round-{round_:06d}.safetensors", named, metadata)
