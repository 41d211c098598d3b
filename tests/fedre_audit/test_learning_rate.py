"""The learning rate follows the family unless it is given."""

import pytest

from fedre_audit.config import AuditConfig, resolve
from fedre_audit.options import command_line


@pytest.mark.parametrize(
    ("options", "lr"),
    [
        ({}, 0.06),
        ({"family": "HtFE-img-4"}, 0.01),
        ({"preset": "full"}, 0.03),
        ({"preset": "full", "family": "small"}, 0.06),
        ({"family": "HtM-img-10", "lr": 0.06}, 0.06),
    ],
)
def test_rate_follows_family(options: dict[str, object], lr: float) -> None:
    assert resolve(AuditConfig(**options)).lr == lr  # type: ignore[arg-type]


def test_the_command_names_the_rate_only_where_the_family_would_not_give_it() -> None:
    assert "--lr" not in command_line(resolve(AuditConfig(family="HtFE-img-4")))
    assert "--lr 0.06" in command_line(resolve(AuditConfig(family="HtFE-img-4", lr=0.06)))
    assert "--lr" not in command_line(resolve(AuditConfig(preset="full")))
    assert "--lr 0.01" in command_line(resolve(AuditConfig(preset="full", lr=0.01)))
