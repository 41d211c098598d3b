"""On what a verdict rests: the rows that decided it; or, where nothing was assessed, what was missing and the way out.

It explains a verdict and never changes one: a pure function of scores.json, written beside the verdict.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from fedre_audit.audit.intervals import MIN_CLIENTS
from fedre_audit.audit.silence import problems
from fedre_audit.audit.units import PRIMARY, RETRIEVAL, class_way, declared

MANY_ROUNDS = 100
"""The least number of rounds that is named where a stream could not be unmixed."""


def evidence(row: Mapping[str, Any], against: str) -> dict[str, Any]:
    """One row that met a rule, and the floor that it beat."""
    kept = ("attack", "level", "stream", "slice", "target", "metric", "unit", "value", "n", "more_leakage")
    gain = row["gain"][against]
    return {**{key: row[key] for key in kept}, "against": against, "floor": row["floor"][against],
            "gain": gain["value"], "ci95": gain["ci95"]}  # fmt: skip


def decided(scores: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The rows of the worst-off unit that carry the verdict, the plainest first; none where no level was met."""
    verdict = scores["verdict"]
    if verdict["worst"] is None:
        return []
    worst = verdict["worst"]
    rows = declared(scores)[worst["attack"], worst["stream"], worst["slice"]]
    if verdict["level"] == "SAMPLE_LEVEL":
        return [evidence(rows[RETRIEVAL], "best"), evidence(rows[PRIMARY], "best")]
    return [evidence(*class_way(rows))]


def _way_out(reason: str, scores: Mapping[str, Any], recorded: bool) -> tuple[str, str]:
    """Section of the page that shows it, and what to change. recorded: uploads of someone else's federation."""
    federation = scores["federation"]
    rounds, clients = federation["rounds"], federation["clients"]
    more = max(MANY_ROUNDS, 2 * rounds)
    longer = f"record more rounds than these {rounds}" if recorded else f"more rounds, for instance --rounds {more}"
    if "competence check" in reason:
        return "competence", "leave that attack out of --attacks; if it is the only one, report it as a bug"
    if "picks out" in reason:
        return "table", "take it for a leak of single images, or try to rebuild them by another attack, as decoder"
    if "permuted uploads" in reason:
        return (
            "table",
            "take it for a leak of what a client's images have in common, or see whether class means say more",
        )
    if "hardly moves" in reason:
        return "table", "give the attacker more public images (--auxiliary-images), or take another attack"
    if "rounds old" in reason:
        return "unmixing", "audit --form prototype (for RSR --form raw), which send all of a client afresh each round"
    if "unmixing" in reason or "nothing to unmix" in reason:
        return "unmixing", f"{longer}: each round adds an equation, and too few do not tell the prototypes apart"
    if "no check with a known answer" in reason:
        return "competence", "add an attack that has such a check to --attacks, for instance ridge"
    if "nothing was declared" in reason:
        return "table", "name an attack that runs on every client in --attacks, for instance ridge"
    if "even on raw representations" in reason:
        first = "check that --encoder and --weights made these uploads" if recorded else longer
        return "table", f"{first}; give the attacker more public images (--auxiliary-images)"
    if "has answers for" in reason:
        return "table", "take an attack that answers for every client (ridge does), or a larger --preset"
    if "too little data" in reason or "would miss a gain" in reason:
        fewest = max(MIN_CLIENTS, clients + 1) if "too little" in reason else 2 * clients
        wider = (
            f"record more clients than these {clients}"
            if recorded
            else f"more clients, for instance --clients {fewest}"
        )
        unmixed = f"; where too few clients were unmixed, {longer}" if "rounds" in reason else ""
        return "table", f"{wider}, with more images: the interval is too wide or cannot be made{unmixed}"
    if "not finite" in reason:
        return "table", "another attack, or a smaller learning rate: its images are not numbers"
    return "table", "see there"


def missing(scores: Mapping[str, Any], *, recorded: bool = False) -> Iterator[dict[str, str]]:
    """Each condition that kept the verdict at NOT_ASSESSED, where the page shows it and what to change."""
    if scores["verdict"]["level"] != "NOT_ASSESSED":
        return
    checks = scores["competence"]["checks"]
    failed = [f"{check['attack']} failed the competence check '{check['name']}'" for check in checks
              if not check["passed"]]  # fmt: skip
    if not failed and not scores["competence"]["passed"]:
        failed = ["no competence check was made"]
    for what in dict.fromkeys(failed or problems(scores)):
        section, change = _way_out(what, scores, recorded)
        yield {"what": what, "section": section, "change": change}


def grounds(scores: Mapping[str, Any], *, recorded: bool = False) -> dict[str, Any]:
    """The block `grounds` of scores.json. scores: with its verdict."""
    return {"decided": decided(scores), "missing": list(missing(scores, recorded=recorded))}
