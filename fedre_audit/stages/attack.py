"""Stage 2: attackers reconstruct images from the server's view. Truth is not read: moving it away changes nothing.

    attacks/<form>/<attack>/client-000.safetensors          from the newest upload; see answers.py
    attacks/<form>/<attack>/stream/client-000.safetensors   the same from the prototypes unmixed from all rounds
    attacks/<form>/unmixing/client-000.safetensors          prototypes f32 [h,d], classes int64 [h]
    .../rounds-0.25/, .../auxiliary-0.5/                     the same from a share of the rounds or public images

A file appears whole or not at all, and a run that was interrupted goes on at the first one missing.
"""

import math
import shutil
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

from attacks.base import ATTACKS
from attacks.budget import newest_rounds
from attacks.knowledge import Q3
from attacks.unmixing.base import Unmixed, recovered_view, unmix
from fedre_audit.config import AuditConfig
from fedre_audit.data.base import to_float
from fedre_audit.federation.view import read_view
from fedre_audit.hardware import cpu_has_bf16
from fedre_audit.models import ClientModel, as_encoder, load_clients
from fedre_audit.progress import progress
from fedre_audit.runs import Run
from fedre_audit.seeding import derive_seed
from fedre_audit.stages.answers import copy_answers, write_answers
from fedre_audit.stages.points import FOLLOWED, points
from fedre_audit.stages.prepare import Prepared
from fedre_audit.stages.train import CEILING
from fedre_audit.workers import Workers, forkable
from knowledge_forms.base import Classifier, ServerView, Upload
from knowledge_forms.store import read_tensors, write_tensors

DONE = "attacks/complete.json"
STREAMED = "entangled"
UNMIXING = "unmixing"
COSTS = {"cheap": 1.0, "medium": 3.0, "heavy": 30.0}
OPTIMISERS = ("optimisation", "corrector")
Views = Mapping[str, ServerView]


@dataclass(frozen=True)
class Budget:
    """What one attack may spend: clients and upload rows per client (None: all of them), and its own options."""

    clients: int | None
    rows: int | None
    options: dict[str, Any]


def budget_of(config: AuditConfig, name: str) -> Budget:
    """The budget that the configuration gives an attack."""
    if name == "decoder":
        few = (config.decoder_clients or 0) < (config.clients or 1)
        options = {"steps": config.decoder_steps, "bf16": config.precision == "bf16" and cpu_has_bf16()}
        return Budget(config.decoder_clients if few else None, None, options)
    if name in OPTIMISERS and config.optimised_images is not None:
        return Budget(None, math.ceil(config.optimised_images / (config.clients or 1)), {})
    return Budget(None, None, {})


def cost_of(config: AuditConfig, position: int) -> float:
    """What attacking the client at this position costs, relative to the others."""
    budgets = {name: budget_of(config, name) for name in config.attacks or ()}
    own = [name for name, budget in budgets.items() if budget.clients is None or position < budget.clients]
    return 1.0 + sum(COSTS[ATTACKS[name].cost] for name in own)


def audited_forms(run: Run) -> list[str]:
    """The audited form, and, where it was recorded, the raw form that gives its ceiling."""
    forms = dict.fromkeys([run.config.form, CEILING])
    return [form for form in forms if form == run.config.form or (run.path / "uploads" / form).is_dir()]


def auxiliary(prepared: Prepared) -> tuple[Tensor, Tensor]:
    """The attacker's public images [N,c,h,w] in [0,1] and their labels [N]."""
    return to_float(prepared.auxiliary.images), prepared.auxiliary.labels


def knowledge_of(
    run: Run,
    client: int,
    model: ClientModel,
    images: Tensor,
    labels: Tensor,
    classifiers: Mapping[int, Classifier] | None = None,
) -> Q3:
    """What the auditor's worst-case attacker of one client is given; classifiers: the server's, by round."""
    encoder = as_encoder(model)
    return Q3(
        images=images,
        labels=labels,
        num_classes=model.classifier.out_features,
        seed=derive_seed(run.config.seed, "attack", client=client),
        architecture=model.rebuild,
        encoder=encoder,
        module=encoder,
        classifiers=classifiers or {},
    )


