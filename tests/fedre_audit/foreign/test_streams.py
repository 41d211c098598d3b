"""Streams of recorded single images: scored round by round where the truth says which image each upload was."""

import torch

from fedre_audit.audit.truth import by_newest, read_truth
from fedre_audit.config import AuditConfig, resolve
from fedre_audit.foreign.layout import lay_out
from fedre_audit.foreign.truth import read_truth_folder
from fedre_audit.foreign.uploads import read_uploads
from fedre_audit.record import Recorder, Truth
from fedre_audit.runs import Run

SENT = (3, 0, 5)
"""The image that each round's upload was, of two classes of four images."""


def record(folder, told):
    """One client under RSR; members are recorded of the rounds `told`."""
    draw = torch.Generator().manual_seed(0)
    images = torch.randint(0, 256, (8, 1, 6, 6), generator=draw, dtype=torch.uint8)
    labels = torch.arange(8) // 4
    recorder = Recorder(folder / "uploads", system="mine", form="entangled", mechanism="RSR", classes=2)
    truth = Truth(folder / "truth")
    truth.images(0, images, labels)
    for round_, image in enumerate(SENT):
        recorder.upload(0, round_, representation=torch.rand(1, 4, generator=draw), label_encoding=labels[[image]])
        if round_ in told:
            truth.members(0, round_, [image], row=[0], weight=[1.0])
    found = read_uploads(folder / "uploads")
    read = read_truth_folder(folder / "truth", found)
    run = Run(folder / "run", resolve(AuditConfig()))
    return labels, lay_out(run, found, read, []), run


def test_each_upload_of_a_stream_is_compared_with_its_own_image(tmp_path):
    labels, notes, run = record(tmp_path, told=(0, 1, 2))
    assert notes == []
    truth = read_truth(run.path, "entangled")
    assert sorted(truth) == [(0, 0), (0, 1), (0, 2)]
    found = by_newest(truth, 0, labels, torch.tensor([0, 1]))
    assert found is not None
    assert found.sample_ids.tolist() == [0, 5]


def test_a_stream_that_cannot_be_scored_is_said_so(tmp_path):
    labels, notes, run = record(tmp_path, told=(2,))
    (note,) = notes
    assert "streams of clients 0 are scored only as far as Truth.members says which" in note
    assert by_newest(read_truth(run.path, "entangled"), 0, labels, torch.tensor([0, 1])) is None
