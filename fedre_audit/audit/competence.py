"""Can the attackers attack? Small problems with a known right answer, run in every audit before its figures count.

Each attack must recover what can be recovered (a linear-Gaussian optimum, an identity encoder) and must land on the
floor where nothing can (a collapsed encoder, answers that belong to other images). Unmixing must find planted
prototypes, static and drifting, and must not trust a stream whose weights are noise.
"""

import math
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from attacks.base import ATTACKS, Attack
from attacks.knowledge import Q3
from attacks.membership import MEMBERSHIP
from attacks.unmixing.base import unmix
from fedre_audit.audit.membership import auc
from knowledge_forms.base import ServerView, Upload

SIDE = 8
WIDTH = SIDE * SIDE
MEASURED = 16
SPREAD = 0.04
LEARNED_STEPS = 60
MEMBERSHIP_PREFIX = "membership_"


class Linear(nn.Module):
    """Images [N,1,8,8] -> [N,m]: centred pixels times a fixed matrix, plus noise drawn from its own generator."""

    def __init__(self, matrix: Tensor, sigma: float = 0.0, seed: int = 0) -> None:
        super().__init__()
        self.matrix, self.sigma = matrix, sigma
        self.generator = torch.Generator().manual_seed(seed)

    def forward(self, images: Tensor) -> Tensor:
        """[N,1,8,8] -> [N,m]."""
        z = (images.flatten(1) - 0.5) @ self.matrix.T
        return z + self.sigma * torch.randn(z.shape, generator=self.generator) if self.sigma else z


class Unrelated(nn.Module):
    """Answers that have nothing to do with the image: pairs of a mixed-up data set."""

    def __init__(self, width: int, seed: int = 0) -> None:
        super().__init__()
        self.width, self.generator = width, torch.Generator().manual_seed(seed)

    def forward(self, images: Tensor) -> Tensor:
        """[N,1,8,8] -> noise [N,width]; the pixels enter with weight 0, so that gradients exist."""
        return torch.randn(len(images), self.width, generator=self.generator) + 0.0 * images.flatten(1)[:, :1]


def gaussian_images(count: int, seed: int = 0) -> tuple[Tensor, Tensor]:
    """Images [N,1,8,8] with eigenvalues j^-1.5 in a random basis, and their covariance [64,64]."""
    generator = torch.Generator().manual_seed(1)
    basis = torch.linalg.qr(torch.randn(WIDTH, WIDTH, generator=generator, dtype=torch.float64))[0]
    root = basis * torch.arange(1, WIDTH + 1, dtype=torch.float64).pow(-0.75)
    draw = torch.randn(count, WIDTH, generator=torch.Generator().manual_seed(seed + 2), dtype=torch.float64)
    images = 0.5 + SPREAD * draw @ root.T
    return images.float().reshape(-1, 1, SIDE, SIDE), SPREAD**2 * root @ root.T


def knowledge(images: Tensor, encoder: nn.Module) -> Q3:
    """Full knowledge of a small planted problem; one class."""
    labels = torch.zeros(len(images), dtype=torch.int64)
    return Q3(images=images, labels=labels, num_classes=1, seed=3, architecture=nn.Flatten, encoder=encoder,
              module=encoder)  # fmt: skip


def answer(attack: Attack, train: Tensor, encoder: nn.Module, z: Tensor) -> Tensor:
    """Reconstructions of uploaded rows z [n,d] by an attack that learns from `train` [N,1,8,8]."""
    fitted = attack.fit(knowledge(train, encoder))
    upload = Upload(0, 0, "raw", z.detach(), torch.ones(len(z), 1))
    return fitted.reconstruct(ServerView("planted", "raw", "", z.shape[1], 1, (upload,))).images


def gain_db(found: Tensor, images: Tensor, train: Tensor) -> float:
    """Pooled gain in dB of reconstructions over the mean image of `train`; -inf where one is not finite."""
    error = (found - images).square().mean()
    floor = (train.mean(0) - images).square().mean()
    return 10 * math.log10(float(floor / error.clamp(min=1e-12))) if bool(torch.isfinite(error)) else -math.inf


