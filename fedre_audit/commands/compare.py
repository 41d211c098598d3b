"""`audit compare [options]`: all forms and mechanisms on the same clients, images, seeds and attacker budget."""

import json
import sys
from collections.abc import Sequence

from fedre_audit.options import parse

OWN = [("--forms", {"type": str, "default": "", "help": "comma list of forms: raw, prototype, entangled:RAP, ..."})]


def run(command: str, arguments: Sequence[str]) -> int:
    """Parse, plan, compare, print a table and where the page is."""
    options = parse("compare", arguments, own=OWN)

    from fedre_audit.commands.audit import exit_code
    from fedre_audit.comparison import DEFAULT_FORMS, arms_of, compare, trainer
    from fedre_audit.plan import make_plan

    forms = [word for word in options.forms.replace(" ", "").split(",") if word] or list(DEFAULT_FORMS)
    arms = arms_of(options.config, forms, options.config.own_system)
    quiet = options.quiet or options.json
    plan = None if quiet and not options.dry_run else make_plan(arms[trainer(forms)], arms=len(arms))
    if options.dry_run and plan:
        print(json.dumps(plan.as_dict()) if options.json else f"{plan.text()}\nforms           {', '.join(arms)}")
        return 0
    if plan:
        print(f"{plan.line()}; forms {', '.join(arms)}", file=sys.stderr, flush=True)
    result = compare(options.config, out=options.out, forms=forms, own_system=options.config.own_system, quiet=quiet)
    made = result.comparison
    codes = [exit_code(arm["verdict"]["level"], options.fail_on) for arm in made["arms"]]
    code = max(codes)
    if options.json:
        verdicts = {arm["name"]: arm["verdict"]["level"] for arm in made["arms"]}
        print(json.dumps({"verdicts": verdicts, "report": str(result.report), "run": str(result.path),
                          "exit_code": code}))  # fmt: skip
        return code
    width = max(len(arm["name"]) for arm in made["arms"])
    for arm in made["arms"]:
        numbers = arm["verdict"].get("numbers") or {"floor": None, "form": None, "ceiling": None}
        shown = [f"{name} {value:.2f}" for name, value in zip(
            ("floor", "value", "ceiling"), (numbers["floor"], numbers["form"], numbers["ceiling"]), strict=True
        ) if value is not None]  # fmt: skip
        print(f"{arm['name']:<{width}}  {arm['verdict']['level']:<24}{' · '.join(shown)}")
    print(f"report: {result.report}")
    return code
