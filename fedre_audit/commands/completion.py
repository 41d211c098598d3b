"""`audit completion SHELL`: a static script; nothing of ours runs while completing."""

from collections.abc import Sequence
from dataclasses import fields
from typing import Literal, get_args, get_origin, get_type_hints

from fedre_audit.config import AuditConfig
from knowledge_forms.errors import AuditError

SHARED = ("config", "out", "quiet", "json", "dry_run", "fail_on", "help")
LISTS = ("forms", "mechanisms", "attacks", "systems", "families", "models", "datasets", "metrics")


def choices() -> dict[str, list[str]]:
    """Option -> the words it takes, where they are known; read from types and registries when the script is made."""
    from attacks.base import ATTACKS
    from fedre_audit.data.base import DATASETS
    from fedre_audit.federation.systems import SYSTEMS
    from fedre_audit.models.base import FAMILIES
    from knowledge_forms.base import FORMS

    hints = get_type_hints(AuditConfig)
    found = {name: list(get_args(hint)) for name, hint in hints.items() if get_origin(hint) is Literal}
    found |= {name: ["on", "off"] for name, hint in hints.items() if hint is bool}
    found |= {"form": list(FORMS), "system": list(SYSTEMS), "family": list(FAMILIES), "dataset": list(DATASETS)}
    found |= {"attacks": [name for name, attack in ATTACKS.items() if attack.uses_upload]}
    return found | {"fail_on": ["sample", "class", "not-assessed"]}


def bash(commands: Sequence[str], options: Sequence[str], values: dict[str, list[str]]) -> str:
    """Completion for bash."""
    cases = "\n".join(
        f'    --{name}) COMPREPLY=($(compgen -W "{" ".join(words)}" -- "$word")); return;;'
        for name, words in values.items()
    )
    return f"""_audit() {{
  local word="${{COMP_WORDS[COMP_CWORD]}}" before="${{COMP_WORDS[COMP_CWORD-1]}}"
  case "$before" in
{cases}
    list) COMPREPLY=($(compgen -W "{" ".join(LISTS)}" -- "$word")); return;;
    completion) COMPREPLY=($(compgen -W "bash zsh fish" -- "$word")); return;;
  esac
  if [[ "$word" == -* ]]; then
    COMPREPLY=($(compgen -W "{" ".join(f"--{name}" for name in options)}" -- "$word"))
  elif [[ $COMP_CWORD -eq 1 ]]; then
    COMPREPLY=($(compgen -W "{" ".join(commands)}" -- "$word"))
  else
    COMPREPLY=($(compgen -f -- "$word"))
  fi
}}
complete -o filenames -F _audit audit fedre-audit
"""


def fish(commands: Sequence[str], options: Sequence[str], values: dict[str, list[str]]) -> str:
    """Completion for fish."""
    lines = [f'complete -c audit -n __fish_use_subcommand -a "{" ".join(commands)}"']
    lines += [f'complete -c audit -n "__fish_seen_subcommand_from list" -a "{" ".join(LISTS)}"']
    lines += [
        f"complete -c audit -l {name}" + (f' -x -a "{" ".join(values[name])}"' if name in values else "")
        for name in options
    ]
    return "\n".join(lines) + "\n"


def script(shell: str) -> str:
    """The completion script of bash, zsh or fish."""
    from fedre_audit.cli import COMMANDS

    def spelt(name: str) -> str:
        return name.replace("_", "-")

    options = [spelt(name) for name in (*(field.name for field in fields(AuditConfig)), *SHARED)]
    values = {spelt(name): words for name, words in choices().items()}
    if shell == "fish":
        return fish(list(COMMANDS), options, values)
    head = "autoload -U +X bashcompinit && bashcompinit\n" if shell == "zsh" else ""
    return head + bash(list(COMMANDS), options, values)


def run(command: str, arguments: Sequence[str]) -> int:
    """Print the script for the one shell named."""
    if len(arguments) != 1 or arguments[0] not in ("bash", "zsh", "fish"):
        raise AuditError("usage: audit completion SHELL, where SHELL is bash, zsh or fish")
    print(script(arguments[0]), end="")
    return 0
