"""The typed configuration: every key is a command-line option and a line of `config.yaml`."""

import hashlib
import json
from dataclasses import asdict, dataclass, fields, replace
from typing import Any, Literal

from fedre_audit.hardware import choose_precision, choose_workers
from knowledge_forms.errors import AuditError


@dataclass
class AuditConfig:
    """What to audit and how. `None` means: the preset decides."""

    form: str = "entangled"
    """knowledge form to audit: raw, prototype or entangled"""
    dataset: str = "mnist5k"
    """mnist5k, fashionmnist, cifar10, cifar100, tinyimagenet, or imagefolder:PATH (class folders, or an archive)"""
    data_root: str | None = None
    """where data sets are found; default $FEDRE_AUDIT_DATA, else ~/.cache/fedre-audit"""
    preset: Literal["quick", "small", "full"] = "quick"
    """quick: a minute on 2 cores; small: minutes, more attackers; full: the published setting, for CUDA"""
    mechanism: str = "RAP"
    """how the entangled form mixes: RSR, VAR, RAR, RSP, VAP or RAP (see `audit list mechanisms`)"""
    weight_law: str = "uniform"
    """law of the random mixing weights: uniform, gaussian or laplace (absolute value, then normalised)"""
    weights: Literal["per_round", "fixed"] = "per_round"
    """draw mixing weights afresh each round, or once per client by class"""
    mapping: str = "AP"
    """how features reach the common width: AP (average pool), MP (max pool) or FC (learned, secret)"""
    system: str = "fedre"
    """federated system that trains the clients: fedre, fedgh, fedallrep or local"""
    own_system: bool = False
    """train with the system of the audited form (raw: fedallrep, prototype: fedgh, entangled: fedre), not --system"""
    family: str = "auto"
    """family of client models; auto: small, with preset full HtM-img-10; client k gets member k mod (family size)"""
    clients: int | None = None
    """number of clients"""
    rounds: int | None = None
    """communication rounds"""
    participation: float = 1.0
    """share of the clients that train and upload in a round, drawn afresh each round; at least one client"""
    private_images: int | None = None
    """private images, all clients together"""
    auxiliary_images: int | None = None
    """public images the attacker holds; never among the private ones"""
    auxiliary: str = "same"
    """where they come from: same (data set), classes:odd|even|0-4,7 (some of its classes), or another data set"""
    classes: int | None = None
    """use the first N classes of the data set only"""
    partition: Literal["practical", "pathological"] = "practical"
    """practical: Dirichlet class shares; pathological: few classes per client"""
    alpha: float = 0.1
    """Dirichlet concentration of the practical partition"""
    classes_per_client: int = 2
    """classes each client holds in the pathological partition"""
    broadcast: bool = True
    """whether the server sends its classifier to the clients each round"""
    shuffle: bool = True
    """shuffle the training loader each epoch"""
    released_loader: bool = False
    """the loader of the authors' code: unshuffled, and the tail that fills no batch neither trains nor uploads"""
    feature_width: int = 512
    """width d of the representations that leave a client"""
    lr: float | None = None
    """local learning rate (plain SGD); default 0.06; for the published families HtFE and HtM 0.01, and 0.03 in
    preset full"""
    batch_size: int = 32
    """local batch size"""
    local_epochs: int = 1
    """local epochs per round"""
    server_lr: float = 0.01
    """learning rate of the server's classifier step"""
    server_epochs: int = 1
    """passes of the server over the uploads of a round"""
    attacks: list[str] | None = None
    """attacks to run beside the floors (see `audit list attacks`)"""
    decoder_steps: int | None = None
    """training steps of the convolutional decoder"""
    decoder_clients: int | None = None
    """how many clients get a convolutional decoder of their own (it is what breaks budgets)"""
    optimised_images: int | None = None
    """upload rows, all clients together, that attackers who optimise pixels may spend time on"""
    curves: list[str] | None = None
    """what to follow the leakage of ridge over: rounds, auxiliary (images), or both; [] for neither"""
    seed: int = 0
    """reproduces everything"""
    seeds: list[int] | None = None
    """several seeds, each a federation of its own in a folder below the run, scored together"""
    device: Literal["auto", "cpu", "cuda"] = "auto"
    """where to train; attacks and scoring run on the processor"""
    threads: int = 1
    """CPU threads of one process; part of the configuration because results depend on it in the last bit"""
    precision: Literal["auto", "fp32", "bf16"] = "auto"
    """arithmetic of networks large enough to gain from it; auto: bf16 where the hardware multiplies it natively"""
    workers: int | None = None
    """single-thread processes that share the clients, default one a core; results do not depend on it"""