def check(
    name: str, attack: str, value: float, expected: float, tolerance: float, kind: str = "near"
) -> dict[str, Any]:
    """One entry of the block. kind: value must be near `expected`, at least it or at most it, up to the tolerance."""
    passed = {
        "near": abs(value - expected) <= tolerance,
        "least": value >= expected - tolerance,
        "most": value <= expected + tolerance,
    }[kind]
    shown = value if math.isfinite(value) else None
    return {"name": name, "attack": attack, "value": shown, "expected": expected, "tolerance": tolerance,
            "passed": bool(passed)}  # fmt: skip


def linear_gaussian(name: str, build: Callable[[], Attack], train_count: int) -> dict[str, Any]:
    """Error against the closed-form optimum on the same uploads: 1 % for ridge, 0.3 dB for learned decoders."""
    matrix = torch.randn(MEASURED, WIDTH, generator=torch.Generator().manual_seed(5)) / math.sqrt(WIDTH)
    sigma = 0.1 * SPREAD
    encoder = Linear(matrix, sigma)
    train, covariance = gaussian_images(train_count)
    images, _ = gaussian_images(4000, seed=9)
    z = encoder(images)
    a = matrix.double()
    gain = covariance @ a.T @ torch.linalg.inv(a @ covariance @ a.T + sigma**2 * torch.eye(MEASURED))
    optimal = 0.5 + z.double() @ gain.T
    flat = images.flatten(1)
    best = float((optimal - flat).square().mean())
    ratio = float((answer(build(), train, encoder, z).flatten(1) - flat).square().mean()) / best
    if name == "ridge":
        return check("linear-Gaussian optimum, error over it", name, ratio, 1.0, 0.01, "most")
    return check("linear-Gaussian optimum, dB over it", name, 10 * math.log10(ratio), 0.0, 0.3, "most")


def recovers(name: str, build: Callable[[], Attack]) -> dict[str, Any]:
    """An identity encoder must be inverted; who can only answer with a public image is asked for one it holds."""
    train, _ = gaussian_images(600)
    images = train[:64] if name == "nearest_auxiliary_embedding" else gaussian_images(64, seed=9)[0]
    encoder = Linear(torch.eye(WIDTH))
    gain = gain_db(answer(build(), train, encoder, encoder(images)), images, train)
    return check("identity encoder inverted, dB over the mean image", name, gain, 10.0, 0.0, "least")


def finds_nothing(name: str, build: Callable[[], Attack], what: str, encoder: nn.Module) -> dict[str, Any]:
    """Where the upload says nothing the attack may not gain; what it loses is its own affair."""
    train, _ = gaussian_images(600)
    images, _ = gaussian_images(200, seed=9)
    gain = gain_db(answer(build(), train, encoder, encoder(images)), images, train)
    return check(f"{what}: nothing to gain, dB over the mean image", name, gain, 0.0, 0.1, "most")


def stays_put(name: str, build: Callable[[], Attack]) -> dict[str, Any]:
    """A learning rate of 0 leaves a zero-initialised decoder on its floor, the mean image, exactly."""
    train, _ = gaussian_images(200)
    encoder = Linear(torch.eye(WIDTH))
    found = answer(build(), train, encoder, encoder(train[:8]))
    distance = float((found - train.mean(0)).abs().max())
    return check("learning rate 0, largest distance to the mean image", name, distance, 0.0, 1e-5)


def attack_checks(name: str) -> list[dict[str, Any]]:
    """The checks of one attack, by what it can be expected to do.

    Attackers who can ask the encoder nothing (Q0) have no planted problem with a known right answer: none, so that
    their rows stay not validated, to be read against the permuted null.
    """
    cls = ATTACKS[name]
    if cls.level == "Q0":
        return []
    options: dict[str, Any] = {"steps": LEARNED_STEPS} if name == "decoder" else {}

    def build(**other: Any) -> Attack:
        return cls(**(options | other))

    found = []
    if name in ("ridge", "decoder"):
        found.append(linear_gaussian(name, build, 20000 if name == "ridge" else 2000))
    if name == "decoder":
        found.append(stays_put(name, lambda: build(steps=3, lr=0.0, fallback=False)))
    else:
        found.append(recovers(name, build))
    found.append(finds_nothing(name, build, "collapsed encoder", Linear(torch.zeros(MEASURED, WIDTH))))
    if cls.level in ("Q2",):
        found.append(finds_nothing(name, build, "permuted pairs", Unrelated(MEASURED)))
    return found


