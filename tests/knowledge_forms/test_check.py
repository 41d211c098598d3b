"""`audit check`: every problem is named, all at once, and fine files pass."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from fedre_audit.cli import main
from knowledge_forms.base import FORMS
from knowledge_forms.check import BROADCAST, FORM_NAMES, METADATA, check
from knowledge_forms.store import write_tensors
from tests.knowledge_forms.uploads import CLASSES, META, WIDTH, prototypes, write

SCHEMA = Path(__file__).resolve().parents[2] / "docs" / "uploads.schema.json"


def spoiled(**arrays: np.ndarray | None) -> dict[str, np.ndarray]:
    made = {**prototypes(), **arrays}
    return {name: value for name, value in made.items() if value is not None}


def label_rows(*rows: list[float]) -> np.ndarray:
    return np.array(rows, np.float32)


def test_fine_files_pass_in_every_form_and_dtype(tmp_path, capsys):
    write(tmp_path / "p.safetensors", {(0, 0): prototypes(), (1, 0): prototypes(3)})
    ids = {"representation": np.ones((3, WIDTH), np.float16), "label_encoding": np.array([1, 1, 3])}
    write(tmp_path / "r.safetensors", {(0, 0): ids}, form="raw")
    soft = {"representation": np.ones((1, WIDTH)), "label_encoding": label_rows([0.25, 0.75, 0, 0])}
    write(tmp_path / "e.safetensors", {(0, 0): soft, (0, 1): soft}, form="entangled")
    head = {"classifier.weight": np.zeros((CLASSES, WIDTH)), "classifier.bias": np.zeros(CLASSES)}
    write(tmp_path / "b.safetensors", {(0, 0): head}, form=BROADCAST)
    assert main(["check", str(tmp_path)]) == 0
    out = capsys.readouterr().out
    assert "entangled: 2 entries of 1 clients, 2 rounds (0 to 1)" in out
    assert out.endswith("4 files checked, 0 problems\n")


@pytest.mark.parametrize(
    ("named", "arrays"),
    [
        ("representation is [2, 5], must be [2, 6]", {"representation": np.ones((2, 5), np.float32)}),
        ("representation is [6], must be [6, 6]", {"representation": np.ones(6, np.float32)}),
        (
            "representation holds 1 values that are NaN",
            {"representation": np.full((2, 6), [np.nan, 0, 0, 0, 0, 0])[:1]},
        ),
        ("representation is I64", {"representation": np.ones((2, 6), np.int64)}),
        ("has no label_encoding", {"label_encoding": None}),
        ("has no rows", {"representation": np.ones((0, 6)), "label_encoding": np.ones((0, 4))}),
        ("1 rows of label_encoding hold negative", {"label_encoding": label_rows([1.5, -0.5, 0, 0], [0, 1, 0, 0])}),
        ("1 rows of label_encoding do not sum to 1", {"label_encoding": label_rows([1, 1, 0, 0], [0, 1, 0, 0])}),
        ("1 rows of label_encoding hold NaN", {"label_encoding": label_rows([np.inf, 0, 0, 0], [0, 1, 0, 0])}),
        ("name several classes", {"label_encoding": label_rows([0.5, 0.5, 0, 0], [0, 1, 0, 0])}),
        ("class 1 has 2 prototypes", {"label_encoding": label_rows([0, 1, 0, 0], [0, 1, 0, 0])}),
        ("names 1 classes outside 0..3", {"label_encoding": np.array([0, 4])}),
        ("label_encoding is F32 [2, 3]", {"label_encoding": np.ones((2, 3), np.float32)}),
        ("noise holds 2 values", {"noise": np.full(2, np.nan)}),
    ],
)
def test_each_problem_of_an_entry_is_named(tmp_path, named, arrays):
    if "NaN or infinite" in named:
        arrays["label_encoding"] = label_rows([1, 0, 0, 0])
    checked = check([write(tmp_path / "x.safetensors", {(3, 0): spoiled(**arrays)})])
    assert any(named in problem and "client 3, round 0" in problem for problem in checked.problems), checked.problems


def test_problems_between_files_come_all_at_once(tmp_path, capsys):
    write(tmp_path / "a.safetensors", {(0, 0): prototypes(), (1, 1): prototypes()})
    write(tmp_path / "b.safetensors", {(0, 0): prototypes(), (1, 4): prototypes()})
    write(tmp_path / "c.safetensors", {(1, 0): {"representation": np.ones((1, 9))}}, feature_width=9)
    write(tmp_path / "d.safetensors", {(0, 0): prototypes(3)}, form="entangled", classes=5)
    (tmp_path / "e.safetensors").write_bytes(b"PK\x03\x04, a foreign file")
    write_tensors(tmp_path / "f.safetensors", {"x": np.zeros(1)}, {"form": "unheard", "feature_width": True})
    write_tensors(tmp_path / "g.safetensors", {"1/0/x": np.zeros(1), "01/0/x": np.zeros(1), "../x": np.zeros(1)}, META)
    (tmp_path / "h.safetensors").mkdir()
    assert main(["check", str(tmp_path)]) == 2
    out = capsys.readouterr().out
    for named in (
        "client 0, round 0 is in " + str(tmp_path / "a.safetensors"), "feature_width is 9, but 6 in",
        "classes is 5, but 4 in", "an entangled upload is one row, this has 3", "truncated or foreign",
        "form is 'unheard', must be one of raw, prototype, entangled, broadcast", "metadata 'system' is 'None'",
        "metadata 'feature_width' is 'True'", "comes twice, written differently",
        "'../x' is not client/round/name", "h.safetensors cannot be read (Is a directory)",
        "prototype: 2 rounds (2, 3) missing",
    ):  # fmt: skip
        assert named in out, (named, out)


def test_a_missed_round_is_a_note_and_many_problems_are_counted(tmp_path):
    entries = {(client, round_): prototypes() for client in (0, 1) for round_ in range(4) if (client, round_) != (1, 2)}
    checked = check([write(tmp_path / "a.safetensors", entries)])
    assert (checked.problems, len(checked.notes)) == ([], 1)
    assert "client 1 did not upload round 2" in checked.notes[0]
    bad = {(client, 0): spoiled(label_encoding=None) for client in range(50)}
    assert check([write(tmp_path / "b.safetensors", bad)]).problems[-1].endswith("and 30 more problems")


def test_check_of_nothing_and_of_nonsense_is_one_sentence(tmp_path, capsys):
    assert main(["check", str(tmp_path)]) == 2
    assert "holds no .safetensors file" in capsys.readouterr().err
    assert main(["check"]) == 2
    assert main(["check", str(tmp_path / "none.safetensors")]) == 2
    assert "does not exist" in capsys.readouterr().out


def test_names_and_schema_agree_with_the_code():
    assert set(FORM_NAMES) == set(FORMS)
    schema = json.loads(SCHEMA.read_text())
    words = {str: "string", int: "integer"}
    assert {key: schema["properties"][key]["type"] for key in METADATA} == {k: words[t] for k, t in METADATA.items()}
    assert set(schema["required"]) == {"schema_version", *METADATA}
    assert set(schema["properties"]["form"]["enum"]) == {*FORM_NAMES, BROADCAST}


def test_check_loads_no_torch(tmp_path):
    path = write(tmp_path / "a.safetensors")
    code = (
        f"import sys; from fedre_audit.cli import main; main(['check', {str(path)!r}]); "
        "sys.exit('torch' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0
