"""Whose images made what an attacker holds."""

import torch

from fedre_audit.audit.truth import Contribution, by_newest

LABELS = torch.tensor([3, 5, 3, 5, 7])


def sent(*, ids: list[int], chosen: int) -> Contribution:
    weight = torch.tensor([float(i == chosen) for i in ids])
    row, none = torch.zeros(len(ids), dtype=torch.int64), torch.empty(0)
    return Contribution(torch.tensor(ids), row, weight, torch.ones(8), torch.tensor([3, 5]), none)


def test_of_samples_in_the_clear_the_newest_of_each_class_is_the_truth():
    ids = [0, 1, 2, 3]
    truth = {(0, round_): sent(ids=ids, chosen=chosen) for round_, chosen in ((2, 2), (0, 0), (1, 1))}
    truth[1, 3] = sent(ids=[4], chosen=4)
    found = by_newest(truth, 0, LABELS, torch.tensor([3, 5]))
    assert found is not None
    assert found.sample_ids.tolist() == [2, 1]
    assert found.row.tolist() == [0, 1]
    assert found.weight.tolist() == [1.0, 1.0]
    assert by_newest(truth, 0, LABELS, torch.tensor([3, 7])) is None
    assert by_newest(truth, 9, LABELS, torch.tensor([3])) is None
