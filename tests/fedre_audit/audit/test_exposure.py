"""Most exposed single images: by gain over the best floor, each once, finite only, with whether it was picked out."""

import numpy as np
import pytest

from fedre_audit.audit.exposure import SAMPLES, exposed_samples
from fedre_audit.audit.rows import FormAttack
from fedre_audit.audit.scoring import ATTACK, PERMUTED, PairScores
from fedre_audit.stages.score import most_exposed, most_exposed_samples, reach, validated


def pairs(samples, values, clients=None):
    n = len(samples)
    index = np.zeros(n, dtype=np.int64)
    clients = index if clients is None else np.array(clients)
    return PairScores(clients, index, np.array(samples), index + 1, index + 3, index + 1, values)


def scored(samples, own, floor, clients=None, **changes):
    values = {ATTACK: {"psnr": np.array(own)}, PERMUTED: {"psnr": np.zeros(len(own))},
              "grey": {"psnr": np.array(floor) - 5.0}, "mean_image": {"psnr": np.array(floor)}}  # fmt: skip
    facts = {"form": "raw", "attack": "ridge", "level": "Q3", "round": 0, "target": "members"} | changes
    return FormAttack(table=pairs(samples, values, clients), floors=("grey", "mean_image"), **facts)


def picks(samples, hits, clients=None):
    return pairs(samples, {ATTACK: {"retrieval_top1": np.array(hits)}}, clients)


def test_worst_first_each_image_once_and_only_what_is_finite():
    table = scored([7, 8, 7, 9], [15.0, np.nan, 19.0, 16.0], [12.0, 12.0, 12.0, 10.0])
    found = exposed_samples(table, picks([7, 7, 9], [0.0, 1.0, 0.5]))
    assert [(image["sample"], image["value"], image["floor"]) for image in found] == [(7, 19.0, 12.0), (9, 16.0, 10.0)]
    assert [image["gain"] for image in found] == pytest.approx([7.0, 6.0])
    assert [image["picked"] for image in found] == [1.0, 0.5]
    assert found[0]["class"] == 3


def test_the_same_image_number_at_two_clients_is_two_images():
    table = scored([7, 7], [15.0, 16.0], [12.0, 12.0], clients=[0, 1])
    found = exposed_samples(table, picks([7], [1.0], clients=[0]))
    assert [(image["client"], image["picked"]) for image in found] == [(1, None), (0, 1.0)]


def test_no_more_than_ten():
    own = np.arange(30.0)
    found = exposed_samples(scored(range(30), own, np.zeros(30)), None)
    assert [image["sample"] for image in found] == list(range(29, 29 - SAMPLES, -1))


@pytest.mark.parametrize(("status", "count"), [("ok", 2), ("not_validated", 0), ("failed", 0)])
def test_only_a_validated_attacker_names_images(status, count):
    table = scored([1, 2], [15.0, 16.0], [12.0, 12.0])
    row = {"form": "raw", "attack": "ridge", "stream": 1, "target": "members", "slice": "all", "metric": "psnr"}
    assert len(most_exposed_samples([table], [table], [row | {"status": status}])) == count
    assert most_exposed_samples([table], [table], [row | {"status": "ok", "curve": "auxiliary"}]) == []


def test_a_stream_that_was_not_validated_gives_way_to_one_round():
    one, whole = scored([1], [15.0], [12.0]), scored([1], [18.0], [12.0], stream=60)
    row = {"form": "raw", "attack": "ridge", "target": "members", "slice": "all", "metric": "psnr"}
    rows = [row | {"stream": 1, "status": "ok"}, row | {"stream": 60, "status": "not_validated"}]
    assert most_exposed_samples([one, whole], [one, whole], rows)[0]["value"] == 15.0
    rows[1]["status"] = "ok"
    assert most_exposed_samples([one, whole], [one, whole], rows)[0]["value"] == 18.0


def test_a_stream_of_one_client_does_not_hide_what_one_round_shows_of_the_others():
    one = scored([1, 2, 3, 4], [15.0, 19.0, 13.0, 13.0], [12.0] * 4, clients=[0, 1, 2, 3])
    few = scored([1], [16.0], [12.0], clients=[0], stream=60)
    row = {"form": "raw", "attack": "ridge", "target": "members", "slice": "all", "metric": "psnr", "status": "ok"}
    found = most_exposed_samples([one, few], [one, few], [row | {"stream": 1}, row | {"stream": 60}])
    assert [(image["client"], image["gain"]) for image in found] == [(1, 7.0), (0, 4.0), (2, 1.0), (3, 1.0)]
    assert [image["attack"] for image in found[:2]] == ["ridge", "ridge, 60 rounds"]
    assert max([one, few], key=reach) is one
    whole = scored([1, 2, 3, 4], [16.0] * 4, [12.0] * 4, clients=[0, 1, 2, 3], stream=60)
    assert max([one, whole], key=reach) is whole


@pytest.mark.parametrize("broken", ["not_validated", "failed"])
def test_a_stream_that_was_not_validated_ranks_no_client(broken):
    clients = [0, 1, 2, 3]
    one = scored([1, 2, 3, 4], [15.0, 19.0, 13.0, 13.0], [12.0] * 4, clients)
    whole = scored([1, 2, 3, 4], [30.0, 13.0, 13.0, 13.0], [12.0] * 4, clients, stream=60)
    row = {"form": "raw", "attack": "ridge", "target": "members", "slice": "all", "metric": "psnr", "status": "ok"}
    rows = [row | {"stream": 1}, row | {"stream": 60, "status": broken}]
    assert most_exposed([one, whole], rows)[0] | {"client": 1, "attack": "ridge"} == most_exposed([one, whole], rows)[0]
    assert validated([one, whole], rows) == [one]
    rows[1]["status"] = "ok"
    assert most_exposed([one, whole], rows)[0]["attack"] == "ridge, 60 rounds"
    rows = [one_row | {"status": broken} for one_row in rows]
    assert most_exposed([one, whole], rows) == []
    assert most_exposed([one], [*rows, row | {"stream": 1, "curve": "auxiliary"}]) == []
