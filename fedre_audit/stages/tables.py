"""Tables of one form: every attack's answers against every kind of target, client by client."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from attacks.floors import permuted_view
from attacks.knowledge import Q3
from attacks.membership import MEMBERSHIP, Membership
from fedre_audit.audit.evaluator import recognised
from fedre_audit.audit.intervals import Floats
from fedre_audit.audit.membership import membership_values
from fedre_audit.audit.metrics import score_images
from fedre_audit.audit.retrieval import retrieve
from fedre_audit.audit.rows import FormAttack
from fedre_audit.audit.scoring import (
    ATTACK,
    CHANCE,
    FLOOR_NAMES,
    PERMUTED,
    PairScores,
    best_of,
    floor_images,
    index_pairs,
    join,
    private_images,
)
from fedre_audit.audit.truth import Contribution, Targets, Truth, by_class, by_newest, make_targets
from fedre_audit.data.base import to_float
from fedre_audit.pictures import Chosen, Images, Joined, blocks
from fedre_audit.runs import Run
from fedre_audit.seeding import derive_seed
from fedre_audit.stages.answers import read_answers
from fedre_audit.stages.attack import STREAMED, UNMIXING, client_file, read_unmixed
from fedre_audit.stages.prepare import Prepared
from knowledge_forms.base import ServerView
from knowledge_forms.check import SUM_TOLERANCE
from knowledge_forms.errors import AuditError

Key = tuple[str, str, bool, bool]  # attack, kind of target, of a stream, trusted
Collected = tuple[dict[Key, list[PairScores]], dict[Key, dict[str, Any]], dict[Key, list[Floats]]]
IMAGE_METRICS = ("psnr", "mse", "ssim")
EVALUATOR = "evaluator_accuracy"


@dataclass(frozen=True)
class Case:
    """One client as the attacker met it: its view (or the view of its unmixed prototypes) and the truth of its rows.

    cluster: the unit of intervals, different for every client of every seed. trusted: unmixing validated, or none
    was needed.
    """

    run: Run
    prepared: Prepared
    form: str
    view: ServerView
    contribution: Contribution
    stream: int
    cluster: int
    trusted: bool = True

    @property
    def client(self) -> int:
        """Id of the client in its run."""
        return self.view.latest.client

    @property
    def kinds(self) -> tuple[str, ...]:
        """Kinds of targets: a single vector is compared with its mixture, a row per class with the class mean."""
        if self.form == "raw":
            return ("members",)
        one_row = self.form == STREAMED and self.stream == 1
        return ("members", "mixture" if one_row else "class_mean", "best")

    @cached_property
    def private(self) -> Images:
        """Private images [N,c,h,w] in [0,1] in the order of the contribution."""
        return private_images(self.prepared.data.images, self.contribution.sample_ids)

    @cached_property
    def floors(self) -> dict[str, Images]:
        """What the attackers who ignore the upload answer: name -> [n,c,h,w]."""
        public = self.prepared.auxiliary
        images, labels = to_float(public.images), public.labels
        return floor_images(self.view, images, labels, derive_seed(self.run.config.seed, "floor", client=self.client))

    @cached_property
    def others(self) -> tuple[Images, Tensor]:
        """Images and labels that never contributed: the evaluation images and the client's own held-out ones."""
        held_out = torch.from_numpy(self.prepared.parts[self.client][1])
        ids = torch.cat([self.prepared.split.evaluation, held_out])
        return private_images(self.prepared.data.images, ids), self.prepared.data.labels[ids]

    def targets(self, kind: str) -> tuple[Targets, PairScores]:
        """Targets of one kind, and their pairs without values."""
        made = make_targets(kind, self.contribution, self.private)
        if kind == "members":
            labels = self.prepared.data.labels[made.sample_ids]
        else:
            encoding = self.view.latest.label_encoding[made.row]
            one_class = encoding.max(1).values > 1 - SUM_TOLERANCE
            labels = torch.where(one_class, encoding.argmax(1), -1)
        return made, index_pairs(made, self.cluster, labels, self.contribution.class_counts)

    def answers(self, attack: str, point: str = "") -> tuple[dict[str, Images], dict[str, Any]] | None:
        """Images by predictor ('attack', 'permuted') and what they cost; None where the attack skipped the client.

        point: folder of a point of a curve.
        """
        path = client_file(self.run, self.form, attack, self.client, stream=self.stream > 1, point=point)
        return read_answers(path) if path.is_file() else None


