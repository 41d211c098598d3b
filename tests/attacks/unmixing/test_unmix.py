"""`unmix` end to end on planted streams: accuracy, honesty, mechanisms, odd streams."""

import math
from dataclasses import replace
from statistics import median

import pytest
import torch

from attacks.unmixing import UNMIXERS, recovered_view, unmix
from attacks.unmixing.identifiability import judge, minimum_rounds, rank_of
from attacks.unmixing.least_squares import LeastSquares, solve
from attacks.unmixing.likelihood import DriftFilter, make_grid
from attacks.unmixing.model import permuted_weights, smoothed_norms, within_bounds
from knowledge_forms.errors import AuditError
from tests.attacks.unmixing.streams import draw_weights, planted, relative, view_of


def median_error(method, repeats=8, **case):
    errors = []
    for seed in range(repeats):
        weights, uploads, truth = planted(seed=seed, **case)
        errors.append(relative(unmix(view_of(weights, uploads), method, nulls=0).prototypes, truth[-1]))
    return float(torch.tensor(errors).median())


def test_static_prototypes_under_known_noise():
    constant = make_grid(q=(0.001, 0.01, 0.1), tau=(math.inf,), common=(0.0,), floor=(0.0,))
    known = DriftFilter(adaptive=False, norm_smoothed=False, grid=constant, noise=0.1)
    case = {"static": True, "sigma": 0.1}
    assert median_error("least_squares", **case) == pytest.approx(0.174, abs=0.03)
    assert median_error(known, **case) == pytest.approx(0.174, abs=0.03)


@pytest.mark.parametrize(
    ("case", "limit"),
    [
        ({"walk": 0.02, "sigma": 0.02}, 0.14),
        ({"walk": 0.1, "common": 0.1}, 0.40),
        ({"classes": 20, "walk": 0.02, "sigma": 0.02}, 0.22),
    ],
)
def test_drifting_prototypes(case, limit):
    found = median_error("adaptive_norm_smoothed", 12, **case)
    assert found < limit
    assert found < 0.5 * median_error("least_squares", 12, **case)


def test_least_squares_error_is_the_exact_trace():
    g = torch.Generator().manual_seed(0)
    weights = draw_weights(100, 10, g)
    truth = torch.zeros(10, 20000).double()
    noise = torch.randn(100, 20000, generator=g, dtype=torch.float64)
    found, inverse = solve(weights, weights @ truth + noise)
    assert float(found.square().mean()) == pytest.approx(float(inverse.trace()) / 10, rel=0.05)


def test_prior_ridge_leaves_one_minus_t_over_h():
    g = torch.Generator().manual_seed(0)
    ratios = []
    for _ in range(20):
        truth = torch.randn(20, 200, generator=g, dtype=torch.float64)
        weights = draw_weights(10, 20, g)
        found, _ = solve(weights, weights @ truth, penalty=1e-9)
        ratios.append(float((found - truth).square().sum() / truth.square().sum()))
    assert sum(ratios) / 20 == pytest.approx(0.5, abs=0.02)


@pytest.mark.parametrize("method", UNMIXERS)
def test_every_method_recovers_an_easy_stream(method):
    weights, uploads, truth = planted(3, 60, 32, walk=1e-4, static=False)
    found = unmix(view_of(weights, uploads), method, nulls=2)
    limit = 1.6 if method == "least_squares" else 0.35
    assert relative(found.prototypes, truth[-1]) < limit
    assert found.smoothed.shape == found.filtered.shape == (60, 3, 32)
    assert found.error_by_round.shape == (60,)
    assert found.rank == 3
    assert found.null_gap > 0


def test_validated_on_a_clean_stream_and_the_prediction_holds():
    weights, uploads, truth = planted(5, 80, 128, walk=0.01)
    found = unmix(view_of(weights, uploads))
    assert found.status == "validated"
    assert found.null_gap > 0.2
    true = float(
        torch.tensor([relative(s, p) for s, p in zip(found.smoothed[-40:], truth[-40:], strict=True)]).median()
    )
    assert 1 / 2.5 < found.predicted_error / true < 2.5


def test_nothing_is_claimed_when_the_weights_sent_are_noise():
    gaps = []
    for seed in range(4):
        _, uploads, _ = planted(5, 80, 128, walk=0.02, seed=seed)
        fake = draw_weights(80, 5, torch.Generator().manual_seed(100 + seed))
        found = unmix(view_of(fake, uploads), seed=seed)
        gaps.append(found.null_gap)
        assert found.status != "validated"
    assert abs(sum(gaps) / 4) < 0.05


def test_fixed_weights_are_refused_with_the_reason():
    weights, uploads, _ = planted(5, 40, 16)
    fixed = weights[:1].expand(40, -1)
    found = unmix(view_of(fixed, uploads))
    assert (found.status, found.rank, found.recovered) == ("refused", 1, False)
    assert "never change" in found.reason
    with pytest.raises(AuditError, match="nothing was unmixed"):
        recovered_view(view_of(fixed, uploads), found)


