"""Retrieval, membership, matching and slices on planted answers."""

import numpy as np
import pytest
import torch

from fedre_audit.audit.matching import hungarian, matched_null
from fedre_audit.audit.membership import membership_values
from fedre_audit.audit.retrieval import chance_values, rank_values, retrieve
from fedre_audit.audit.scoring import ATTACK, CHANCE, PERMUTED, PairScores, best_of, join, slices, top_share

SHAPE = (1, 6, 6)


def draw(count: int, seed: int) -> torch.Tensor:
    return torch.rand(count, *SHAPE, generator=torch.Generator().manual_seed(seed))


def raw_index(count: int, classes: int = 2) -> PairScores:
    row = np.arange(count)
    label = row % classes
    counts = np.bincount(label)[label]
    return PairScores(np.zeros(count, dtype=int), row, row, np.ones(count, dtype=int), label, counts)


def test_perfect_copies_are_always_picked_out_and_noise_at_chance():
    images, pool = draw(60, 0), draw(80, 1)
    labels = torch.arange(80) % 2
    table, sizes = retrieve(raw_index(60), {ATTACK: images, PERMUTED: draw(60, 2)}, images, pool, labels)
    assert table.values[ATTACK]["retrieval_top1"].min() == 1.0
    assert table.values[ATTACK]["retrieval_mrr"].min() == 1.0
    assert set(sizes) == {70.0}  # 30 of the class, itself among them, and 40 others
    mean = {who: table.values[who]["retrieval_top5"].mean() for who in (PERMUTED, CHANCE)}
    assert mean[CHANCE] == pytest.approx(5 / 70)
    assert mean[PERMUTED] == pytest.approx(mean[CHANCE], abs=0.1)


def test_members_of_one_row_do_not_compete_and_nan_is_never_a_rank():
    images, pool = draw(4, 0), draw(10, 1)
    index = raw_index(4, 1)
    index.row[:] = 0
    table, sizes = retrieve(index, {ATTACK: images[:1], PERMUTED: draw(1, 2)}, images, pool, torch.zeros(10))
    assert set(sizes) == {11.0}
    broken = torch.full((1, *SHAPE), float("nan"))
    table, _ = retrieve(index, {ATTACK: broken, PERMUTED: draw(1, 2)}, images, pool, torch.zeros(10))
    assert np.isnan(table.values[ATTACK]["retrieval_top1"]).all()


def test_an_answer_that_ignores_the_upload_is_at_chance():
    hits = []
    for seed in range(300):
        images, pool = draw(8, 3 * seed), draw(12, 3 * seed + 1)
        answer = torch.full((8, *SHAPE), 0.5)
        table, _ = retrieve(raw_index(8, 1), {ATTACK: answer, PERMUTED: answer}, images, pool, torch.zeros(12))
        hits.append(table.values[ATTACK]["retrieval_top1"].mean())
    assert np.mean(hits) == pytest.approx(1 / 20, abs=0.01)


def test_faded_answers_are_still_picked_out():
    images, pool = draw(60, 0), torch.cat([draw(40, 1), torch.full((40, *SHAPE), 0.5)])  # half the pool is pale
    faded = 0.5 + 0.05 * (images - 0.5)
    answers = {ATTACK: faded, PERMUTED: faded.flip(0)}
    table, _ = retrieve(raw_index(60), answers, images, pool, torch.arange(80) % 2)
    assert table.values[ATTACK]["retrieval_top1"].min() == 1.0
    assert table.values[PERMUTED]["retrieval_top1"].mean() < 0.1  # chance is 1 in 70


def test_too_small_a_pool_is_left_out():
    images = draw(2, 0)
    table, sizes = retrieve(raw_index(2, 1), {ATTACK: images, PERMUTED: images}, images, draw(2, 1), torch.zeros(2))
    assert (len(table), len(sizes)) == (0, 0)


def test_ties_share_the_rank():
    values = rank_values(np.array([0.0]), np.array([9.0]))
    assert values["retrieval_top1"][0] == pytest.approx(0.1)
    assert values["retrieval_top5"][0] == pytest.approx(0.5)
    assert chance_values(np.array([2.0]))["retrieval_mrr"][0] == pytest.approx(0.75)


@pytest.mark.parametrize("candidates", [1, 2, 20])
def test_who_ties_with_all_is_at_chance(candidates):
    tied, chance = rank_values(np.zeros(1), np.array([candidates - 1.0])), chance_values(np.array([float(candidates)]))
    assert {name: value[0] for name, value in tied.items()} == pytest.approx({n: v[0] for n, v in chance.items()})
    naive = np.mean([1 / rank for rank in range(1, candidates + 1)])
    assert tied["retrieval_mrr"][0] == pytest.approx(naive, abs=1e-12)
    assert np.isnan(rank_values(np.array([np.nan]), np.array([np.nan]))["retrieval_mrr"][0])


def test_membership_extremes():
    high, low = np.arange(200.0) + 500, np.arange(300.0)
    assert membership_values(high, low) == {"membership_auc": 1.0, "membership_tpr_at_1pct": 1.0}
    same = membership_values(np.arange(1000.0), np.arange(1000.0))
    assert same["membership_auc"] == pytest.approx(0.5)
    assert same["membership_tpr_at_1pct"] == pytest.approx(0.01, abs=0.002)
    assert np.isnan(membership_values(np.array([np.nan]), low)["membership_auc"])
    assert np.isnan(membership_values(np.array([]), low)["membership_auc"])


def test_hungarian_undoes_any_order_and_the_null_gets_the_same_choice():
    targets = draw(12, 0)
    order = torch.randperm(12, generator=torch.Generator().manual_seed(1))
    found, values = hungarian("psnr", targets[order], targets)
    assert torch.equal(found, order)
    assert float(values.min()) > 60
    mine, null = matched_null("psnr", draw(12, 5), draw(12, 6), targets)
    assert float(mine.mean()) == pytest.approx(float(null.mean()), abs=0.3)
    in_order = ((draw(12, 5) - targets).square().flatten(1).mean(1).log10() * -10).mean()
    assert float(mine.mean()) > float(in_order)  # the choice flatters noise


def counted() -> PairScores:
    count = np.array([1, 2, 2, 25, 25, 25])
    row = np.array([0, 1, 1, 2, 2, 2])
    table = PairScores(np.zeros(6, dtype=int), row, np.arange(6), count, row, count)
    attack = {"psnr": np.array([5.0, 1, 3, 9, 8, 7]), "mse": np.array([5.0, 1, 3, 9, 8, 7])}
    floor = {"psnr": np.array([4.0, 6, 2, 1, 2, 3]), "mse": np.array([4.0, 6, 2, 1, 2, 3])}
    return table.with_values({ATTACK: attack, "mean_image": floor})


def test_slices_by_class_count():
    found = slices(counted())
    assert {name: len(table) for name, table in found.items()} == {"all": 6, "n1": 1, "n2-5": 2, "n20+": 3}


def test_best_of_gives_every_predictor_its_own_choice():
    best = best_of(counted())
    assert best.values[ATTACK]["psnr"].tolist() == [5, 3, 9]
    assert best.values["mean_image"]["psnr"].tolist() == [4, 6, 3]
    assert best.values["mean_image"]["mse"].tolist() == [4, 2, 1]


def test_leakiest_share_and_join():
    assert top_share(counted(), "psnr", 0.34) == {ATTACK: 8.0, "mean_image": pytest.approx(13 / 3)}
    assert top_share(counted(), "mse", 0.01) == {ATTACK: 1.0, "mean_image": 1.0}
    joined = join([counted(), counted()])
    assert len(set(joined.row.tolist())) == 6
