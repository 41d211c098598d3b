"""What an audit is about to do, what it will cost here, and what will cross the wire: said before long work."""

import math
import os
import time
from dataclasses import asdict, dataclass
from statistics import median
from typing import Any

import numpy as np
import torch
from torch.nn import functional as F

from attacks.base import ATTACKS
from fedre_audit.config import AuditConfig, resolve
from fedre_audit.data.splits import check_shares
from fedre_audit.federation.engine import participants
from fedre_audit.federation.systems import SYSTEMS
from fedre_audit.models.base import FAMILIES, build_model
from fedre_audit.progress import clock
from fedre_audit.stages.prepare import Prepared, prepare
from fedre_audit.workers import forkable

SECONDS_PER_CLIENT = {"cheap": 0.6, "medium": 6.0, "heavy": 60.0}
"""Rough seconds of one attack on one client, both forms, by declared cost; measured on one 2020s server core."""
SCORING_PER_CLIENT, ROUND_PER_CLIENT = 1.0, 0.005
"""Seconds that do not depend on how many images a client has; measured likewise."""
TIMED = 256
"""Images at most in a timed batch."""
FEW_IMAGES = 10
"""Training images below which a client's share is said to be small."""
LONG = 3600.0
"""Seconds from which a plan warns."""


@dataclass(frozen=True)
class Plan:
    """stages: what -> about seconds. traffic: form -> scalars all clients upload in a round. attacks: name -> level."""

    config: AuditConfig
    images: str
    clients: str
    attacks: dict[str, str]
    stages: dict[str, float]
    traffic: dict[str, int]
    broadcast: int
    notes: tuple[str, ...] = ()

    @property
    def seconds(self) -> float:
        """About how long the whole takes."""
        return sum(self.stages.values())

    @property
    def warning(self) -> str | None:
        """What to do where this takes long; None where it does not."""
        if self.seconds < LONG:
            return None
        advice = "lower --rounds, --private-images or --attacks, or use a machine with CUDA"
        if torch.cuda.is_available():
            advice = "batches were timed on the CPU; CUDA is many times as fast"
        return f"expensive: about {clock(self.seconds)}; {advice}"

    def line(self) -> str:
        """The plan in one line."""
        return (
            f"plan: {self.clients}, {self.images}; {self.config.form} uploads; attacks {', '.join(self.attacks)}; "
            f"about {clock(self.seconds)} (a rough guess from one timed batch)"
            + "".join(f"; {text}" for text in (self.warning, *self.notes) if text)
        )

    def text(self) -> str:
        """The plan, cost and traffic as a page of text."""
        audited = self.traffic[self.config.form]
        rows = [
            ("images", self.images),
            ("federation", f"{self.clients}, system {self.config.system}, family {self.config.family}"),
            ("attacks", ", ".join(f"{name} ({level})" for name, level in self.attacks.items()) + ", and the floors"),
            *((f"about {clock(seconds)}", stage) for stage, seconds in self.stages.items()),
            (f"about {clock(self.seconds)}", "in all, on this machine; a rough guess from one timed batch per model"),
            (
                "upload",
                f"{audited:,} scalars a round as {self.config.form} ({4 * audited / 1e6:.2f} MB)"
                if audited
                else f"none; {self.config.form} is recorded to see what it would leak",
            ),
            *(
                ("", f"{count:,} as {form}")
                for form, count in self.traffic.items()
                if count and form != self.config.form
            ),
            ("broadcast", f"{self.broadcast:,} scalars a round" if self.broadcast else "none"),
            *([("warning", self.warning)] if self.warning else []),
            *(("note", note) for note in self.notes),
        ]
        return "\n".join(f"{name:<22}{value}" for name, value in rows)

    def as_dict(self) -> dict[str, Any]:
        """JSON-able."""
        return {**asdict(self), "seconds": round(self.seconds, 1), "warning": self.warning}


def seconds_per_image(member: str, config: AuditConfig, shape: tuple[int, int, int], classes: int) -> float:
    """Seconds of one training step per image on this machine: median of three after a warm-up."""
    model = build_model(member, shape, classes, config.feature_width, seed=0)
    count = min(max(config.batch_size, 2), TIMED)  # batch norm trains on two images at least
    images, labels = torch.zeros(count, *shape), torch.zeros(count, dtype=torch.int64)
    model.train()

    def step() -> float:
        started = time.perf_counter()
        F.cross_entropy(model(images), labels).backward()
        return time.perf_counter() - started

    step()
    return median(step() for _ in range(3)) / count


def traffic_of(prepared: Prepared, width: int, participation: float = 1.0) -> dict[str, int]:
    """Scalars that those who take part upload in one round, about, by form: representations and their labels."""
    classes = len(prepared.data.classes)
    labels = prepared.data.labels.numpy()
    held = [labels[train] for train, _ in prepared.parts]
    of_all = {
        "raw": sum(len(own) for own in held) * (width + 1),
        "prototype": sum(len(np.unique(own)) for own in held) * (width + 1),
        "entangled": len(held) * (width + classes),
    }
    return {form: round(count * participation) for form, count in of_all.items()}


def fewer(config: AuditConfig, private: int, public: int, there: int) -> str:
    """Says where the data set did not have what was asked for."""
    asked = config.private_images, config.auxiliary_images
    return "" if (private, public) == asked else f" (it holds {there}; {asked[0]} and {asked[1]} were asked for)"


