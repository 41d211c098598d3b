"""Stage 3: truth meets reconstructions. Writes scores.json, scores.csv and the strips that the report shows."""

import csv
import io
import resource
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from fedre_audit.audit.competence import apply_competence, competence
from fedre_audit.audit.declare import FEWEST_ROWS, declared_attacks, is_declared
from fedre_audit.audit.disclosures import collapse_flags, disclosures, flags
from fedre_audit.audit.evaluator import train_evaluator
from fedre_audit.audit.exposure import SAMPLES, distribution, exposed_samples, exposure
from fedre_audit.audit.grounds import grounds
from fedre_audit.audit.intervals import MIN_CLIENTS
from fedre_audit.audit.metrics import within_bounds
from fedre_audit.audit.rows import FormAttack, fill_ceilings, make_row, top_row
from fedre_audit.audit.scoring import ATTACK, PERMUTED, SLICES, slices
from fedre_audit.audit.truth import read_truth
from fedre_audit.audit.verdict import verdict
from fedre_audit.config import form_name
from fedre_audit.data.base import to_float
from fedre_audit.federation.history import read_history
from fedre_audit.federation.view import read_view
from fedre_audit.models import load_clients
from fedre_audit.options import command_of
from fedre_audit.progress import progress
from fedre_audit.runs import Run
from fedre_audit.stages import lowering
from fedre_audit.stages.attack import STREAMED, audited_forms, auxiliary, budget_of, knowledge_of
from fedre_audit.stages.blocks import federation_block, unmixing_block
from fedre_audit.stages.curves import Part, follow, rows_of_parts
from fedre_audit.stages.noise_free import achievable, noise_free_bounds
from fedre_audit.stages.prepare import Prepared
from fedre_audit.stages.strips import write_strips
from fedre_audit.stages.tables import Collected, Tables, cases, fit_membership
from fedre_audit.stages.train import CEILING
from fedre_audit.workers import Workers, forkable
from knowledge_forms.store import write_bytes
from reports.schema import dump_scores

DONE = "scores.json"
SLICED = ("psnr", "retrieval_top1")
RECORDED = "foreign"
"""The family of clients whose uploads someone else recorded."""
Parts = list[tuple[Run, Prepared]]
Kept = dict[Any, Any]
"""What the arms of a comparison have in common, by name: made by the first that is scored, taken by the others."""


def once(kept: Kept, name: Any, make: Callable[[], Any]) -> Any:
    """The value kept under a name, made where there is none yet.

    >>> kept = {}
    >>> once(kept, "a", lambda: 1), once(kept, "a", lambda: 2)
    (1, 1)
    """
    if name not in kept:
        kept[name] = make()
    return kept[name]


def declare(run: Run, clients: list[int], stream: int) -> dict[str, Any]:
    """The declaration: made before any answer is opened. stream: rounds of the longest stream that was unmixed."""
    names = list(run.config.attacks or ())
    everywhere = [n for n in names if (b := budget_of(run.config, n)).clients is None and b.rows is None]
    return {
        "form": run.config.form,
        "attacks": declared_attacks(everywhere or names),
        "stream": stream,
        "slices": ["all", *SLICES, *(f"client {client}" for client in clients)],
    }


def score_forms(
    parts: Parts, forms: list[str], evaluator: Any, kept: Kept, quiet: bool
) -> tuple[list[FormAttack], list[Part]]:
    """Tables of every attack and target of the forms, over all seeds, and parts of curves; cluster: client of a seed.

    Clients are shared out to worker processes; tables are joined in client order, whoever made them.
    """
    ceilings: dict[int, tuple[Collected, list[Part]]] = once(kept, CEILING, dict)
    run = parts[0][0]
    config, names = run.config, list(run.config.attacks or ())
    views = [{form: read_view(one.path, form) for form in forms} for one, _ in parts]
    truths = [{form: read_truth(one.path, form) for form in forms} for one, _ in parts]
    models = [load_clients(one.path) for one, _ in parts]
    public = [auxiliary(prepared) for _, prepared in parts]
    items = [
        (seed, client)
        for seed, own in enumerate(views)
        for client in sorted({client for view in own.values() for client in view.clients})
    ]

    def work(item: int, _: None) -> dict[str, tuple[Collected, list[Part]]]:
        seed, client = items[item]
        one, prepared = parts[seed]
        knowledge = knowledge_of(one, client, models[seed][client], *public[seed])
        attackers = fit_membership(knowledge)
        found = {}
        for form, view in views[seed].items():
            if form == CEILING and item in ceilings:
                continue
            curves: list[Part] = []
            tables, own = Tables(names, evaluator), view.client(client)
            for case in cases(one, prepared, own, truths[seed][form], seed * (config.clients or 0)):
                tables.add(case)
                tables.add_membership(case, knowledge, attackers)
                curves += follow(case, own)
            found[form] = tables.collected, curves
        return found

    with (
        Workers(work, [1.0] * len(items), forkable(config.workers, config.threads)) as pool,
        progress(f"score {form_name(config)} of clients", len(items), quiet=quiet) as tick,
    ):
        done = {}
        for item, found in pool.map(None):
            done[item] = found
            tick()
    whole = {form: Tables(names, evaluator) for form in forms}
    points: list[Part] = []
    for item in sorted(done):
        if CEILING in forms:
            done[item][CEILING] = ceilings.setdefault(item, done[item].get(CEILING))
        for form, (collected, curves) in done[item].items():
            whole[form].merge(collected)
            points += curves
    return [table for form in forms for table in whole[form].joined(form)], points


