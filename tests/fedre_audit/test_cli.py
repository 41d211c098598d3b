"""The command: help without torch, plans, every problem at once, JSON, gates, interruption, completion."""

import json
import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from functools import partial
from types import SimpleNamespace
from typing import get_type_hints

import pytest

from fedre_audit import pipeline
from fedre_audit.cli import COMMANDS, main
from fedre_audit.commands.audit import exit_code
from fedre_audit.commands.completion import script
from fedre_audit.config import AuditConfig, resolve
from fedre_audit.options import _wanted, command_line, parse
from fedre_audit.progress import beat, describe, progress
from fedre_audit.result import AuditResult
from tests.reports.make_scores import make_run, scores

TINY = ["--clients", "4", "--rounds", "2", "--private-images", "120", "--auxiliary-images", "120"]


def test_help_index_and_report_need_no_torch_and_little_time(tmp_path):
    make_run(tmp_path / "run")
    code = (
        "import sys, time; started = time.perf_counter()\n"
        "from fedre_audit.cli import main\n"
        f"assert [main(['--help']), main(['index', {str(tmp_path)!r}]), main(['report', {str(tmp_path / 'run')!r}])]"
        " == [0, 0, 0]\n"
        "assert 'torch' not in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, capture_output=True)
    best = []
    for _ in range(3):
        started = time.perf_counter()
        subprocess.run([sys.executable, "-m", "fedre_audit", "--help"], check=True, capture_output=True)
        best.append(time.perf_counter() - started)
    assert min(best) < 0.5


@pytest.mark.parametrize("word", COMMANDS)
def test_every_command_has_help_with_an_example_and_the_exit_codes(word, capsys):
    assert main([word, "--help"]) == 0
    text = capsys.readouterr().out
    assert f"audit {word}" in text.split("example\n")[1]
    assert "130  interrupted" in text


def test_all_problems_are_named_at_once(tmp_path, capsys):
    words = ["--rounds", "zero", "--clients", "0", "--preset", "big", "--broadcast", "perhaps", "--familly", "x",
             "--fail-on", "everything", "--out", str(tmp_path / "run")]  # fmt: skip
    assert main(words) == 2
    error = capsys.readouterr().err
    for needle in ("6 problems", "--rounds zero: must be a whole number", "--clients is 0", "one of quick, small",
                   "must be on or off", "did you mean --family?", "choose from sample, class"):  # fmt: skip
        assert needle in error
    assert main(["--form", "x", "--system", "y", "--attacks", "z,grey"]) == 2
    error = capsys.readouterr().err
    for needle in ("4 problems", "unknown form 'x'", "unknown system 'y'", "unknown attack 'z'", "is a floor"):
        assert needle in error
    assert main(["--form", "entangled:RSR"]) == 2
    assert capsys.readouterr().err == "audit: --form entangled:RSR: write --form entangled --mechanism RSR\n"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--seeds", "0,a"], "--seeds 0,a: must be whole numbers with commas between, such as 0,1"),
        (["--form", "prototype", "raw"], "--form prototype raw: must be one word, in quotes where it holds spaces"),
        (["--curves", "rounds", "x"], "--curves rounds x: must be words with commas between and no spaces"),
    ],
)
def test_a_bad_value_is_told_which_kind_is_wanted(words, said, capsys):
    assert main([*words, "--dry-run"]) == 2
    assert capsys.readouterr().err == f"audit: {said}\n"


def test_every_option_says_what_it_wants():
    for hint in get_type_hints(AuditConfig).values():
        assert _wanted(hint)


@pytest.mark.parametrize(
    "config",
    [
        AuditConfig(),
        AuditConfig(form="raw", dataset="imagefolder:/my images/x", broadcast=False, alpha=0.5, seed=7),
        AuditConfig(form="prototype", preset="small", attacks=["ridge", "optimisation"], clients=3, own_system=True),
        AuditConfig(preset="full", curves=[]),
        AuditConfig(preset="full", family="small"),
    ],
)
def test_the_command_of_a_configuration_makes_it_again(config):
    import shlex

    config = resolve(config)
    words = shlex.split(command_line(config))
    assert words[0] == "audit"
    assert resolve(parse("", words[1:]).config) == config