def test_vanilla_average_is_refused_and_its_histogram_named():
    weights, uploads, _ = planted(5, 40, 16)
    found = unmix(view_of(weights[:1].expand(40, -1), uploads, mechanism="VAR"))
    assert found.status == "refused"
    assert "label histogram" in found.reason
    torch.testing.assert_close(found.label_share, weights[0].float())


@pytest.mark.parametrize(("mechanism", "form"), [("RSP", "prototype"), ("RSR", "raw")])
def test_selected_items_need_no_unmixing(mechanism, form):
    labels = torch.tensor([0, 2, 2, 0, 2])
    uploads = torch.arange(10.0).reshape(5, 2)
    found = unmix(view_of(torch.eye(4)[labels], uploads, mechanism=mechanism))
    assert found.classes.tolist() == [0, 2]
    assert found.prototypes.tolist() == [[6.0, 7.0], [8.0, 9.0]]
    assert found.validated
    assert recovered_view(view_of(torch.eye(4)[labels], uploads), found).form == form
    # The newest upload of class 0 is of the round before the newest: what it is worth today nobody can tell.
    assert found.oldest == 1
    assert "up to 1 rounds old" in found.reason
    assert math.isnan(found.predicted_error)


def test_a_client_of_one_class_uploads_its_prototype():
    uploads = torch.randn(6, 3, generator=torch.Generator().manual_seed(0))
    found = unmix(view_of(torch.ones(6, 1), uploads))
    torch.testing.assert_close(found.prototypes, uploads[-1:])
    assert (found.oldest, found.predicted_error) == (0, 0.0)


def test_a_client_of_one_class_under_random_sample_weights_uploads_no_prototype():
    uploads = torch.randn(6, 3, generator=torch.Generator().manual_seed(0))
    found = unmix(view_of(torch.ones(6, 1), uploads, mechanism="RAR"))
    assert "weighted at random" in found.reason
    assert math.isnan(found.predicted_error)


def test_a_class_of_rounding_alone_is_none():
    """A trace of another class in the encoding is neither a class nor a mixture."""
    weights = torch.tensor([[0.99995, 0.00005, 0.0], [0.0, 0.00005, 0.99995]])
    uploads = torch.arange(4.0).reshape(2, 2)
    found = unmix(view_of(weights, uploads, mechanism="RSP"))
    assert found.classes.tolist() == [0, 2]
    assert found.prototypes.tolist() == uploads.tolist()
    assert len(found.label_share) == 2


@pytest.mark.parametrize("images", [40, 41, 47, 61])
def test_a_class_of_any_size_is_seen_in_the_clear(images):
    """41 times 1/41 is not 1 in float32, and uploads recorded elsewhere may say so."""
    uploads = torch.randn(6, 3, generator=torch.Generator().manual_seed(0))
    share = torch.tensor(1 / images).expand(images).double().sum().float()
    assert unmix(view_of(share.expand(6, 1), uploads)).validated


def test_one_upload_is_too_few_and_its_weights_are_not_called_fixed():
    weights, uploads, _ = planted(3, 1, 16)
    found = unmix(view_of(weights, uploads))
    assert found.status == "not_validated"
    assert "1 uploads for 3 classes, at least 4 are needed" in found.reason
    assert found.prototypes.isfinite().all()


def test_too_few_rounds_are_not_validated():
    weights, uploads, _ = planted(10, 11, 32)
    found = unmix(view_of(weights, uploads))
    assert found.status == "not_validated"
    assert "at least 12" in found.reason
    fewer = unmix(view_of(weights[:5], uploads[:5]))
    assert (fewer.rank, fewer.status) == (5, "not_validated")
    assert math.isnan(fewer.null_gap)
    assert fewer.prototypes.isfinite().all()


def test_changing_class_sets_and_absent_rounds():
    weights, uploads, truth = planted(5, 90, 64, walk=0.01)
    weights = weights.clone()
    weights[20:40, 1] = 0  # the class is away for a while
    weights /= weights.sum(1, keepdim=True)
    uploads = torch.einsum("th,thd->td", weights, truth)
    present = [t for t in range(90) if t % 7 != 3]
    wide = torch.zeros(90, 9).double()
    wide[:, [0, 2, 3, 5, 8]] = weights
    found = unmix(view_of(wide[present], uploads[present], rounds=present), nulls=2)
    assert found.classes.tolist() == [0, 2, 3, 5, 8]
    assert found.rounds.tolist() == present
    assert relative(found.prototypes, truth[present[-1]]) < 0.2


def test_recovered_view_is_a_prototype_upload():
    weights, uploads, _ = planted(3, 30, 16)
    view = view_of(torch.cat([weights, torch.zeros(30, 2)], 1), uploads)
    found = unmix(view, nulls=0)
    recovered = recovered_view(view, found)
    upload = recovered.latest
    assert (recovered.form, upload.form, upload.round) == ("prototype", "prototype", 29)
    assert upload.label_encoding.tolist() == torch.eye(5)[:3].tolist()
    torch.testing.assert_close(upload.representation, found.prototypes)
    torch.testing.assert_close(recovered_view(view, found, index=4).latest.representation, found.smoothed[4])