def rows_of(scored: FormAttack, declaration: dict[str, Any], auxiliary_images: int) -> list[dict[str, Any]]:
    """Rows of one table: every metric whole; the main ones also by class count, by client and for the leakiest 1 %.

    By client: what declared attacks do to the audited form, and to the ceiling's, of which no row is declared.
    """
    rows = []
    by_slice = slices(scored.table)
    for metric in scored.table.values[ATTACK]:
        sliced = metric in SLICED and scored.target in ("members", "class_mean")
        parts = dict(by_slice) if sliced else {"all": by_slice["all"]}
        if sliced and scored.form in (declaration["form"], CEILING) and scored.attack in declaration["attacks"]:
            for client in sorted(set(scored.table.client.tolist())):
                own = scored.table.subset(scored.table.client == client)
                if len(set(own.row.tolist())) >= FEWEST_ROWS:
                    parts[f"client {client}"] = own
        rows += [make_row(scored, part, table, metric, auxiliary_images) for part, table in parts.items()]
        if metric == "psnr" and scored.target == "members":
            rows.append(top_row(scored, metric, auxiliary_images))
    if not scored.trusted:
        for row in rows:
            if row["status"] == "ok":
                row |= {"status": "not_validated", "reason": "unmixing validated for no client; see there"}
    for row in rows:
        row["headline"] = is_declared(row, declaration)
    return rows


def reach(scored: FormAttack) -> tuple[bool, int]:
    """Which table says most about who is exposed: of enough clients, then of the longest stream."""
    return len(np.unique(scored.table.client)) >= MIN_CLIENTS, scored.stream


def validated(tables: list[FormAttack], rows: Any) -> list[FormAttack]:
    """Of tables of images those whose row over all images is 'ok': who is not proven able ranks and shows nobody."""
    valid = {
        (row["form"], row["attack"], row["stream"]) for row in rows
        if (row["target"], row["slice"], row["metric"], row["status"]) == ("members", "all", "psnr", "ok")
        and "curve" not in row
    }  # fmt: skip
    return [scored for scored in tables if (scored.form, scored.attack, scored.stream) in valid]


def most_exposed(declared: list[FormAttack], rows: Any) -> list[dict[str, Any]]:
    """Clients and classes by the validated table that says most of them; none where none is validated."""
    return exposure(max(shown, key=reach)) if (shown := validated(declared, rows)) else []


def most_exposed_samples(tables: list[FormAttack], declared: list[FormAttack], rows: Any) -> list[dict[str, Any]]:
    """Single images by gain over declared attackers and streams whose row is validated; none where none is.

    Each image once, by whoever gains most on it: a stream may be validated for few clients, and show less than a round.
    """

    def key(scored: FormAttack) -> tuple[Any, ...]:
        return scored.form, scored.attack, scored.stream, scored.trusted

    found: dict[tuple[int, int], dict[str, Any]] = {}
    picks = {key(t): t.table for t in tables if "retrieval_top1" in t.table.values[ATTACK]}
    shown = validated(declared, rows)
    images = [image for scored in shown for image in exposed_samples(scored, picks.get(key(scored)))]
    for image in sorted(images, key=lambda image: -image["gain"]):
        found.setdefault((image["client"], image["sample"]), image)
    return list(found.values())[:SAMPLES]