def test_a_dry_run_prints_plan_cost_and_traffic_and_does_nothing(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert main([*TINY, "--dry-run"]) == 0
    text = capsys.readouterr().out
    for needle in ("4 clients, 2 rounds", "ridge (Q2)", "train and record", "as entangled", "broadcast"):
        assert needle in text
    assert main([*TINY, "--dry-run", "--json"]) == 0
    plan = json.loads(capsys.readouterr().out)
    assert plan["traffic"]["entangled"] == 4 * (512 + 10)
    assert plan["broadcast"] == 4 * 10 * 513
    assert list(tmp_path.iterdir()) == []


def test_a_plan_counts_clients_and_names_small_ones_and_classes_of_one_image(tmp_path, capsys):
    from PIL import Image

    from fedre_audit.plan import make_plan

    few, many = (make_plan(AuditConfig(clients=clients, rounds=5)) for clients in (10, 300))
    assert many.stages["score and report"] > 5 * few.stages["score and report"]
    assert few.notes == ()
    assert "300 of 300 clients train on fewer than 10 images (smallest 2, median 3)" in many.text()
    for name, count in (("cats", 30), ("dogs", 30), ("lonely", 1)):
        (tmp_path / name).mkdir()
        for i in range(count):
            Image.new("L", (8, 8), 4 * i + len(name)).save(tmp_path / name / f"{i}.png")
    assert main(["--dataset", f"imagefolder:{tmp_path}", "--clients", "2", "--dry-run"]) == 0
    assert "classes of a single image, whose mean is that image: lonely" in capsys.readouterr().out


def test_a_resumed_training_says_where_and_counts_to_the_end(tmp_path, capsys, monkeypatch):
    from fedre_audit.runs import Run
    from fedre_audit.stages import train
    from fedre_audit.stages.prepare import prepare

    def last_rounds(*, on_round, **_):
        for round_ in (10, 11):
            on_round({"round": round_, "participants": [0, 2]})

    monkeypatch.setattr(train, "run_federation", last_rounds)
    monkeypatch.setattr(train, "write_manifest", lambda *_: None)
    config = resolve(AuditConfig(clients=4, rounds=12, private_images=120, auxiliary_images=120))
    train.train(Run(tmp_path, config), prepare(config, quiet=True))
    lines = capsys.readouterr().err.splitlines()
    assert lines[0] == "train clients: resumed at round 11"
    assert lines[-1].startswith("train clients: 12/12, 4 clients")


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (PermissionError(13, "Permission denied", "sec/x"), "sec/x: Permission denied"),
        (OSError(36, "File name too long", "a" * 300), f"{'a' * 200}: File name too long"),
        (OSError(28, "No space left on device", b"runs/x"), "runs/x: No space left on device"),
    ],
)
def test_what_the_system_refuses_is_one_sentence(error, said, monkeypatch, capsys):
    from fedre_audit import cli

    def refuse(_):
        raise error

    monkeypatch.setattr(cli, "dispatch", refuse)
    assert main(["list"]) == 2
    hint = "check the path, its permissions and the free space"
    assert capsys.readouterr().err == f"audit: {said}; {hint}\n"


def test_output_that_cannot_be_written_is_one_sentence():
    if not os.path.exists("/dev/full"):
        pytest.skip("no /dev/full on this system")
    with open("/dev/full", "w", encoding="utf-8") as full:
        done = subprocess.run(
            [sys.executable, "-m", "fedre_audit", "list", "attacks"],
            stdout=full, stderr=subprocess.PIPE, text=True, check=False,
        )  # fmt: skip
    assert done.returncode == 2
    assert done.stderr.startswith("audit: the output: No space left on device; check the path")
    assert len(done.stderr.splitlines()) == 1


