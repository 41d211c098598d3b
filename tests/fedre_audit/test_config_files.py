"""`--config FILE`: an empty file says nothing, a damaged one is named."""

import pytest

from fedre_audit.cli import main
from fedre_audit.options import normalise, parse
from knowledge_forms.errors import AuditError


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"\xff\xfe\x00bad", "is no readable YAML"),
        (b"a: [\n", "is no readable YAML"),
        (b"- a\n", "is not a mapping"),
        (b"null\n", "is not a mapping"),
        (b"text", "is not a mapping"),
    ],
)
def test_a_damaged_file_is_named_in_one_line(tmp_path, capsys, content, said):
    file = tmp_path / "c.yaml"
    file.write_bytes(content)
    for words in (["--config", str(file)], [f"--config={file}", "--uploads", str(tmp_path)]):
        assert main([*words, "--dry-run"]) == 2
        error = capsys.readouterr().err
        assert error.startswith(f"audit: --config {file} {said}")
        assert error.count("\n") == 1


@pytest.mark.parametrize("content", ["", "\n", "# nothing yet\n", "---\n", "{}\n", "fail_on: null\n"])
def test_a_file_that_says_nothing_changes_nothing(tmp_path, content):
    file = tmp_path / "c.yaml"
    file.write_text(content)
    for words in (["--config", str(file)], [f"--config={file}"]):
        options = parse("", ["--rounds", "3", *words, "--clients", "2"])
        assert (options.config.rounds, options.config.clients, options.fail_on) == (3, 2, [])


def test_a_file_that_says_something_and_options_in_place_are_left_to_the_parser(tmp_path):
    file = tmp_path / "c.yaml"
    file.write_text("rounds: 4\nout: 2021-99-99\n")
    for words in (["--config", str(file)], ["--config={rounds: 4}"]):
        assert normalise(words) == words
        assert parse("", words).config.rounds == 4
    with pytest.raises(AuditError, match="does not exist"):
        parse("", ["--config", str(tmp_path / "none.yaml")])


def test_a_file_nobody_may_read_is_named(tmp_path, monkeypatch):
    def refuse(_path):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("pathlib.Path.is_file", refuse)
    with pytest.raises(AuditError, match=r"--config .*c\.yaml is no readable YAML \(.*Permission denied"):
        normalise(["--config", str(tmp_path / "c.yaml")])
