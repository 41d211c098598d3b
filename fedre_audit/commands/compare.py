"""`audit compare [options]`: all forms and mechanisms on the same clients, images, seeds and attacker budget."""

import json
import sys
from collections.abc import Sequence
from typing import Any

from fedre_audit.options import parse

OWN = [("--forms", {"type": str, "default": "", "help": "comma list of forms: raw, prototype, entangled:RAP, ..."})]


def table(arms: Sequence[Any]) -> list[str]:
    """The numbers of the page: per form the verdict, and PSNR over all classes by the strongest attacker.

    A verdict may rest on a smaller group of images: where it does, the group is named.
    """
    from reports.comparisons import doubts, headline
    from reports.words import interval_words, slice_words, stream_words

    width = max(len(arm["name"]) for arm in arms)
    lines = [f"{'form':<{width}}  {'verdict':<24}PSNR over all classes, dB, by the strongest attacker"]
    for arm in arms:
        drawn = headline(arm)
        said = "no attack was scored"
        if drawn is not None:
            row = drawn[1]
            within = f" [{interval_words(row['ci95'])}]"
            numbers = (
                ("floor", row["floor"]["best"], ""),
                ("value", row["value"], within),
                ("ceiling", row["ceiling"], ""),
            )
            shown = " · ".join(f"{name} {value:.2f}{more}" for name, value, more in numbers if value is not None)
            about = filter(None, (row["attack"], stream_words(row["stream"]), doubts(row)))
            said = f"{shown} ({', '.join(about)})"
        worst = arm["verdict"]["worst"]
        if worst is not None and worst["slice"] != "all":
            said += f"; decided by {slice_words(worst['slice'])}"
        lines.append(f"{arm['name']:<{width}}  {arm['verdict']['level']:<24}{said}")
    return lines


def run(command: str, arguments: Sequence[str]) -> int:
    """Parse, plan, compare, print a table and where the page is."""
    options = parse("compare", arguments, own=OWN)

    from fedre_audit.commands.audit import exit_code
    from fedre_audit.comparison import DEFAULT_FORMS, arms_of, compare, trainer
    from fedre_audit.plan import make_plan

    forms = [word for word in options.forms.replace(" ", "").split(",") if word] or list(DEFAULT_FORMS)
    arms = arms_of(options.config, forms, options.config.own_system)
    quiet = options.quiet or options.json
    plan = (
        None if quiet and not options.dry_run else make_plan(arms[trainer(forms)], arms=len(arms), dry=options.dry_run)
    )
    if options.dry_run and plan:
        print(json.dumps(plan.as_dict()) if options.json else f"{plan.text()}\nforms           {', '.join(arms)}")
        return 0
    if plan:
        print(f"{plan.line()}; forms {', '.join(arms)}", file=sys.stderr, flush=True)
    result = compare(options.config, out=options.out, forms=forms, own_system=options.config.own_system, quiet=quiet)
    made = result.comparison
    codes = [exit_code(arm["verdict"]["level"], options.fail_on, arm["name"]) for arm in made["arms"]]
    code = max(codes)
    if options.json:
        verdicts = {arm["name"]: arm["verdict"]["level"] for arm in made["arms"]}
        print(json.dumps({"verdicts": verdicts, "report": str(result.report), "run": str(result.path),
                          "exit_code": code}))  # fmt: skip
        return code
    print("\n".join(table(made["arms"])))
    print(f"report: {result.report}")
    return code