PRESETS: dict[str, dict[str, Any]] = {
    "quick": {
        "family": "small",
        "clients": 10,
        "rounds": 100,
        "private_images": 1500,
        "auxiliary_images": 2500,
        "classes": None,
        "attacks": ["ridge"],
        "decoder_steps": 150,
        "decoder_clients": 1,
        "optimised_images": 100,
        "curves": ["rounds"],
    },
    "small": {
        "family": "small",
        "clients": 6,
        "rounds": 60,
        "private_images": 1000,
        "auxiliary_images": 2000,
        "classes": 20,
        "attacks": ["ridge", "decoder", "optimisation"],
        "decoder_steps": 800,
        "decoder_clients": 1,
        "optimised_images": 100,
        "curves": ["rounds", "auxiliary"],
    },
    "full": {
        "family": "HtM-img-10",
        "clients": 10,
        "rounds": 100,
        "private_images": 45000,
        "auxiliary_images": 10000,
        "classes": None,
        "attacks": [
            "ridge",
            "decoder",
            "optimisation",
            "corrector",
            "random_features_ridge",
            "shadow",
            "nearest_auxiliary_embedding",
        ],
        "decoder_steps": 1500,
        "decoder_clients": 10,
        "optimised_images": 1000,
        "curves": ["rounds", "auxiliary"],
    },
}
"""full: arXiv 2511.22265, on CIFAR-10 nearly all there is; days of CPU, so meant for CUDA.

A data set with fewer images than a preset asks for is shared out in the preset's proportion."""

CURVES = ("rounds", "auxiliary")
"""Budgets that leakage can be followed over."""
OWN_SYSTEM = {"raw": "fedallrep", "prototype": "fedgh", "entangled": "fedre"}
"""The system whose clients upload a form."""


def default_lr(family: str, preset: str) -> float:
    """FedRE's published rate; for the published families HtFE and HtM that of their library, HtFLlib.

    On the few images of preset small fewer seeds get through at the published rate and at that of FedRE's released
    code, 0.03 (`results/htfe4_rates.json`): representations of networks with batch norm can be so large that the
    server's classifier diverges, and the clients after it. Preset full has images enough for the latter rate.
    """
    if not family.startswith(("HtFE", "HtM")):
        return 0.06
    return 0.03 if preset == "full" else 0.01


def resolve(config: AuditConfig) -> AuditConfig:
    """Fill what the preset and other keys decide; raise one AuditError that names every bad value at once."""
    preset = PRESETS[config.preset]
    filled: dict[str, Any] = {key: value for key, value in preset.items() if getattr(config, key) is None}
    filled = {key: list(value) if isinstance(value, list) else value for key, value in filled.items()}
    if config.own_system:
        filled["system"] = OWN_SYSTEM.get(config.form, config.system)
    if config.released_loader:
        filled["shuffle"] = False
    if config.family == "auto":
        filled["family"] = preset["family"]
    if config.lr is None:
        filled["lr"] = default_lr(filled.get("family", config.family), config.preset)
    if config.precision == "auto":
        filled["precision"] = choose_precision(config.device)
    config = replace(config, **filled)
    if config.workers is None:
        config = replace(config, workers=choose_workers(config.clients or 1, config.threads))
    lowest = {
        "clients": 1, "rounds": 1, "private_images": 1, "auxiliary_images": 1, "classes_per_client": 1,
        "feature_width": 1, "batch_size": 1, "local_epochs": 1, "threads": 1, "classes": 2, "workers": 1,
        "server_epochs": 1, "decoder_steps": 1, "decoder_clients": 1, "optimised_images": 1,
    }  # fmt: skip
    problems = [
        f"--{key} is {getattr(config, key)}, must be at least {low}"
        for key, low in lowest.items()
        if getattr(config, key) is not None and getattr(config, key) < low
    ]
    problems += [
        f"--{key} is {getattr(config, key)}, must be above 0"
        for key in ("alpha", "lr", "server_lr")
        if not getattr(config, key) > 0
    ]
    if not 0 < config.participation <= 1:
        problems.append(f"--participation is {config.participation}, must be above 0 and at most 1")
    if config.seeds is not None and (not config.seeds or len(set(config.seeds)) < len(config.seeds)):
        problems.append(f"--seeds is {config.seeds}, must be different numbers, at least one")
    if unknown := sorted(set(config.curves or ()) - set(CURVES)):
        problems.append(f"--curves is {','.join(unknown)}, choose from {', '.join(CURVES)}")
    if problems:
        raise AuditError("; ".join(problems))
    return config


def form_name(config: AuditConfig) -> str:
    """The audited form as `audit compare` names it.

    >>> form_name(AuditConfig(form="raw")), form_name(AuditConfig(mechanism="VAP", weights="fixed"))
    ('raw', 'entangled:VAP:fixed')
    """
    if config.form != "entangled":
        return config.form
    return f"entangled:{config.mechanism}" + (":fixed" if config.weights == "fixed" else "")


INDIFFERENT = ("data_root", "workers")
"""Keys that do not decide the result: where the data lies and how many processes share the work."""


def config_sha256(config: AuditConfig) -> str:
    """Hash of everything that decides the result."""
    values: dict[str, Any] = {key: value for key, value in asdict(config).items() if key not in INDIFFERENT}
    return hashlib.sha256(json.dumps(values, sort_keys=True).encode()).hexdigest()


CONFIG_KEYS = tuple(item.name for item in fields(AuditConfig))