def cases(run: Run, prepared: Prepared, view: ServerView, truth: Truth, offset: int) -> Iterator[Case]:
    """Every client of a form; where its stream was unmixed, a second time with its prototypes."""
    for client in view.clients:
        own = view.client(client)
        contribution = truth.get((client, own.latest.round))
        if contribution is None:
            raise AuditError(
                f"{run.path / 'truth' / view.form} does not say who made the upload of client {client}, round "
                f"{own.latest.round}; restore it or train again"
            )
        yield Case(run, prepared, view.form, own, contribution, 1, offset + client)
        if view.form == STREAMED and client_file(run, view.form, UNMIXING, client).is_file():
            recovered, meta = read_unmixed(run, view, client)
            if recovered is not None and meta["rounds"] > 1:
                classes = recovered.latest.label_encoding.argmax(1)
                labels = prepared.data.labels
                found = (
                    by_newest(truth, client, labels, classes)
                    if recovered.form == "raw"
                    else by_class(contribution, labels[contribution.sample_ids], classes)
                )
                trusted = meta["status"] == "validated"
                if found is not None:
                    yield Case(run, prepared, view.form, recovered, found, meta["rounds"], offset + client, trusted)


def image_values(
    images: Mapping[str, Images], targets: Targets, metrics: tuple[str, ...] = IMAGE_METRICS
) -> dict[str, dict[str, Floats]]:
    """Image metrics of every predictor on every pair, block by block: {predictor: {metric: [P]}}."""
    parts: dict[str, list[dict[str, Tensor]]] = {who: [] for who in images}
    for pairs in blocks(targets.images):
        wanted = targets.images[pairs]
        for who, found in images.items():
            parts[who].append(score_images(metrics, found[targets.row[pairs]], wanted))
    return {
        who: {name: torch.cat([part[name] for part in own]).numpy() for name in own[0]} for who, own in parts.items()
    }


def recognised_values(
    evaluator: nn.Module, images: Mapping[str, Images], targets: Targets, labels: Tensor
) -> dict[str, Floats]:
    """Whether the evaluator sees the target's class in each answer: {predictor: [P]}."""
    found = {}
    for who, answer in images.items():
        seen = torch.cat([recognised(evaluator, answer[rows]) for rows in blocks(answer)])[targets.row]
        value = (seen == labels).double()
        value[seen < 0] = float("nan")
        found[who] = value.numpy()
    return found


def cut(targets: Targets, rows: int) -> Targets:
    """Targets of the first `rows` upload rows."""
    kept = (targets.row < rows).nonzero().flatten()
    return Targets(Chosen(targets.images, kept), targets.row[kept], targets.sample_ids[kept], targets.members[kept])


def fit_membership(knowledge: Q3) -> dict[str, Membership]:
    """Every membership attacker, fitted once for a client."""
    return {name: attacker().fit(knowledge) for name, attacker in MEMBERSHIP.items()}