def client_file(run: Run, form: str, attack: str, client: int, *, stream: bool = False, point: str = "") -> Path:
    """Where the answers of one attack to one client lie. point: folder of a point of a curve, '' the audit itself."""
    folder = run.path / "attacks" / form / attack / (point or ("stream" if stream else ""))
    return folder / f"client-{client:03d}.safetensors"


def choices(run: Run, forms: Iterable[str], clients: Iterable[int]) -> Iterator[str]:
    """A line for each client and form of an attack that chooses between decoders row by row: what it chose."""
    for name, form, client in product(run.config.attacks or (), forms, clients):
        path = client_file(run, form, name, client)
        decoded_by = read_tensors(path)[1].get("decoded_by") if path.is_file() else None
        if decoded_by:
            shares = ", ".join(f"{count} by {decoder}" for decoder, count in sorted(decoded_by.items()))
            yield f"{name}, client {client}, {form}: rows decoded: {shares}"


def finite(value: float) -> float | None:
    """None where a number is not finite: JSON has no word for it."""
    return value if math.isfinite(value) else None


def write_unmixed(path: Path, unmixed: Unmixed) -> None:
    """Recovered prototypes and how far to trust them."""
    write_tensors(
        path,
        {"prototypes": unmixed.prototypes.numpy(), "classes": unmixed.classes.numpy().astype("int64")},
        {
            "client": unmixed.client,
            "method": unmixed.method,
            "form": unmixed.form,
            "round": int(unmixed.rounds[-1]),
            "rounds": len(unmixed.rounds),
            "rank": unmixed.rank,
            "condition": finite(unmixed.condition),
            "predicted_error": finite(unmixed.predicted_error),
            "null_gap": finite(unmixed.null_gap),
            "oldest": unmixed.oldest,
            "status": unmixed.status,
            "reason": unmixed.reason,
        },
    )


def read_unmixed(run: Run, view: ServerView, client: int, point: str = "") -> tuple[ServerView | None, dict[str, Any]]:
    """The view of one client's recovered prototypes (None where there are none), and what is known of them."""
    tensors, meta = read_tensors(client_file(run, view.form, UNMIXING, client, point=point))
    if not len(tensors["prototypes"]):
        return None, meta
    encoding = F.one_hot(torch.from_numpy(tensors["classes"]), view.num_classes).float()
    upload = Upload(client, meta["round"], meta["form"], torch.from_numpy(tensors["prototypes"]), encoding)
    return replace(view.client(client), form=meta["form"], mechanism="", uploads=(upload,)), meta


def unmix_client(run: Run, view: ServerView, point: str = "") -> ServerView | None:
    """Unmix the stream of the one client in `view`, once; the view of its prototypes, None where refused."""
    client = view.latest.client
    path = client_file(run, view.form, UNMIXING, client, point=point)
    if not path.is_file():
        unmixed = unmix(view, seed=derive_seed(run.config.seed, UNMIXING, client=client) % 2**31)
        write_unmixed(path, unmixed)
        return recovered_view(view, unmixed) if unmixed.recovered else None
    return read_unmixed(run, view, client, point)[0]


def shorter_streams(run: Run, view: ServerView) -> Iterator[tuple[Path, ServerView, int]]:
    """Work on a share of the rounds of the one client in `view`: where to, the unmixed view, how many rounds."""
    client = view.latest.client
    for point in points(run.config, "rounds"):
        count = point.of(len(view.uploads))
        if count > 1:
            recovered = unmix_client(run, newest_rounds(view, count), point.folder)
            if recovered is not None:
                yield client_file(run, STREAMED, FOLLOWED, client, point=point.folder), recovered, count


