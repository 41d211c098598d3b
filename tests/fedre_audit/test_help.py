"""The columns of the top-level help."""

import pytest

from fedre_audit.cli import COMMANDS, help_text


@pytest.mark.parametrize("word", COMMANDS)
def test_usage_and_description_do_not_touch(word):
    assert f"  {word} {COMMANDS[word].usage} " in help_text()