def test_no_truth_and_no_randomness_of_its_own():
    weights, uploads, _ = planted(4, 30, 16)
    view = view_of(weights, uploads)
    first, second = unmix(view, seed=3), unmix(view, seed=3)
    assert torch.equal(first.prototypes, second.prototypes)
    assert first.null_gap == second.null_gap
    assert not torch.equal(permuted_weights(weights, 1, 0), permuted_weights(weights, 1, 1))


def test_uploads_of_several_rows_and_broken_ones_are_named():
    weights, uploads, _ = planted(4, 5, 16)
    view = view_of(weights, uploads)
    bad = replace(view.uploads[2], representation=torch.full((1, 16), math.nan))
    with pytest.raises(AuditError, match="client 0, round 2: the upload is not finite"):
        unmix(replace(view, uploads=(*view.uploads[:2], bad)))
    rows = replace(bad, representation=torch.zeros(2, 16), label_encoding=torch.eye(4)[:2])
    with pytest.raises(AuditError, match="2 rows"):
        unmix(replace(view, uploads=(rows,)))


def test_a_collapsed_encoder_is_never_validated():
    weights, _, _ = planted(4, 30, 16)
    found = unmix(view_of(weights, torch.ones(30, 16)))
    assert found.status != "validated"
    assert unmix(view_of(weights, torch.zeros(30, 16))).status != "validated"


def test_permuted_weights_keep_held_classes_and_values():
    weights = torch.tensor([[0.2, 0.0, 0.8, 0.0], [0.1, 0.2, 0.3, 0.4]]).double()
    drawn = permuted_weights(weights, 200, 0)
    assert torch.equal((drawn != 0), (weights != 0).expand_as(drawn))
    assert torch.equal(drawn.sort(-1).values, weights.sort(-1).values.expand_as(drawn))
    torch.testing.assert_close(drawn[:, 1].mean(0), torch.full((4,), 0.25).double(), atol=0.03, rtol=0)


def test_smoothed_norms_repeat_the_edges():
    norms = smoothed_norms(torch.tensor([[1.0], [2.0], [4.0]]).double())
    assert norms.log2().tolist() == pytest.approx([0.6, 1.0, 1.4])


def test_condition_of_uniform_weights():
    g = torch.Generator().manual_seed(0)
    conditions = torch.tensor([rank_of(draw_weights(100, 10, g))[1] for _ in range(50)])
    assert float(conditions.median()) == pytest.approx(7.1, abs=0.5)
    assert minimum_rounds(10) == 12


def test_the_rule():
    fine = {"rounds": 60, "classes": 5, "rank": 5, "error": 0.1, "null_gap": 0.5}
    expected = {
        "validated": {},
        "inconclusive": {"error": 0.5},
        "not_validated": {"error": 0.9},
    }
    for status, change in expected.items():
        assert judge(**(fine | change)).status == status
    nan = math.nan
    never: list[dict] = [{"models_drift": False}, {"null_gap": 0.0}, {"null_gap": nan}, {"error": nan}]
    for change in (*never, {"rank": 4}, {"rounds": 5}):
        assert judge(**(fine | change)).status == "not_validated"


def test_windowed_least_squares_uses_the_last_rounds_only():
    weights, uploads, _ = planted(4, 50, 16, walk=0.05)
    changed = uploads.clone()
    changed[:38] = 0
    method = LeastSquares(windowed=True)
    torch.testing.assert_close(
        unmix(view_of(weights, uploads), method, nulls=0).prototypes,
        unmix(view_of(weights, changed), method, nulls=0).prototypes,
    )


def test_learned_drift_finds_which_class_moves():
    weights, _, truth = planted(4, 80, 128, walk=0.02)
    g = torch.Generator().manual_seed(9)
    truth = truth.clone()
    truth[:, 2] += 0.3 * torch.randn(80, 128, generator=g, dtype=torch.float64).cumsum(0)
    view = view_of(weights, torch.einsum("th,thd->td", weights, truth))
    errors = {}
    for name in ("adaptive_norm_smoothed", "learned_drift"):
        late = zip(unmix(view, name, nulls=0).smoothed[-40:], truth[-40:], strict=True)
        errors[name] = median(relative(state, p) for state, p in late)
    assert errors["learned_drift"] < 0.9 * errors["adaptive_norm_smoothed"]


def test_bounds_never_move_an_estimate_away_from_the_truth():
    weights, _, truth = planted(4, 30, 64, walk=0.05)
    truth = truth.clamp(min=0)
    uploads = torch.einsum("th,thd->td", weights, truth)
    guess = truth + torch.randn(truth.shape, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    clipped = within_bounds(guess, weights, uploads)
    assert bool(((clipped - truth).abs() <= (guess - truth).abs() + 1e-12).all())
    assert float((clipped - truth).norm() / (guess - truth).norm()) < 0.9
    assert within_bounds(guess, weights, uploads - 1.0) is guess
    away = weights.clone()
    away[3, 1] = 0
    assert bool(within_bounds(guess, away, uploads).isfinite().all())
