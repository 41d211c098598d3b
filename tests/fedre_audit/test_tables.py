"""Tables of clients that took part in different numbers of rounds."""

from types import SimpleNamespace

import numpy as np
import torch
from torch import nn

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


def test_images_of_weight_zero_are_no_members():
    images = torch.zeros(6, 1, 2, 2)
    images[1] = 1.0
    labels = torch.zeros(6, dtype=torch.int64)
    weight = torch.tensor([0.0, 1.0, 0.0])  # of three images of the client, one was sent
    contribution = SimpleNamespace(sample_ids=torch.arange(3), weight=weight)
    case = SimpleNamespace(
        contribution=contribution, private=images[:3], others=(images[3:], labels[3:]), form="raw", cluster=0,
        prepared=SimpleNamespace(data=SimpleNamespace(labels=labels)), stream=1, trusted=True,
        view=SimpleNamespace(latest=SimpleNamespace(round=0)),
    )  # fmt: skip
    tables = Tables([], nn.Identity())
    tables.add_membership(case, None, {"planted": Recognises()})  # type: ignore[arg-type]
    ((table,),) = tables.parts.values()
    assert table.members.tolist() == [1]
    assert table.values[ATTACK]["membership_auc"].tolist() == [1.0]
