"""Tables of clients that took part in different numbers of rounds."""

import numpy as np
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
