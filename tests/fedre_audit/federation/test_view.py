"""The server's view of many rounds of large uploads."""

import tracemalloc

import numpy as np
import torch

from fedre_audit.federation.recorder import LocalState, Recorder
from fedre_audit.federation.view import read_view
from knowledge_forms.base import FORMS
from knowledge_forms.store import read_entries, write_entries

ROWS, WIDTH, ROUNDS = 3000, 128, 6


def record(folder, rounds=ROUNDS):
    recorder = Recorder(
        run_dir=folder, system="fedallrep", form=FORMS["raw"](), num_classes=2, feature_width=WIDTH, seed=0
    )
    for round_ in range(rounds):
        z = torch.rand(ROWS, WIDTH, generator=torch.Generator().manual_seed(round_))
        recorder.record(round_, [LocalState(0, round_, torch.arange(ROWS), torch.arange(ROWS) % 2, z)], None)


def test_memory_does_not_grow_with_rounds_of_large_uploads(tmp_path):
    record(tmp_path)
    size = ROWS * WIDTH * 4
    tracemalloc.start()
    view = read_view(tmp_path, "raw")
    held, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert held < size
    assert peak < 3 * size  # of a file being read and the one before it
    assert len(view.uploads) == ROUNDS
    for upload in view.uploads:
        expected = torch.rand(ROWS, WIDTH, generator=torch.Generator().manual_seed(upload.round))
        assert torch.equal(upload.representation, expected)


def test_nothing_that_is_done_to_an_upload_reaches_its_file(tmp_path):
    record(tmp_path, rounds=1)
    read_view(tmp_path, "raw").uploads[0].representation.zero_()
    assert float(read_view(tmp_path, "raw").uploads[0].representation.max()) > 0.9


def test_large_float64_uploads_are_read_as_they_are(tmp_path):
    record(tmp_path, rounds=1)
    (path,) = (tmp_path / "uploads" / "raw").glob("*")
    entries, metadata = read_entries(path)
    entries[0, 0]["representation"] = entries[0, 0]["representation"].astype(np.float64)
    write_entries(path, entries, {key: value for key, value in metadata.items() if key != "schema_version"})
    assert read_view(tmp_path, "raw").uploads[0].representation.dtype == torch.float64
