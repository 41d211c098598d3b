"""One folder, one process; stages start again cleanly; a full disk or a read-only folder loses nothing."""

import errno
import os
import resource
import subprocess
import sys

import pytest

from fedre_audit.config import AuditConfig, resolve
from fedre_audit.federation.history import read_history
from fedre_audit.runs import LOCK, OUTPUTS, Run, existing_run, lock_run, open_run
from knowledge_forms.errors import AuditError

CONFIG = resolve(AuditConfig())


def test_a_second_process_is_refused_and_a_dead_one_lets_go(tmp_path):
    out = tmp_path / "run"
    code = (
        "import sys, time; from pathlib import Path; from fedre_audit.runs import lock_run\n"
        f"with lock_run(Path({str(out)!r})): print('held', flush=True); time.sleep(60)"
    )
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "held\n"
        with (
            pytest.raises(AuditError, match=rf"run is in use by another audit \(process {holder.pid}\)"),
            lock_run(out),
        ):
            pass
        holder.kill()
    with lock_run(out):
        open_run(out, CONFIG)
    with lock_run(out):
        assert open_run(out, CONFIG).config == CONFIG


def test_one_process_cannot_hold_a_folder_twice(tmp_path):
    with lock_run(tmp_path), pytest.raises(AuditError, match="in use"), lock_run(tmp_path):
        pass


def test_a_folder_of_something_else_is_refused_and_left_alone(tmp_path):
    (tmp_path / "thesis.txt").write_text("mine")
    with pytest.raises(AuditError, match="not a run folder"), lock_run(tmp_path):
        pass
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.txt"]


def test_half_written_files_of_a_killed_process_are_removed(tmp_path):
    run = open_run(tmp_path / "run", CONFIG)
    part = run.path / "uploads" / ".round-000001.safetensors.99.part"
    part.parent.mkdir()
    part.write_bytes(b"half")
    with lock_run(run.path):
        assert not part.exists()


def test_clear_removes_a_stage_and_those_after_it(tmp_path):
    run = open_run(tmp_path / "run", CONFIG)
    files = ["manifest.json", "uploads/a", "attacks/complete.json", "attacks/raw/b", "scores.json", "report.html"]
    for name in files:
        (run.path / name).parent.mkdir(parents=True, exist_ok=True)
        (run.path / name).write_text("x")
    run.clear("score")
    assert {name for name in files if (run.path / name).exists()} == set(files[:4])
    run.clear("attack")
    assert {name for name in files if (run.path / name).exists()} == set(files[:2])
    run.clear("train")
    assert {path.name for path in run.path.iterdir()} <= {"config.yaml", LOCK}
    assert list(OUTPUTS) == ["train", "attack", "score", "report"]


@pytest.mark.parametrize("what", ["folder", "file"])
def test_a_read_only_place_is_one_clear_error(what, tmp_path, monkeypatch):
    def refuse(*_args, **_options):
        raise OSError(errno.EROFS, os.strerror(errno.EROFS))

    out = tmp_path / "run"
    if what == "folder":
        monkeypatch.setattr("pathlib.Path.mkdir", refuse)
    else:
        out.mkdir()
        monkeypatch.setattr("pathlib.Path.open", refuse)
    refusal = r"cannot write in .*run \(Read-only file system\); choose another --out"
    with pytest.raises(AuditError, match=refusal), lock_run(out):
        pass


def test_a_full_disk_names_the_file_and_leaves_no_part(tmp_path, monkeypatch):
    run = Run(tmp_path, CONFIG)
    run.write_json("kept.json", 1)

    def full(_descriptor):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(AuditError, match=r"cannot write .*kept\.json \(No space left on device\); free space"):
        run.write_json("kept.json", 2)
    assert run.read_json("kept.json") == 1
    assert [path.name for path in tmp_path.iterdir()] == ["kept.json"]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (b"clients: 10", b"clients: abc -> clients must be int, is 'abc'"),
        (b"clients: 10", b"clients: -3 -> --clients is -3, must be at least 1"),
        (b"preset: quick", b"preset: slow -> preset is 'slow', must be one of quick, small"),
        (b"form: entangled", b"\xff\xfe -> is not valid YAML"),
    ],
)
def test_a_damaged_configuration_is_named(tmp_path, line, message):
    file = open_run(tmp_path, CONFIG).path / "config.yaml"
    spoilt, _, told = message.partition(b" -> ")
    assert line in file.read_bytes()
    file.write_bytes(file.read_bytes().replace(line, spoilt))
    with pytest.raises(AuditError, match=told.decode()):
        existing_run(tmp_path)


@pytest.mark.parametrize("text", ["[]", "null", '{"versions": {}}', "{"])
def test_damaged_json_is_named(tmp_path, text):
    run = open_run(tmp_path, CONFIG)
    (run.path / "manifest.json").write_text(text)
    with pytest.raises(AuditError, match=r"manifest\.json .*delete it and run its stage again"):
        run.read_json("manifest.json", "versions", "device")


def test_an_existing_run_has_the_configuration_it_was_made_with(tmp_path):
    assert existing_run(open_run(tmp_path, CONFIG).path).config == CONFIG


@pytest.mark.parametrize("line", ["{", "[]", '{"no": 1}'])
def test_a_damaged_diary_is_named(tmp_path, line):
    (tmp_path / "history.jsonl").write_text('{"round": 0}\n' + line + "\n")
    with pytest.raises(AuditError, match=r"history\.jsonl is "):
        read_history(tmp_path)


@pytest.mark.parametrize("first", [b"\xff\xfe\x00bad", b"[1]", b"false"])
def test_a_diary_that_was_never_one_is_named(tmp_path, first):
    (tmp_path / "history.jsonl").write_bytes(first + b"\n")
    with pytest.raises(AuditError, match=r"history\.jsonl is "):
        read_history(tmp_path)


def test_a_disk_full_at_the_lock_is_one_clear_error(tmp_path):
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    # Python ignores the signal that comes with it, so writing fails as on a full disk, on closing too.
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, before[1]))
    try:
        with (
            pytest.raises(AuditError, match=r"cannot write in .*run \(.*\); choose another"),
            lock_run(tmp_path / "run"),
        ):
            pass
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    with lock_run(tmp_path / "run"):
        assert (tmp_path / "run" / LOCK).read_text() == f"{os.getpid()}\n"


@pytest.mark.parametrize("step", ["exists", "iterdir"])
def test_a_folder_nobody_may_look_into_is_one_clear_error(step, tmp_path, monkeypatch):
    def refuse(_path):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))

    monkeypatch.setattr(f"pathlib.Path.{step}", refuse)
    refusal = r"cannot look into .* \(Permission denied\); choose another --out"
    with pytest.raises(AuditError, match=refusal), lock_run(tmp_path):
        pass


def test_a_configuration_nobody_may_read_or_with_no_such_day_is_named(tmp_path, monkeypatch):
    (tmp_path / "config.yaml").write_text("seed: 2021-99-99\n")
    with pytest.raises(AuditError, match=r"config\.yaml is not valid YAML"):
        existing_run(tmp_path)

    def refuse(_path):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))

    monkeypatch.setattr("pathlib.Path.is_file", refuse)
    with pytest.raises(AuditError, match=r"cannot read .*config\.yaml \(Permission denied\)"):
        existing_run(tmp_path)
