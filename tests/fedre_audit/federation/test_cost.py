"""Entangling is a small part of a round; the evaluation-mode pass it needs is reported apart."""

import json

from fedre_audit.figures import RESULTS
from fedre_audit.figures.entangling_cost import SETTINGS, shares


def test_entangling_takes_under_1_6_percent_of_a_round():
    found = shares(*SETTINGS["fedavg_cnn, 3x32x32, 150 images, 10 classes"], repeats=3)
    assert 0 < found["entangling_percent"] < 1.6
    assert found["evaluation_pass_percent"] > found["entangling_percent"]


def test_the_measured_figure_says_so_in_every_setting():
    values = json.loads((RESULTS / "entangling_cost.json").read_text())["values"]
    assert values.keys() == SETTINGS.keys()
    assert all(0 < share["entangling_percent"] < 1.6 for share in values.values())
