"""Tables of clients that took part in different numbers of rounds."""

from types import SimpleNamespace

import numpy as np
import pytest
import torch
from torch import nn

from fedre_audit.audit.rows import summarise
from fedre_audit.audit.scoring import ATTACK, FLOOR_NAMES, PERMUTED, PairScores
from fedre_audit.stages.tables import Tables


def one_client(client):
    one = np.array([client])
    values = {who: {"psnr": np.array([10.0])} for who in (ATTACK, PERMUTED, *FLOOR_NAMES)}
    return PairScores(one, one * 0, one, one * 0 + 1, one * 0, one * 0 + 1, values)


def test_a_joined_table_is_named_by_the_longest_stream_whoever_comes_first():
    whole = Tables(["ridge"], nn.Identity())
    for client, rounds in enumerate((40, 45, 43)):
        own = Tables(["ridge"], nn.Identity())
        for stream in (1, rounds):
            meta = {"level": "Q2", "round": rounds - 1, "stream": stream}
            own._keep(("ridge", "class_mean", stream > 1, rounds != 45), one_client(client), meta)
        whole.merge(own.collected)
    found = {scored.stream: scored for scored in whole.joined("entangled")}
    assert sorted(found) == [1, 45]
    assert found[45].trusted  # client 1, of 45 rounds, was not validated: the declared stream is 45 all the same
    assert found[45].table.client.tolist() == [0, 2]


class Recognises:
    """Knows every image it is asked about by its first pixel, which is 1 in the one image that was sent."""

    level = "Q2"

    def score(self, view, images, labels):
        return images[:, 0, 0, 0]


def asked_of_membership(images, weight, cluster=0):
    """The tables of one client of raw uploads; the first images, one for each of `weight`, are its own."""
    labels = torch.zeros(len(images), dtype=torch.int64)
    own = len(weight)
    contribution = SimpleNamespace(sample_ids=torch.arange(own), weight=torch.tensor(weight))
    case = SimpleNamespace(
        contribution=contribution, private=images[:own], others=(images[own:], labels[own:]), form="raw",
        cluster=cluster, prepared=SimpleNamespace(data=SimpleNamespace(labels=labels)), stream=1, trusted=True,
        view=SimpleNamespace(latest=SimpleNamespace(round=0)),
    )  # fmt: skip
    tables = Tables([], nn.Identity())
    tables.add_membership(case, None, {"planted": Recognises()})  # type: ignore[arg-type]
    return tables


def test_images_of_weight_zero_are_no_members():
    images = torch.zeros(6, 1, 2, 2)
    images[1] = 1.0
    # of three images of the client, one was sent
    ((table,),) = asked_of_membership(images, [0.0, 1.0, 0.0]).parts.values()
    assert table.members.tolist() == [1]
    assert table.values[ATTACK]["membership_auc"].tolist() == [1.0]


@pytest.mark.parametrize("score", [float("nan"), float("inf")])
@pytest.mark.parametrize("broken", [slice(0, 4), slice(11, 12)])
def test_a_membership_score_that_is_no_number_fails_the_row_and_is_counted(score, broken):
    images = torch.zeros(12, 1, 2, 2)
    images[4:6] = 1.0  # two of six members are known
    whole = asked_of_membership(images, [1.0] * 6)
    images[broken] = score
    whole.merge(asked_of_membership(images, [1.0] * 6, cluster=1).collected)
    (found,) = whole.joined("raw")
    for metric in ("membership_auc", "membership_tpr_at_1pct"):
        row = summarise(found.table, metric, floors=found.floors)
        assert (row["n"], row["n_invalid"], row["status"]) == (2, 1, "failed")
        assert row["reason"] == "1 of 2 answers are not finite"
    assert row["value"] == pytest.approx(2 / 6)  # of the client whose scores are all numbers


def test_members_whose_class_the_upload_does_not_hold_are_missed_not_left_out():
    images = torch.zeros(12, 1, 2, 2)
    images[:4], images[4:6] = -torch.inf, 1.0
    ((table,),) = asked_of_membership(images, [1.0] * 6).parts.values()
    assert table.values[ATTACK]["membership_auc"].tolist() == pytest.approx([2 / 6])
