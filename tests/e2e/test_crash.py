"""Killed by SIGKILL while training, attacking and scoring, a run ends with the scores of a quiet one."""

from fedre_audit.figures.crash import survive

TINY = {"clients": 3, "rounds": 12, "private_images": 150, "auxiliary_images": 100, "device": "cpu"}


def test_a_killed_run_ends_like_a_quiet_one():
    found = survive(("training", "attack", "scoring"), TINY)
    assert [kill["killed"] for kill in found["kills"]] == [True, True, True]
    training, attacking, scoring = found["kills"]
    assert training["rounds"] > 0
    assert not training["scored"]
    assert attacking["trained"]
    assert attacking["attack_files"] > 0
    assert scoring["attacked"]
    assert not scoring["scored"]
    assert found["same_scores"]
    assert found["same_uploads"]