def planted_stream(kind: str, *, classes: int = 4, rounds: int = 40, width: int = 48) -> tuple[ServerView, Tensor]:
    """A stream of mixtures and the true last prototypes [h,d]. kind: static, drifting, or noise (false weights)."""
    generator = torch.Generator().manual_seed(7)
    prototypes = torch.randn(classes, width, generator=generator)
    uploads = []
    for round_ in range(rounds):
        if kind == "drifting":
            prototypes = prototypes + 0.02 * torch.randn(classes, width, generator=generator)
        weights = torch.rand(classes, generator=generator)
        weights = weights / weights.sum()
        sent = torch.rand(classes, generator=generator) if kind == "noise" else weights
        vector = weights @ prototypes + 0.02 * torch.randn(width, generator=generator)
        uploads.append(Upload(0, round_, "entangled", vector[None], (sent / sent.sum())[None]))
    return ServerView("planted", "entangled", "RAP", width, classes, tuple(uploads)), prototypes


def unmixing_checks() -> list[dict[str, Any]]:
    """Planted prototypes are found, static and drifting; weights that are noise are not trusted."""
    found = []
    for kind, limit in (("static", 0.15), ("drifting", 0.4)):
        view, true = planted_stream(kind)
        estimate = unmix(view, nulls=1).prototypes
        error = float((estimate - true).norm() / (true - true.mean(0)).norm())
        found.append(check(f"planted {kind} prototypes, relative error", "unmixing", error, 0.0, limit))
    view, _ = planted_stream("noise")
    gap = unmix(view, nulls=3).null_gap
    found.append(check("weights replaced by noise, null gap in nats", "unmixing", gap, 0.0, 0.1))
    return found


def membership_checks(name: str) -> list[dict[str, Any]]:
    """Raw rows behind an identity encoder: members are told apart from others, and others from one another are not."""
    train, _ = gaussian_images(400)
    members, _ = gaussian_images(20, seed=9)
    others, _ = gaussian_images(200, seed=11)
    encoder = Linear(torch.eye(WIDTH))
    upload = Upload(0, 0, "raw", encoder(members), torch.ones(len(members), 1))
    view = ServerView("planted", "raw", "", WIDTH, 1, (upload,))
    fitted = MEMBERSHIP[name.removeprefix(MEMBERSHIP_PREFIX)]().fit(knowledge(train, encoder))
    images = torch.cat([members, others])
    score = fitted.score(view, images, torch.zeros(len(images), dtype=torch.int64)).double().numpy()
    return [
        check("members told apart, AUC", name, auc(score[:20], score[20:]), 0.9, 0.0, "least"),
        check("strangers not told apart, AUC", name, auc(score[20:120], score[120:]), 0.5, 0.15),
    ]


def competence(attacks: list[str], *, unmixing: bool) -> dict[str, Any]:
    """The block of scores.json: every check of the attacks that ran, and whether all passed."""
    checks: list[dict[str, Any]] = []
    for name in attacks:
        checks += membership_checks(name) if name.startswith(MEMBERSHIP_PREFIX) else attack_checks(name)
    if unmixing:
        checks += unmixing_checks()
    return {"passed": bool(checks) and all(item["passed"] for item in checks), "checks": checks}


def apply_competence(rows: list[dict[str, Any]], block: dict[str, Any]) -> None:
    """Rows whose attack (or, on a stream, unmixing) failed a check or was never checked become not_validated."""
    for row in rows:
        kinds = [row["attack"], *(["unmixing"] if row["stream"] > 1 else [])]
        for kind in kinds:
            checks = [item for item in block["checks"] if item["attack"] == kind]
            failed = [item["name"] for item in checks if not item["passed"]]
            if row["status"] == "ok" and (failed or not checks):
                why = (
                    f"{kind} failed its competence check: {', '.join(failed)}"
                    if failed
                    else f"{kind} has no check with a known answer"
                )
                row |= {"status": "not_validated", "reason": why}
