"""The columns of the top-level help."""

import re
from dataclasses import fields

import pytest

from fedre_audit.cli import COMMANDS, OPTIONS, help_text, main
from fedre_audit.config import AuditConfig
from fedre_audit.manual import field_texts


@pytest.mark.parametrize("word", COMMANDS)
def test_usage_and_description_do_not_touch(word):
    assert f"  {word} {COMMANDS[word].usage} " in help_text()


def test_every_key_stands_in_the_long_help_with_its_text_in_the_spelling_of_the_readme(capsys):
    assert main(["--form", "entangled", "--help"]) == 0
    words = " ".join(capsys.readouterr().out.split())
    texts = field_texts(AuditConfig)
    assert set(texts) == {field.name for field in fields(AuditConfig)}
    for name, text in texts.items():
        assert f"--{name.replace('_', '-')} " in words
        assert " ".join(text.split()) in words
    assert not re.search(r"--\w+_\w|true,false|<class", words)
    assert "--clients N number of clients (preset quick 10; small 6; full 10)" in words
    assert main(["--uploads", "x", "--help"]) == 0
    assert "--encoder TEXT package.module:factory" in " ".join(capsys.readouterr().out.split())


@pytest.mark.parametrize(("word", "option"), [("compare", "--forms"), ("reproduce", "--sweep")])
def test_commands_list_their_own_options(word, option, capsys):
    assert main([word, "--help"]) == 0
    text = capsys.readouterr().out
    assert f"\n  {option} " in text
    assert ("all options of the audit" in text) == (word == "compare")


def test_the_short_help_names_every_data_set():
    from fedre_audit.data.base import DATASETS

    assert all(name in OPTIONS for name in DATASETS)
