"""What a plan says before long work: notes a reader can act on, and impossible numbers refused with possible ones."""

import pytest

from fedre_audit.cli import main
from fedre_audit.config import AuditConfig
from fedre_audit.plan import make_plan

SMALL = {"rounds": 2, "auxiliary_images": 120, "attacks": ["ridge"]}


def test_a_single_client_is_not_told_to_be_fewer():
    (alone,) = make_plan(AuditConfig(clients=1, private_images=5, **SMALL)).notes
    (two,) = make_plan(AuditConfig(clients=2, private_images=5, **SMALL)).notes
    assert alone.endswith("); raise --private-images")
    assert two.endswith("); lower --clients, or raise --private-images")


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"form": "raw", "mechanism": "VAP"}, "mechanism VAP is not used by raw, only by the server of system fedre"),
        ({"form": "raw", "mechanism": "VAP", "own_system": True}, "mechanism VAP is not used by raw"),
        ({"form": "entangled", "mechanism": "VAP"}, None),
        ({"form": "raw"}, None),
    ],
)
def test_a_mechanism_that_mixes_nothing_audited_is_said(options, said):
    plan = make_plan(AuditConfig(clients=3, private_images=300, **SMALL, **options))
    assert [note for note in plan.notes if "mechanism" in note] == ([said] if said else [])
    assert said is None or plan.line().endswith(f"; {said}")


@pytest.mark.parametrize("more", [[], ["--dry-run"]])
def test_too_few_images_are_told_a_number_that_works(more, tmp_path, capsys):
    words = ["--clients", "10", "--private-images", "2", "--out", str(tmp_path / "run"), *more]
    assert main(words) == 2
    assert capsys.readouterr().err == (
        "audit: 2 private images cannot be shared by 10 clients; "
        "lower --clients to at most 2, or raise --private-images to at least 10\n"
    )
    assert list(tmp_path.iterdir()) == []
