"""The registry refuses duplicates and lists choices."""

import pytest

from knowledge_forms.errors import AuditError
from knowledge_forms.registry import Registry


def test_duplicate_raises_and_unknown_lists_the_choices():
    table: Registry[int] = Registry("thing")
    table.register("b")(1)
    table.register("a")(2)
    with pytest.raises(ValueError, match="registered twice"):
        table.register("a")(3)
    with pytest.raises(AuditError, match="unknown thing 'c'; choose one of: a, b"):
        table["c"]
    assert list(table) == ["a", "b"]
    assert "a" in table
    assert len(table) == 2
