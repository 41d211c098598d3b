"""Matchers: a candidate is found where the upload tells it apart, and at chance where it does not."""

import numpy as np
import pytest
import torch

from attacks.knowledge import Q0
from attacks.matching import ByEmbedding, ByReconstruction, correlation_scores, embedding_scores, pixel_scores
from attacks.ridge import Ridge
from knowledge_forms.errors import AuditError
from tests.attacks.tiny import knowledge, upload_of


def pool(count=50, seed=7):
    return torch.rand(count, 1, 6, 6, generator=torch.Generator().manual_seed(seed))


def top1(scores):
    return float((scores.argmax(1) == torch.arange(len(scores))).float().mean())


def test_scores_are_minus_the_distance():
    a, b = pool(5), pool(8, seed=8)
    expected = -(a[:, None] - b[None]).flatten(2).norm(dim=2)
    torch.testing.assert_close(pixel_scores(a, b), expected)
    torch.testing.assert_close(embedding_scores(a.flatten(1), b.flatten(1)), expected)


@pytest.mark.parametrize("matcher", [ByEmbedding(), ByReconstruction(attack=Ridge())], ids=lambda m: m.name)
def test_every_row_of_an_informative_upload_is_identified(matcher):
    candidates = pool()
    scores = matcher.fit(knowledge(count=200)).scores(upload_of(candidates[:20].flatten(1)), candidates)
    assert scores.shape == (20, 50)
    assert top1(scores) == 1.0


@pytest.mark.parametrize("matcher", [ByEmbedding(), ByReconstruction(attack=Ridge())], ids=lambda m: m.name)
def test_rows_of_someone_else_identify_nobody(matcher):
    candidates = pool(200)
    own = upload_of(pool(200, seed=9).flatten(1))
    assert top1(matcher.fit(knowledge(count=200)).scores(own, candidates)) < 0.05


def test_a_row_that_is_not_finite_scores_nan_and_the_others_stand():
    rows = pool(3).flatten(1)
    rows[1, 0] = float("nan")
    scores = embedding_scores(rows, pool(4).flatten(1))
    assert scores[1].isnan().all()
    assert scores[[0, 2]].isfinite().all()


def test_correlation_ignores_mean_and_contrast_and_equals_numpy():
    a, b = pool(5), pool(8, seed=8)
    expected = torch.from_numpy(np.corrcoef(a.flatten(1).numpy(), b.flatten(1).numpy())[:5, 5:]).float()
    torch.testing.assert_close(correlation_scores(a, b), expected, atol=1e-5, rtol=0)
    torch.testing.assert_close(correlation_scores(0.2 * a + 0.3, b), expected, atol=1e-5, rtol=0)
    assert (correlation_scores(torch.full_like(a, 0.5), b) == 0).all()


def test_level_is_checked():
    full = knowledge()
    with pytest.raises(AuditError, match="matcher 'embedding' needs threat level Q2"):
        ByEmbedding().fit(Q0(full.images, full.labels, 4, 0))
