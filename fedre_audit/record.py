"""A recorder for any training loop: three lines, and what the server sees can be audited. Needs NumPy alone.

    recorder = Recorder("my-uploads", system="fedre", form="entangled", mechanism="RAP", classes=10)
    recorder.broadcast(round, classifier=global_head)
    recorder.upload(client, round, representation=vector, label_encoding=weights)

Each upload is a file of its own, named by client and round: processes write side by side, a killed one leaves no
half of a file, and a call that returned is on the disk. An upload that is recorded again replaces the earlier one,
as a resumed loop does. Format: docs/uploads.md.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from knowledge_forms.check import BROADCAST, FORM_NAMES, label_problems
from knowledge_forms.errors import AuditError
from knowledge_forms.store import write_entries, write_tensors

Floats = NDArray[np.float32]


def as_array(value: Any) -> NDArray[Any]:
    """NumPy copy of an array, a list, or a tensor of torch on any device (bfloat16 as float32)."""
    if hasattr(value, "detach"):
        value = value.detach().cpu()
        value = (value.float() if value.is_floating_point() else value).numpy()
    return np.asarray(value)


def as_label_encoding(value: Any, classes: int) -> Floats:
    """Label encodings [n,C] float32 of: floats [n,C] or [C]; class ids int [n]; {class: weight}, pairs of a soft label.

    >>> as_label_encoding([2, 0], 3).tolist()
    [[0.0, 0.0, 1.0], [1.0, 0.0, 0.0]]
    >>> as_label_encoding({0: 0.25, 2: 0.75}, 3).tolist()
    [[0.25, 0.0, 0.75]]
    """
    if isinstance(value, Mapping):
        rows = np.zeros((1, classes), np.float32)
        rows[0, _class_ids(list(value), classes)] = [float(as_array(weight)) for weight in value.values()]
        return rows
    array = as_array(value)
    if array.ndim == 1 and array.dtype.kind in "iu":
        rows = np.zeros((len(array), classes), np.float32)
        rows[np.arange(len(array)), _class_ids(array, classes)] = 1
        return rows
    return np.atleast_2d(array).astype(np.float32)


def _class_ids(ids: ArrayLike, classes: int) -> NDArray[np.int64]:
    found = np.asarray(ids, dtype=np.int64)
    if ((found < 0) | (found >= classes)).any():
        raise AuditError(f"class ids run from {found.min()} to {found.max()}, the recorder was told classes={classes}")
    return found


def as_classifier(value: Any) -> tuple[Floats, Floats]:
    """Weight [C,d] and bias [C] of: a linear layer, its state dict, any mapping that ends so, or a pair."""
    if hasattr(value, "state_dict"):
        value = value.state_dict()
    if isinstance(value, Mapping):
        named = {}
        for part in ("weight", "bias"):
            fitting = [item for key, item in value.items() if str(key).rpartition(".")[2] == part]
            if len(fitting) > 1 or (part == "weight" and not fitting):
                raise AuditError(
                    f"the broadcast classifier has {len(fitting)} arrays named '{part}', must be one; "
                    "pass the last linear layer alone, or (weight, bias)"
                )
            named[part] = fitting[0] if fitting else None
        value = (named["weight"], named["bias"])
    weight = as_array(value[0]).astype(np.float32)
    if weight.ndim != 2:
        raise AuditError(f"the broadcast classifier's weight is {list(weight.shape)}, must be [classes, width]")
    bias = np.zeros(len(weight)) if value[1] is None else as_array(value[1])
    return weight, bias.astype(np.float32)


@dataclass(frozen=True)
class Recorder:
    """Records what leaves clients into the folder `path`. form: raw, prototype or entangled. classes: C.

    system: free text. mechanism: of entangled uploads, RSR VAR RAR RSP VAP or RAP; unmixing takes it at its word.
    """

    path: Path | str
    system: str = field(kw_only=True)
    form: str = field(kw_only=True)
    classes: int = field(kw_only=True)
    mechanism: str = field(kw_only=True, default="")

    def __post_init__(self) -> None:
        if self.form not in FORM_NAMES or self.classes < 1:
            raise AuditError(
                f"the recorder was told form={self.form!r}, classes={self.classes}; "
                f"form is one of {', '.join(FORM_NAMES)}, classes at least 1"
            )

    def upload(self, client: int, round: int, *, representation: Any, label_encoding: Any = None, **extra: Any) -> Path:
        """One client, one round, as sent; returns once it is on the disk.

        representation: [n,d], one vector [d], or prototypes as {class: vector} (then label_encoding is known).
        label_encoding: see `as_label_encoding`. extra: whatever else the system sends, by name.
        Raises AuditError where the upload is not what docs/uploads.md says.
        """
        if isinstance(representation, Mapping):
            held = sorted(representation)
            representation, label_encoding = np.stack([as_array(representation[c]) for c in held]), held
        if label_encoding is None:
            raise AuditError(
                f"upload of client {client}, round {round} has no label_encoding; pass what the client sends"
            )
        arrays = {
            "representation": np.atleast_2d(as_array(representation)).astype(np.float32),
            "label_encoding": as_label_encoding(label_encoding, self.classes),
            **{name: as_array(value) for name, value in extra.items()},
        }
        problems = list(self._problems(arrays))
        if problems:
            raise AuditError(f"upload of client {client}, round {round}: {'; '.join(problems)}; see docs/uploads.md")
        folder = f"{self.form}/client-{client:05d}"
        width = arrays["representation"].shape[1]
        return self._write(folder, client, round, arrays, self.form, self.mechanism, width)

    def broadcast(self, round: int, *, classifier: Any) -> Path:
        """The classifier the server sends to every client in this round; see `as_classifier`."""
        weight, bias = as_classifier(classifier)
        if not (weight.shape[0] == len(bias) == self.classes and np.isfinite(weight).all() and np.isfinite(bias).all()):
            raise AuditError(
                f"broadcast of round {round}: weight {list(weight.shape)} and bias {list(bias.shape)} must be "
                f"[{self.classes}, width] and [{self.classes}], without NaN or infinity"
            )
        arrays = {"classifier.weight": weight, "classifier.bias": bias}
        return self._write(BROADCAST, 0, round, arrays, BROADCAST, "", weight.shape[1])

    def _problems(self, arrays: Mapping[str, NDArray[Any]]) -> Iterator[str]:
        representation, encoding = arrays["representation"], arrays["label_encoding"]
        rows = len(representation)
        if representation.ndim != 2 or rows == 0 or (self.form == "entangled" and rows > 1):
            wanted = "[1,d]" if self.form == "entangled" else "[n,d]"
            yield f"representation is {list(representation.shape)}, must be {wanted}"
        if encoding.shape != (rows, self.classes):
            yield f"label_encoding is {list(encoding.shape)}, must be [{rows}, {self.classes}]"
        else:
            yield from label_problems(self.form, self.classes, [encoding])
        for name, array in arrays.items():
            if array.dtype.kind not in "fiub":
                yield f"{name} holds no numbers"
            elif name != "label_encoding" and not np.isfinite(array).all():
                yield f"{name} holds NaN or infinite values"

    def _write(
        self, folder: str, client: int, round_: int, arrays: Mapping[str, Any], form: str, mechanism: str, width: int
    ) -> Path:
        path = Path(self.path) / folder / f"round-{round_:06d}.safetensors"
        metadata = {
            "system": self.system, "form": form, "mechanism": mechanism, "feature_width": width,
            "classes": self.classes,
        }  # fmt: skip
        write_entries(path, {(int(client), int(round_)): dict(arrays)}, metadata)
        return path


@dataclass(frozen=True)
class Truth:
    """Records, for the auditor alone, the private images of the clients into the folder `path`. Never share it."""

    path: Path | str

    def images(self, client: int, images: Any, labels: Any, ids: Any = None) -> Path:
        """Once a client: images [N,c,h,w], uint8 or floats in [0,1]; labels int [N]; ids int [N] (default 0..N-1)."""
        pixels, classes = as_array(images), as_array(labels)
        numbers = np.arange(len(pixels)) if ids is None else as_array(ids)
        if pixels.ndim != 4 or pixels.shape[1] not in (1, 3) or not len(pixels) == len(classes) == len(numbers):
            raise AuditError(
                f"images of client {client} are {list(pixels.shape)} with {len(classes)} labels, {len(numbers)} ids; "
                "they must be [N,1,h,w] or [N,3,h,w] with one label and one id each"
            )
        if pixels.dtype != np.uint8:
            # `not` around the comparison: NaN compares as false and is refused too.
            if not (pixels.min() >= 0 and pixels.max() <= 1):
                raise AuditError(f"images of client {client} leave [0,1]; undo their normalisation before recording")
            pixels = (pixels * 255).round().astype(np.uint8)
        if len(set(numbers.tolist())) != len(numbers):
            raise AuditError(f"ids of client {client} repeat; give every image its own")
        path = Path(self.path) / "images" / f"client-{client:05d}.safetensors"
        arrays = {"images": pixels, "labels": classes.astype(np.int64), "ids": numbers.astype(np.int64)}
        write_tensors(path, arrays, {"kind": "images", "client": int(client)})
        return path

    def members(self, client: int, round: int, sample_ids: Any, *, row: Any = None, weight: Any = None) -> Path:
        """Only where not every image of the client entered its upload, or the weights do not follow from the upload.

        sample_ids: int [N]. row: upload row that each entered; weight: with which weight (both or neither).
        """
        arrays = {"sample_ids": as_array(sample_ids).astype(np.int64)}
        if (row is None) != (weight is None):
            raise AuditError(f"truth of client {client}, round {round}: give row and weight, or neither of them")
        if row is not None:
            arrays |= {"row": as_array(row).astype(np.int64), "weight": as_array(weight).astype(np.float32)}
        if any(array.shape != (len(arrays["sample_ids"]),) for array in arrays.values()):
            raise AuditError(f"truth of client {client}, round {round}: sample_ids, row and weight must be [N] alike")
        path = Path(self.path) / "members" / f"client-{client:05d}" / f"round-{round:06d}.safetensors"
        write_entries(path, {(int(client), int(round)): arrays}, {"kind": "members"})
        return path