def test_work_without_steps_is_heard_and_reproductions_say_what_they_do(tmp_path, capsys):
    with beat("reproduce toy", seconds=0.05):
        time.sleep(0.2)
    lines = capsys.readouterr().err.splitlines()
    assert 1 <= len(lines) <= 4
    assert set(lines) == {"reproduce toy: 0 s so far"}
    assert main(["reproduce", "communication", "--out", str(tmp_path)]) == 0
    assert "plan: communication (" in capsys.readouterr().err


@pytest.mark.parametrize("word", [[], ["compare"]])
def test_a_dry_run_says_what_it_would_fetch_and_fetches_nothing(word, tmp_path, capsys, monkeypatch):
    monkeypatch.setattr("fedre_audit.data.base.fetch", lambda *_, **__: pytest.fail("went to the network"))
    assert main([*word, "--dataset", "cifar10", "--data-root", str(tmp_path / "none"), "--dry-run"]) == 2
    error = capsys.readouterr().err
    assert f"under {tmp_path / 'none'}, which does not exist" in error
    assert "cifar-10-binary.tar.gz would be fetched" in error
    assert not (tmp_path / "none").exists()


def test_a_full_dry_run_shares_a_small_data_set_out_and_warns_of_the_cost(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert main(["--preset", "full", "--family", "small", "--rounds", "1000000", "--dry-run"]) == 0
    text = capsys.readouterr().out
    assert "3913 private and 869 public images of mnist5k (it holds 5000; 45000 and 10000 were asked for)" in text
    assert "expensive: about" in text
    assert main(["--preset", "full", "--private-images", "44000", "--dry-run"]) == 2
    assert "mnist5k has 5000 training images" in capsys.readouterr().err


def test_json_is_one_line_and_a_gate_exits_3(tmp_path, capsys):
    words = [*TINY, "--out", str(tmp_path / "run"), "--json"]
    assert main([*words, "--fail-on", "sample,class,not-assessed"]) in (0, 3)
    printed = capsys.readouterr()
    result = json.loads(printed.out)
    assert result["verdict"] == AuditResult(tmp_path / "run").verdict
    assert result["exit_code"] == (0 if result["verdict"] == "NO_IMAGE_LEAKAGE_FOUND" else 3)
    assert (tmp_path / "run" / "report.html").is_file()


@pytest.mark.parametrize(
    ("level", "fail_on", "code"),
    [
        ("SAMPLE_LEVEL", ["sample"], 3),
        ("CLASS_LEVEL", ["sample"], 0),
        ("CLASS_LEVEL", ["class"], 3),
        ("SAMPLE_LEVEL", ["class"], 3),
        ("NOT_ASSESSED", ["class"], 0),
        ("NOT_ASSESSED", ["class", "not-assessed"], 3),
        ("NO_IMAGE_LEAKAGE_FOUND", ["class", "not-assessed"], 0),
    ],
)
def test_what_a_gate_lets_pass(level, fail_on, code, capsys):
    assert exit_code(level, fail_on) == code
    assert ("proves nothing" in capsys.readouterr().err) == (level == "NOT_ASSESSED" and code == 0)


def test_a_gate_of_a_comparison_names_the_arm(tmp_path, capsys, monkeypatch):
    levels = {"raw": "SAMPLE_LEVEL", "entangled:RAP": "NOT_ASSESSED"}
    arms = [{"name": name, "verdict": {"level": level, "worst": None}, "rows": []} for name, level in levels.items()]
    made = SimpleNamespace(comparison={"arms": arms}, report=tmp_path / "compare.html", path=tmp_path)
    monkeypatch.setattr("fedre_audit.comparison.compare", lambda *_, **__: made)
    assert main(["compare", "--forms", "raw,entangled:RAP", "--quiet", "--fail-on", "class"]) == 3
    said = capsys.readouterr().err
    assert "audit: --fail-on class: raw: the verdict is SAMPLE_LEVEL\n" in said
    assert "audit: entangled:RAP: nothing was assessed" in said


def test_the_list_of_systems_says_what_a_class_of_one_image_sends(capsys):
    assert main(["list", "systems"]) == 0
    said = next(line for line in capsys.readouterr().out.splitlines() if "fedgh" in line)
    assert "that of a class of one image is that image's representation" in said


def test_an_interruption_ends_cleanly_and_says_how_to_resume(tmp_path, capsys, monkeypatch):
    def interrupted(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(pipeline, "audit", interrupted)
    assert main(["--quiet", "--out", str(tmp_path / "my run")]) == 130
    error = capsys.readouterr().err
    assert f"resume with: audit --quiet --out '{tmp_path / 'my run'}'" in error
    assert "Traceback" not in error


def test_progress_off_a_terminal_is_plain_lines_and_quiet_is_quiet(capsys):
    with progress("attack uploads", 2) as tick:
        tick(100, "client 0")
        tick(100, "client 1")
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 1
    assert lines[0].startswith("attack uploads: 2/2, client 1")
    assert "\x1b" not in lines[0]
    with progress("attack uploads", 1, quiet=True) as tick:
        tick()
    assert capsys.readouterr().err == ""
    assert "about 30 s left" in describe("train", 1, 4, 10.0, 0, "")


def complete(words, position):
    """What bash offers at `position` of `words`."""
    line = " ".join(f"'{word}'" for word in words)
    code = f"{script('bash')}\nCOMP_WORDS=({line}); COMP_CWORD={position}; _audit; printf '%s\\n' \"${{COMPREPLY[@]}}\""
    return subprocess.run(["bash", "-c", code], check=True, capture_output=True, text=True).stdout.split()


def test_bash_completes_commands_options_and_values():
    assert complete(["audit", "comp"], 1) == ["compare", "completion"]
    assert "--private-images" in complete(["audit", "--pri"], 1)
    assert complete(["audit", "--form", "en"], 2) == ["entangled"]
    assert complete(["audit", "--fail-on", ""], 2) == ["sample", "class", "not-assessed"]
    assert complete(["audit", "list", "me"], 2) == ["mechanisms", "metrics"]


def test_other_shells_get_a_script_and_unknown_ones_an_answer(capsys):
    assert "complete -c audit -l form" in script("fish")
    assert script("zsh").startswith("autoload -U +X bashcompinit")
    assert main(["completion", "tcsh"]) == 2
    assert "bash, zsh or fish" in capsys.readouterr().err


def test_a_result_shows_itself_in_a_notebook(tmp_path):
    made = scores("CLASS_LEVEL")
    made["verdict"]["sentence"] = "<script>alert(1)</script>"
    result = AuditResult(make_run(tmp_path, made))
    shown = result._repr_html_()
    assert "Class-level leakage" in shown
    assert "<script>" not in shown
    assert 'data-value="13.642918"' in shown
    assert result.lines()[-1] == f"report: {tmp_path / 'report.html'}"


def test_a_real_interruption_ends_with_130_and_one_line(tmp_path):
    words = [sys.executable, "-m", "fedre_audit", *TINY, "--rounds", "500", "--out", str(tmp_path / "run")]
    # A background job inherits an ignored SIGINT; a person's terminal does not.
    heed = partial(signal.signal, signal.SIGINT, signal.SIG_DFL)
    process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, preexec_fn=heed)
    history = tmp_path / "run" / "history.jsonl"
    while not history.exists() or history.read_text().count("\n") < 5:  # the workers are up, training goes on
        assert process.poll() is None
        time.sleep(0.1)
    for _ in range(5):  # Python loses an interrupt that falls into a destructor; a person presses again
        process.send_signal(signal.SIGINT)
        with suppress(subprocess.TimeoutExpired):
            process.wait(timeout=5)
            break
    out, err = process.communicate(timeout=60)
    assert process.returncode == 130, err
    assert out == ""
    assert "Traceback" not in err.partition("Exception ignored")[0]
    assert err.splitlines()[-1].startswith("audit: interrupted, nothing finished is lost; resume with: audit ")


def test_a_reader_that_has_gone_gets_no_traceback_and_no_passing_gate():
    reads, writes = os.pipe()
    os.close(reads)
    done = subprocess.run([sys.executable, "-m", "fedre_audit", "--help"], stdout=writes, stderr=subprocess.PIPE)
    os.close(writes)
    assert (done.returncode, done.stderr) == (141, b"")