class Tables:
    """Collects the tables of one form, and joins them over clients. Truth is read here; attacks never are run."""

    def __init__(self, attacks: list[str], evaluator: nn.Module) -> None:
        self.attacks, self.evaluator = attacks, evaluator
        self.parts: dict[Key, list[PairScores]] = {}
        self.meta: dict[Key, dict[str, Any]] = {}
        self.pools: dict[Key, list[Floats]] = {}

    @property
    def collected(self) -> "Collected":
        """All that was collected so far, as arrays: what a worker process hands back."""
        return self.parts, self.meta, self.pools

    def merge(self, collected: "Collected") -> None:
        """Add what another one collected, after one's own."""
        parts, meta, pools = collected
        for key, tables in parts.items():
            for table in tables:
                self._keep(key, table, meta[key])
        for key, sizes in pools.items():
            self.pools.setdefault(key, []).extend(sizes)

    def add(self, case: Case) -> None:
        """Score every attack that answered for this client."""
        for kind in case.kinds[: -1 if "best" in case.kinds else None]:
            targets, index = case.targets(kind)
            floor_values = image_values(case.floors, targets)
            labels = torch.from_numpy(index.label)
            if kind == "members":
                for who, column in recognised_values(self.evaluator, case.floors, targets, labels).items():
                    floor_values[who][EVALUATOR] = column
            for name in self.attacks:
                answered = case.answers(name)
                if answered is not None:
                    self._add_attack(case, kind, name, answered, index.with_values(floor_values), targets)

    def _add_attack(
        self, case: Case, kind: str, name: str, answered: tuple[dict[str, Images], dict[str, Any]],
        table: PairScores, targets: Targets,
    ) -> None:  # fmt: skip
        images, meta = answered
        rows = images[ATTACK].shape[0]
        table, targets = table.subset(targets.row.numpy() < rows), cut(targets, rows)
        values = image_values(images, targets)
        if kind == "members":
            labels = torch.from_numpy(table.label)
            for who, column in recognised_values(self.evaluator, images, targets, labels).items():
                values[who][EVALUATOR] = column
            picks, sizes = retrieve(table, images, targets.images, *case.others)
            if len(picks):
                self._keep((name, "retrieval", case.stream > 1, case.trusted), picks, meta)
                self.pools.setdefault((name, "retrieval", case.stream > 1, case.trusted), []).append(sizes)
        self._keep((name, kind, case.stream > 1, case.trusted), table.with_values(values | table.values), meta)

    def _keep(self, key: Key, table: PairScores, meta: dict[str, Any]) -> None:
        self.parts.setdefault(key, []).append(table)
        self.meta[key] = max(self.meta.get(key, meta), meta, key=lambda found: found["stream"])

    def add_membership(self, case: Case, knowledge: Q3, attackers: Mapping[str, Membership]) -> None:
        """Score membership attackers: images that contributed against images of their classes that never did.

        A client of whom one score is not a number has no value: it is counted as invalid, and its row fails.
        """
        # Under RSR and RSP the client's others are no members.
        inside_upload = (case.contribution.weight > 0).nonzero().flatten()
        labels = case.prepared.data.labels[case.contribution.sample_ids[inside_upload]]
        others, other_labels = case.others
        same = torch.isin(other_labels, labels.unique()).nonzero().flatten()
        images = Joined(Chosen(case.private, inside_upload), Chosen(others, same))
        asked = torch.cat([labels, other_labels[same]])
        for name, fitted in attackers.items():
            values = {}
            views = {ATTACK: case.view}
            if case.form != "raw":  # rows of the same client in another order would be no null: the same images
                views[PERMUTED] = permuted_view(case.view, knowledge)
            for who, view in views.items():
                found = [fitted.score(view, images[some], asked[some]).cpu().double() for some in blocks(images)]
                score = torch.cat(found).numpy()
                # -inf says that no such image contributed, and ranks last; an overflow says as little as NaN.
                score[score == np.inf] = np.nan
                named = membership_values(score[: len(labels)], score[len(labels) :])
                values[who] = {key: np.array([value]) for key, value in named.items()}
            values[CHANCE] = {"membership_auc": np.array([0.5]), "membership_tpr_at_1pct": np.array([0.01])}
            one = np.array([0])
            n = np.array([len(labels)])
            table = PairScores(np.array([case.cluster]), one, one - 1, n, one - 1, n, values)
            meta = {"level": fitted.level, "round": case.view.latest.round, "stream": case.stream}
            self._keep((f"membership_{name}", "membership", case.stream > 1, case.trusted), table, meta)

    def joined(self, form: str) -> list[FormAttack]:
        """One table per attack, target kind and stream length. Of streams, those validated if there are any.

        Clients that took part in fewer rounds are named by the longest stream of all, which is the declared one.
        """
        found = []
        longest = max((meta["stream"] for meta in self.meta.values()), default=1)
        for (name, kind, streamed, trusted), parts in self.parts.items():
            if not trusted and (name, kind, streamed, True) in self.parts:
                continue
            key = (name, kind, streamed, trusted)
            meta, table = self.meta[key], join(parts)
            rated = kind in ("retrieval", "membership")
            common = {
                "form": form, "attack": name, "level": meta["level"], "round": meta["round"],
                "stream": longest if streamed else 1,
                "trusted": trusted, "floors": (CHANCE,) if rated else FLOOR_NAMES,
                "budget": (meta.get("steps"), meta.get("restarts")),
                "candidates": float(np.median(np.concatenate(self.pools[key]))) if key in self.pools else None,
            }  # fmt: skip
            found.append(FormAttack(target="members" if rated else kind, table=table, **common))
            if kind == "members" and form != "raw":
                best = best_of(table.with_values(_image_values_only(table)))
                found.append(FormAttack(target="best", table=best, **common))
        return found


def _image_values_only(table: PairScores) -> dict[str, dict[str, Floats]]:
    return {
        who: {name: column for name, column in named.items() if name in IMAGE_METRICS}
        for who, named in table.values.items()
    }