def attack_with_fewer_images(first: Run, run: Run, knowledge: Q3, views: Views) -> None:
    """The followed attack with a share of the public images: on raw rows where recorded, they show the most."""
    form = CEILING if CEILING in views else run.config.form
    for point in points(run.config, "auxiliary"):
        count = point.of(len(knowledge.images))
        path = client_file(run, form, FOLLOWED, views[form].latest.client, point=point.folder)
        if count > 1 and not path.is_file() and not copy_raw(first, run, path):
            held = replace(knowledge, images=knowledge.images[:count], labels=knowledge.labels[:count])
            write_answers(path, ATTACKS[FOLLOWED]().fit(held), views[form], held, None, 1)


def work_of(
    run: Run, name: str, own: Mapping[str, ServerView], recovered: ServerView | None
) -> Iterator[tuple[Path, ServerView, int]]:
    """What one attack has to answer of one client in one run: where to, the view, how many rounds it holds."""
    client = next(iter(own.values())).latest.client
    for form, view in own.items():
        yield client_file(run, form, name, client), view, 1
    if recovered is not None:
        yield client_file(run, STREAMED, name, client, stream=True), recovered, len(own[STREAMED].uploads)
        if name == FOLLOWED:
            yield from shorter_streams(run, own[STREAMED])


def copy_raw(first: Run, run: Run, path: Path) -> bool:
    """Take answers to raw rows from the first of several runs of one training: they are the same rows there."""
    name = path.relative_to(run.path)
    source = first.path / name
    if run is first or not name.is_relative_to(f"attacks/{CEILING}") or not source.is_file():
        return False
    copy_answers(source, path)
    return True


def attack_client(runs: Sequence[Run], knowledge: Q3, views: Sequence[Views], position: int) -> None:
    """Every attack on one client, every form of every run: fitted once. position: of the client among all."""
    owned = [{form: view for form, view in own.items() if view.uploads} for own in views]
    recovered = [
        unmix_client(run, own[STREAMED]) if STREAMED in own else None for run, own in zip(runs, owned, strict=True)
    ]
    first = runs[0]
    for name in first.config.attacks or ():
        budget = budget_of(first.config, name)
        work = [
            (run, path, view, stream)
            for run, own, found in zip(runs, owned, recovered, strict=True)
            for path, view, stream in work_of(run, name, own, found)
            if not path.is_file()
        ]
        if work and (budget.clients is None or position < budget.clients):
            fitted = ATTACKS[name](**budget.options).fit(knowledge)
            for run, path, view, stream in work:
                if not copy_raw(first, run, path):
                    write_answers(path, fitted, view, knowledge, budget.rows, stream)
        if name == FOLLOWED:
            for run, own in zip(runs, owned, strict=True):
                attack_with_fewer_images(first, run, knowledge, own)


def attack(run: Run, prepared: Prepared, *, quiet: bool = False, others: Sequence[Run] = ()) -> None:
    """Run the configured attacks on every client; the marker is written last. A complete stage starts afresh.

    others: runs of the same training and the same attackers, attacked with what was fitted for `run`.
    """
    runs = [run, *others]
    for one in runs:
        if one.has(DONE):
            shutil.rmtree(one.path / "attacks")
    views = [{form: read_view(one.path, form) for form in audited_forms(one)} for one in runs]
    images, labels = auxiliary(prepared)
    models = load_clients(run.path)
    known = views[0][run.config.form]
    clients, attacks = known.clients, list(run.config.attacks or ())

    def work(position: int, _: None) -> None:
        client = clients[position]
        knowledge = knowledge_of(run, client, models[client], images, labels, known.classifiers)
        own = [{form: view.client(client) for form, view in held.items()} for held in views]
        attack_client(runs, knowledge, own, position)

    costs = [cost_of(run.config, position) for position in range(len(clients))]
    with (
        Workers(work, costs, forkable(run.config.workers, run.config.threads)) as pool,
        progress("attack uploads", len(clients), quiet=quiet) as tick,
    ):
        for _ in pool.map(None):
            tick()
    for one, held in zip(runs, views, strict=True):
        for line in () if quiet else choices(one, held, clients):
            print(line, file=sys.stderr)
        one.write_json(DONE, {"clients": clients, "attacks": attacks})