def write_csv(path: Path, tables: list[FormAttack]) -> None:
    """A row per image and metric: what the means are made of."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    predictors = sorted({who for scored in tables for who in scored.table.values} - {ATTACK, PERMUTED})
    head = ["form", "attack", "stream", "target", "client", "row", "sample", "class", "members", "metric"]
    writer.writerow([*head, "value", PERMUTED, *predictors])
    for scored in tables:
        table = scored.table
        for metric in table.values[ATTACK]:
            columns = [table.values.get(who, {}).get(metric) for who in (ATTACK, PERMUTED, *predictors)]
            for i in range(len(table)):
                writer.writerow(
                    [scored.form, scored.attack, scored.stream, scored.target, table.client[i], table.row[i],
                     table.sample[i], table.label[i], table.members[i], metric,
                     *("" if column is None else f"{column[i]:.6g}" for column in columns)]
                )  # fmt: skip
    write_bytes(path, text.getvalue().encode())


def named(classes: Sequence[str]) -> dict[str, list[str]]:
    """`class_names` of scores.json, where names say more than numbers.

    >>> named(("cat", "dog")), named(("0", "1"))
    ({'class_names': ['cat', 'dog']}, {})
    """
    return {} if list(classes) == [str(label) for label in range(len(classes))] else {"class_names": list(classes)}


def peak_memory_mb() -> int:
    """The most memory that this process or one of its workers has held."""
    return max(resource.getrusage(who).ru_maxrss for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)) // 1024


def score(
    run: Run,
    prepared: Prepared,
    *,
    seconds: dict[str, float],
    quiet: bool = False,
    parts: Parts | None = None,
    kept: Kept | None = None,
) -> None:
    """Score every form and write the results; scores.json, written last, marks the stage complete.

    parts: a run and its data per seed (default: `run` alone); all of them enter the same rows.
    kept: what runs of the same training and attackers, scored one after the other, share.
    """
    kept = {} if kept is None else kept
    started = time.perf_counter()
    config = run.config
    parts = parts or [(run, prepared)]
    manifest = parts[0][0].read_json("manifest.json", "versions", "device")
    views = [read_view(one.path, config.form) for one, _ in parts]
    offsets = [seed * (config.clients or 0) for seed in range(len(parts))]
    clients = [offset + client for offset, view in zip(offsets, views, strict=True) for client in view.clients]
    unmixed = [
        u for (one, _), view, at in zip(parts, views, offsets, strict=True) for u in unmixing_block(one, view, at)
    ]
    stream = max((u["rounds"] for u in unmixed if u["recovered"]), default=1)
    declaration = declare(run, clients, stream)
    images, _ = auxiliary(prepared)
    known = prepared.labelled
    classes = len(prepared.data.classes)
    evaluator = once(
        kept, "evaluator", lambda: train_evaluator(to_float(known.images), known.labels, classes, config.seed)
    )
    tables, points = score_forms(parts, audited_forms(parts[0][0]), evaluator, kept, quiet)
    rows = [row for scored in tables for row in rows_of(scored, declaration, len(images))]
    fill_ceilings(rows, CEILING)
    rows += rows_of_parts(points, rows, len(images))
    for row in rows:
        row["ci95"] = within_bounds(row["metric"], row["ci95"])
    used, unmixing = sorted({scored.attack for scored in tables}), config.form == STREAMED
    checks = once(kept, (*used, unmixing), lambda: competence(used, unmixing=unmixing))
    apply_competence(rows, checks)
    pictured = [t for t in tables if "psnr" in t.table.values[ATTACK]]
    declared_tables = [
        t for t in pictured if t.form == config.form and t.attack in declaration["attacks"] and t.target == "members"
    ]
    spreads = [distribution(t) for t in validated([t for t in pictured if t.target == "members"], rows)]
    scores: dict[str, Any] = {
        "schema_version": 1,
        "run": {
            "seed": config.seed,
            "seeds": [one.config.seed for one, _ in parts],
            "versions": manifest["versions"],
            "config_sha256": run.sha256,
            "device": manifest["device"],
            "precision": config.precision,
            "threads": config.threads,
            "command": command_of(run.path, config),
        },
        "volatile": {},
        "dataset": {
            "name": prepared.data.name,
            "shape": list(prepared.data.images.shape[1:]),
            "classes": classes,
            "private": len(prepared.split.private),
            "auxiliary": len(images),
            "disjoint": True,
            "duplicates_dropped": prepared.split.duplicates_dropped,
            **named(prepared.data.classes),
            # What a recorded federation's public images come from is not in the run's own configuration.
            **({} if config.family == RECORDED else {"auxiliary_from": config.auxiliary}),
        },
        "federation": federation_block(parts[0][0], views[0], [one for one, _ in parts[1:]]),
        "rows": rows,
        "unmixing": unmixed,
        "disclosures": [d | {"client": at + d["client"]} for view, at in zip(views, offsets, strict=True)
                        for d in disclosures(view)],
        "bounds": noise_free_bounds(config.form, rows, once(kept, "linear", lambda: achievable(parts[0][0], images))),
        "flags": [f | {"client": at + f["client"]} for (one, _), at in zip(parts, offsets, strict=True)
                  for f in [*flags(read_truth(one.path, config.form)), *collapse_flags(read_history(one.path))]],
        "exposure": most_exposed(declared_tables, rows),
        "exposed_samples": most_exposed_samples(tables, declared_tables, rows),
        "distributions": [spread for spread in spreads if spread is not None],
        "lowering": lowering.of_run(rows, config.form, lowering.gains_of(tables, points)),
        "competence": checks,
    }  # fmt: skip
    scores["verdict"] = verdict(scores)
    scores["grounds"] = grounds(scores, recorded=config.family == RECORDED)
    run.clear("score")  # earlier scores go only now that all they are made from was read
    write_csv(run.path / "scores.csv", tables)
    write_strips(run, parts, tables)
    scores["volatile"] = {
        "created": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "seconds": {
            **{key: round(value, 2) for key, value in seconds.items()},
            "score": round(time.perf_counter() - started, 2),
        },
        "peak_memory_mb": peak_memory_mb(),
    }
    write_bytes(run.path / DONE, dump_scores(scores).encode())
