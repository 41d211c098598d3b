"""Corrector: never worse than its decoder by what it was shown, exact where the encoder keeps everything."""

import pytest
import torch
from torch import nn

from attacks.corrector import Corrector
from attacks.knowledge import Q2
from attacks.ridge import Ridge
from knowledge_forms.errors import AuditError
from tests.attacks.tiny import knowledge, upload_of


class Squares(nn.Module):
    """Smooth and one to one on [0,1], so a linear decoder errs and gradient steps can mend it."""

    def forward(self, images):
        return images.flatten(1).square()


class Collapsed(nn.Module):
    """Says nothing."""

    def forward(self, images):
        return images.flatten(1) * 0.0


def truth(count=6):
    return torch.rand(count, 1, 6, 6, generator=torch.Generator().manual_seed(1))


def error(attack, module, known):
    return float((attack.fit(known).reconstruct(upload_of(module(truth()))).images - truth()).square().mean())


def test_identity_encoder_is_inverted():
    assert error(Corrector(), nn.Flatten(), knowledge(count=200)) < 1e-5


def test_gradient_steps_mend_what_a_linear_decoder_cannot():
    known = knowledge(count=200, module=Squares())
    assert error(Corrector(tv=0.0, weights=(0.1,)), Squares(), known) < 0.2 * error(Ridge(), Squares(), known)


def test_learning_rate_zero_is_the_decoder():
    known = knowledge(count=200, module=Squares())
    inert = Corrector(lr=0.0).fit(known)
    view = upload_of(Squares()(truth()))
    assert torch.equal(inert.reconstruct(view).images, inert.decoder_.reconstruct(view).images)


def test_where_no_weight_helps_the_decoder_is_left_alone():
    inert = Corrector(lr=0.5, steps=3, weights=(0.0,)).fit(knowledge(count=200))
    assert inert.weight_ is None


def test_collapsed_encoder_lands_on_the_mean_image():
    known = knowledge(count=200, module=Collapsed())
    attack = Corrector(tv=0.0).fit(known)
    found = attack.reconstruct(upload_of(Collapsed()(truth()))).images
    torch.testing.assert_close(found, attack.decoder_.decoder_.target_mean.reshape(1, 1, 6, 6).expand_as(found))


def test_needs_weights():
    full = knowledge()
    with pytest.raises(AuditError, match="needs threat level Q3"):
        Corrector().fit(Q2(full.images, full.labels, 4, 0, full.architecture, full.encoder))
