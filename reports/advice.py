"""What may lower the leak of a form, and why: only advice that fits the form and the mechanism."""

import shlex

from reports.scores import Scores

ALWAYS = (
    (
        "Noise on what is sent",
        "the only change here that can carry a proof; without it no bound holds against every attacker.",
    ),
    ("Keep encoders private", "attackers of level Q2 and Q3 need answers or weights of the client's encoder."),
)
REDRAWN = ("RAP", "RAR")
"""Mechanisms whose mixing weights are drawn anew each round, unless they are fixed."""
TINY = "Leave classes of fewer than about 20 images out"
MINIMUM = {
    "prototype": f"{TINY}: send no prototype of them. It is close to a single image.",
    "RAP": f"{TINY} of the mixture: their prototypes are close to single images.",
    "VAP": f"{TINY} of the mixture: their prototypes are close to single images.",
    "RAR": f"{TINY} of the mixture: what is unmixed of them is close to single images.",
    "RSP": f"{TINY} of the selection: their prototypes are close to single images.",
}
"""By form or mechanism; one that is not listed sends single images, or hides a tiny class among all images."""


def option(scores: Scores, name: str) -> str | None:
    """Value of `--name` in the command of the run; None where the command is not known or leaves it out."""
    try:
        words = shlex.split(scores["run"].get("command", ""))
    except ValueError:
        return None
    for word, after in zip(words, [*words[1:], ""], strict=False):
        if word == f"--{name}" or word.startswith(f"--{name}="):
            return (word.partition("=")[2] or after) or None
    return None


def weights_kept(scores: Scores) -> bool:
    """Whether the mixing weights of the clients never change: by the command, or by what unmixing met."""
    streams = [u for u in scores["unmixing"] if u["rounds"] > 1 and u["classes"] > 1]
    return option(scores, "weights") == "fixed" or (bool(streams) and all(u["rank"] == 1 for u in streams))


def advice(scores: Scores) -> list[tuple[str, str]]:
    """(change, why) that fit what was uploaded."""
    form, mechanism = scores["federation"]["form"], scores["federation"]["mechanism"].split(" ")[0]
    found = []
    redrawn = form == "entangled" and mechanism in REDRAWN and not weights_kept(scores)
    if redrawn:
        found.append((
            "Fixed mixing weights",
            "one set of weights per client, drawn once: a stream of uploads then holds one equation instead of one "
            f"per round, and cannot be unmixed. Measured by audit compare --forms entangled:{mechanism},"
            f"entangled:{mechanism}:fixed, beside the other mechanisms, on the same clients.",
        ))  # fmt: skip
    minimum = MINIMUM.get(mechanism if form == "entangled" else form)
    if minimum is not None:
        found.append(("A minimum class count", minimum))
    if redrawn:
        found.append(("Withhold the label encoding, or send class ids alone", "the mixing weights are what unmixing "
                      "needs."))  # fmt: skip
    return [*found, *ALWAYS]
