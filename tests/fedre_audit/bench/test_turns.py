"""Works that take turns: one at a time, whole rounds each, each billed for its own time alone."""

import os
import time

import pytest

from fedre_audit.bench.measure import in_turns
from fedre_audit.bench.scaling import growth

TINY = {"clients": 2, "images": 32, "rounds": 2, "family": "fedavg_cnn", "workers": 1}


def test_each_is_billed_for_its_own_turns_and_works_alone(tmp_path):
    log = tmp_path / "log"

    def sleeper(name, seconds, turns):
        def work(pause):
            for turn in range(turns):
                with log.open("a", encoding="utf-8") as stream:
                    stream.write(f"{name}{turn} ")
                time.sleep(seconds)
                pause()

        return work

    quick, slow = in_turns([sleeper("a", 0.02, 4), sleeper("b", 0.06, 2)])
    assert log.read_text(encoding="utf-8").split() == ["a0", "b0", "a1", "b1", "a2", "a3"]
    assert 0.08 <= quick < 0.12 <= slow


def test_a_work_that_fails_is_no_short_time(capfd):
    def broken(pause):
        pause()
        raise ValueError("no images")

    before = time.perf_counter()
    with pytest.raises(RuntimeError, match="work 1 of 2 ended early"):
        in_turns([lambda pause: [pause() for _ in range(10)], broken])
    assert "no images" in capfd.readouterr().err
    assert time.perf_counter() - before < 5


def test_every_work_has_a_process_of_its_own(tmp_path):
    def who(pause):
        (tmp_path / str(os.getpid())).touch()

    in_turns([who, who])
    assert len(list(tmp_path.iterdir())) == 2
    assert not (tmp_path / str(os.getpid())).exists()


def test_growth_is_the_later_options_over_the_first():
    assert growth(TINY, {**TINY, "rounds": 4, "images": 256}) > 1.5