def busy() -> float:
    """How many times longer work takes while others use this machine, at least 1."""
    return max(1.0, os.getloadavg()[0] / (os.cpu_count() or 1))


def notes_on(prepared: Prepared) -> tuple[str, ...]:
    """What about the data a reader should know before long work: tiny clients, classes of a single image."""
    data, sizes = prepared.data, sorted(len(train) for train, _ in prepared.parts)
    found = []
    if (few := sum(size < FEW_IMAGES for size in sizes)) > 0:
        found.append(
            f"{few} of {len(sizes)} clients train on fewer than {FEW_IMAGES} images (smallest {sizes[0]}, median "
            f"{sizes[len(sizes) // 2]}); {'lower --clients, or ' if len(sizes) > 1 else ''}raise --private-images"
        )
    counts = data.labels.bincount(minlength=len(data.classes)).tolist()
    if single := [name for name, count in zip(data.classes, counts, strict=True) if count == 1]:
        named = ", ".join(single[:5]) + (", ..." if len(single) > 5 else "")
        found.append(f"classes of a single image, whose mean is that image: {named}; add images or merge classes")
    return tuple(found)


def unmixed(config: AuditConfig) -> tuple[str, ...]:
    """Says that a chosen mechanism does not mix the audited uploads.

    >>> unmixed(AuditConfig(form="raw", mechanism="VAP", system="fedgh")), unmixed(AuditConfig(mechanism="VAP"))
    (('mechanism VAP is not used by raw',), ())
    """
    if config.form == "entangled" or config.mechanism == AuditConfig.mechanism:
        return ()
    learns = f", only by the server of system {config.system}" if SYSTEMS[config.system].form == "entangled" else ""
    return (f"mechanism {config.mechanism} is not used by {config.form}{learns}",)


def make_plan(config: AuditConfig, prepared: Prepared | None = None, *, arms: int = 1, dry: bool = False) -> Plan:
    """Plan of one audit, or of `arms` audits: of one training, or with `own_system` a training each.

    dry: nothing is fetched for it. Raises AuditError on a bad configuration, and, if dry, where images would have to
    be fetched first.
    """
    from fedre_audit.pipeline import check_names

    config = resolve(config)
    check_names(config)
    members = FAMILIES[config.family]
    attacks = {name: ATTACKS[name] for name in config.attacks or ()}
    if prepared is None:
        check_shares(config.private_images or 0, config.clients or 0)
    torch.set_num_threads(config.threads)
    prepared = prepared or prepare(config, dry=dry)
    data, clients = prepared.data, len(prepared.parts)
    shape = (data.shape[0], data.shape[1], data.shape[2])
    classes = len(data.classes)
    cost = {member: seconds_per_image(member, config, shape, classes) for member in members[:clients]}
    per_round = sum(len(train) * cost[members[k % len(members)]] for k, (train, _) in enumerate(prepared.parts))
    # Those who take part: local epochs forward and backward, and one forward pass (a third) for the representations.
    # Everyone is evaluated in every round.
    tested = sum(len(test) * cost[members[k % len(members)]] for k, (_, test) in enumerate(prepared.parts))
    taking_part = len(participants(clients, config, 0)) / clients
    training = (config.rounds or 0) * (per_round * (config.local_epochs + 0.35) * taking_part + 0.35 * tested)
    training += (config.rounds or 0) * clients * ROUND_PER_CLIENT
    sends = SYSTEMS[config.system].form is not None
    # Attackers train on the public images: their declared seconds are of a quick audit's small ones.
    pixels = len(prepared.auxiliary.images) * math.prod(shape) / (2500 * 28 * 28)
    trainings = arms if config.own_system else 1
    # A decoder is trained once for all arms of a training; the others spend their time on the uploads of each.
    spent = [SECONDS_PER_CLIENT[cls.cost] * (trainings if name == "decoder" else arms) for name, cls in attacks.items()]
    attacking = sum(spent) * clients * max(1.0, pixels) * busy()
    private, public = len(prepared.split.private), len(prepared.auxiliary.images)
    scoring = (5e-3 * private * len(attacks) + SCORING_PER_CLIENT * clients) * busy()
    shared = min(forkable(config.workers, config.threads), clients)  # processes that share the clients
    stages = {
        "train and record": training / shared * trainings,
        "attack": attacking / shared,
        "score and report": (scoring / shared + 4.0) * arms,
    }
    seeds = len(config.seeds or [config.seed])
    return Plan(
        config=config,
        images=f"{private} private and {public} public images of {data.name}"
        f"{fewer(config, private, public, len(data))}, "
        f"{'×'.join(str(side) for side in shape)}, {classes} classes",
        clients=f"{clients} clients, {config.rounds} rounds" + (f", {seeds} seeds" if seeds > 1 else ""),
        attacks={name: attack.level for name, attack in attacks.items()},
        stages={stage: seconds * seeds for stage, seconds in stages.items()},
        traffic=traffic_of(prepared, config.feature_width, taking_part if sends else 0.0),
        broadcast=clients * classes * (config.feature_width + 1) if config.broadcast and sends else 0,
        notes=(*unmixed(config), *notes_on(prepared)),
    )
