"""Private images of a foreign federation, for scoring alone: read, compared with the uploads, and laid out as truth."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from fedre_audit.foreign.uploads import ForeignUploads
from knowledge_forms.errors import AuditError
from knowledge_forms.store import read_entries, read_tensors

FOLLOWS = ("RAP", "VAP", "VAR", "RSP")
"""Mechanisms whose weights follow from the label encoding: all images of a class enter alike."""


@dataclass(frozen=True)
class ForeignTruth:
    """Private images of all clients, client after client.

    images: uint8 [N,c,h,w]. labels: int64 [N]. rows: client -> its rows [n] of `images`. contributions: (client,
    round) -> sample_ids (rows of `images`), row, weight; of the newest uploads, and under RSR, where each upload is
    another image, of all that were recorded.
    """

    images: Tensor
    labels: Tensor
    rows: dict[int, NDArray[np.int64]]
    contributions: dict[tuple[int, int], tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float32]]]


def read_images(folder: Path, ids: tuple[int, ...]) -> dict[int, dict[str, NDArray[np.int64]]]:
    """images, labels, ids of every client of `ids`, by position; AuditError naming the clients that are missing."""
    found = {}
    for path in sorted((folder / "images").glob("*.safetensors")):
        tensors, metadata = read_tensors(path)
        if metadata.get("kind") != "images" or set(tensors) != {"images", "labels", "ids"}:
            raise AuditError(f"{path} holds no client's images; write it with fedre_audit.record.Truth or audit import")
        found[metadata["client"]] = tensors
    missing = [client for client in ids if client not in found]
    if missing:
        shown = ", ".join(map(str, missing[:10])) + (", ..." if len(missing) > 10 else "")
        raise AuditError(f"{folder} holds no images of {len(missing)} clients that uploaded ({shown}); add them")
    shapes = {found[client]["images"].shape[1:] for client in ids}
    if len(shapes) > 1:
        raise AuditError(f"{folder}: the clients' images differ in size ({sorted(shapes)}); bring them to one")
    return {position: found[client] for position, client in enumerate(ids)}


def read_members(folder: Path) -> dict[tuple[int, int], dict[str, NDArray[np.int64]]]:
    """What was recorded of single uploads, by the clients' own ids; {} where nothing was."""
    found = {}
    for path in sorted((folder / "members").rglob("*.safetensors")):
        entries, _ = read_entries(path)
        found.update(entries)
    return found


def derive_mixing(
    form: str, mechanism: str, label_encoding: NDArray[np.float32], labels: NDArray[np.int64], where: str
) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
    """Row and weight [N] of each image where they follow from the upload. labels: [N]; label_encoding: [n,C]."""
    if form == "raw":
        if len(labels) != len(label_encoding) or (label_encoding.argmax(1) != labels).any():
            raise AuditError(
                f"{where}: rows of the upload are not the truth's images in order; record Truth.members with sample_ids"
            )
        return np.arange(len(labels)), np.ones(len(labels), np.float32)
    if form == "entangled" and mechanism not in FOLLOWS:
        raise AuditError(
            f"{where}: with mechanism '{mechanism}' the weights do not follow from the upload "
            f"(they do for {', '.join(FOLLOWS)}); record Truth.members with row and weight"
        )
    counts = np.bincount(labels, minlength=label_encoding.shape[1])
    unheld = np.flatnonzero((label_encoding.sum(0) > 0) & (counts[: label_encoding.shape[1]] == 0))
    if len(unheld):
        raise AuditError(f"{where}: the upload names class {unheld[0]}, of which the truth holds no image")
    row = label_encoding[:, labels].argmax(0)
    return row, (label_encoding[row, labels] / counts[labels]).astype(np.float32)


def check_truth_folder(folder: Path) -> None:
    """AuditError where this cannot be a truth folder, told without reading an image."""
    wrong = "is no folder" if not folder.is_dir() else "holds no images/*.safetensors"
    if not any((folder / "images").glob("*.safetensors")):
        raise AuditError(f"--truth {folder} {wrong}; record it with fedre_audit.record.Truth or audit import")


def read_truth_folder(folder: Path, found: ForeignUploads) -> ForeignTruth:
    """Images of every client and who made its uploads."""
    check_truth_folder(folder)
    clients, members = read_images(folder, found.ids), read_members(folder)
    rows: dict[int, NDArray[np.int64]] = {}
    contributions = {}
    start = 0
    for client, own in clients.items():
        rows[client] = np.arange(start, start + len(own["labels"]))
        start += len(own["labels"])
        who = f"truth of client {found.ids[client]}"
        if own["labels"].size == 0 or not 0 <= own["labels"].min() <= own["labels"].max() < found.classes:
            raise AuditError(f"{who}: no images, or labels outside 0..{found.classes - 1}; record them again")
        newest = found.newest(client)
        for round_ in sorted(round_ for uploader, round_ in found.uploads if uploader == client):
            recorded = members.get((found.ids[client], round_), {})
            if round_ == newest or (found.mechanism == "RSR" and recorded):
                where = f"{who}, round {round_}"
                contributions[client, round_] = _contribution(found, client, round_, own, recorded, rows[client], where)
    images = np.concatenate([own["images"] for own in clients.values()])
    labels = np.concatenate([own["labels"] for own in clients.values()])
    return ForeignTruth(torch.from_numpy(images), torch.from_numpy(labels), rows, contributions)


def _contribution(
    found: ForeignUploads, client: int, round_: int, own: dict[str, NDArray[np.int64]],
    recorded: dict[str, NDArray[np.int64]], rows: NDArray[np.int64], where: str,
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float32]]:  # fmt: skip
    at = {int(image): position for position, image in enumerate(own["ids"])}
    unknown = [int(image) for image in recorded.get("sample_ids", ()) if int(image) not in at]
    if unknown:
        raise AuditError(f"{where} names image {unknown[0]}, which is not among the client's images; record them too")
    chosen = np.array([at[int(image)] for image in recorded.get("sample_ids", own["ids"])], dtype=np.int64)
    upload = found.uploads[client, round_]
    if "row" not in recorded:
        row, weight = derive_mixing(
            found.form, found.mechanism, upload["label_encoding"], own["labels"][chosen], where
        )  # fmt: skip
        return rows[chosen], row, weight
    row, weight = recorded["row"], recorded["weight"].astype(np.float32)
    n = len(upload["representation"])
    sums = np.bincount(row[(row >= 0) & (row < n)], weight[(row >= 0) & (row < n)], minlength=n)
    if (row < 0).any() or (row >= n).any() or not (weight >= 0).all() or (np.abs(sums - 1) > 1e-3).any():
        raise AuditError(f"{where}: rows must lie in 0..{n - 1} and weights, none negative, sum to 1 within each row")
    return rows[chosen], row, weight
