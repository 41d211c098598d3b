"""What an audit gave, as an object: numbers, verdict and page of a run folder. Needs no torch."""

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from reports.schema import load_scores
from reports.scores import Scores
from reports.words import (
    best_guess_words,
    ceiling_words,
    guess_words,
    in_words,
    interval_words,
    measured_words,
    numbers_row,
)


@dataclass(frozen=True)
class AuditResult:
    """One finished run. Shows itself as a card in a notebook.

    path: the run folder. scores: its scores.json, checked (SchemaError where it cannot be shown).
    """

    path: Path

    @cached_property
    def scores(self) -> Scores:
        """scores.json, read once."""
        return load_scores(self.path / "scores.json")

    @property
    def verdict(self) -> str:
        """NOT_ASSESSED, NO_IMAGE_LEAKAGE_FOUND, CLASS_LEVEL or SAMPLE_LEVEL."""
        return self.scores["verdict"]["level"]

    @property
    def report(self) -> Path:
        """The page."""
        return self.path / "report.html"

    def summary(self) -> dict[str, Any]:
        """Verdict, the three numbers that carry it, and where everything lies; JSON-able."""
        verdict = self.scores["verdict"]
        return {
            "verdict": verdict["level"],
            "sentence": verdict["sentence"],
            "numbers": verdict.get("numbers"),
            "form": self.scores["federation"]["form"],
            "run": str(self.path),
            "report": str(self.report),
            "scores": str(self.path / "scores.json"),
        }

    def lines(self) -> list[str]:
        """The last lines of a run: verdict, the three numbers that carry it, and where the report is."""
        scores, numbers = self.scores, self.scores["verdict"].get("numbers")
        found = []
        if dropped := scores["dataset"]["duplicates_dropped"]:
            found.append(f"exact duplicates dropped from auxiliary and evaluation images: {dropped}")
        found.append(f"verdict: {self.verdict}. {in_words(scores['verdict']['sentence'])}")
        ways = scores["grounds"]["missing"] if "grounds" in scores else []
        found += [f"to change: {change}" for change in dict.fromkeys(one["change"] for one in ways)]
        if numbers:
            values = (numbers["floor"], numbers["form"], numbers["ceiling"])
            floor, form, ceiling = ("n/a" if value is None else f"{value:.2f}" for value in values)
            why = f" ({words})" if (words := ceiling_words(scores)) else ""
            row = numbers_row(scores)
            interval = interval_words(row[1]["ci95"] if row else None)
            found.append(
                f"{numbers['metric']} {numbers['unit']}: floor {floor} ({guess_words(scores)}) "
                f"· {scores['federation']['form']} {form} [{interval}] · ceiling {ceiling}{why}"
                + (f"; {measured}" if (measured := measured_words(scores)) else "")
            )
            if row and (stands := best_guess_words(scores)):
                best = row[1]["floor"]["best"]
                found.append(f"the best guess without the representation reaches {best:.2f}; this is {stands} it")
        return [*found, f"report: {self.report}"]

    def _repr_html_(self) -> str:
        from reports.render import render_card

        return render_card(self.path)
