"""What the auditor of a foreign federation has; everything but the uploads is optional."""

import re
import shlex
from dataclasses import dataclass, field, fields
from pathlib import PurePath

from knowledge_forms.errors import AuditError


@dataclass
class ForeignConfig:
    """Recorded uploads, and what else there is to attack and to score them with."""

    uploads: str
    """file or folder of recorded uploads (docs/uploads.md)"""
    form: str | None = None
    """which form to audit, where the uploads hold several: raw, prototype or entangled"""
    auxiliary: str | None = None
    """public images of the same kind: mnist5k, cifar10, tinyimagenet or imagefolder:PATH; never the private ones"""
    auxiliary_images: int = 2000
    """how many of them the attacker holds; a quarter as many more are kept for scoring"""
    truth: str | None = None
    """folder of the clients' private images (fedre_audit.record.Truth, or `audit import`), read for scoring alone"""
    encoder: str | None = None
    """package.module:factory; the factory (of the client's id, if it has a parameter `client`) builds its encoder"""
    weights: str | None = None
    """safetensors file of the encoder's weights; {client} in it stands for the client's id"""
    attacks: list[str] = field(default_factory=lambda: ["ridge"])
    """attacks to run beside the floors (see `audit list attacks`)"""
    data_root: str | None = None
    """where data sets are found; default $FEDRE_AUDIT_DATA, else ~/.cache/fedre-audit"""
    seed: int = 0
    """reproduces everything"""
    threads: int = 1
    """CPU threads of one process"""


PLACES = ("uploads", "truth", "weights")
"""Options whose value is a path; only its last part is ever shown."""


def shown(path: str) -> str:
    """A path without its folders, which may be private: PATH stands for them.

    >>> shown("/home/me/w/client-{client}.safetensors"), shown("my-uploads/")
    ('PATH/client-{client}.safetensors', 'my-uploads')
    """
    pure = PurePath(path)
    return str(pure) if len(pure.parts) < 2 else f"PATH/{pure.name}"


def command_line(config: ForeignConfig) -> str:
    """The command that makes this audit; of each path the last part, PATH before it where folders were left out.

    >>> command_line(ForeignConfig("/home/me/my-uploads", auxiliary="mnist5k", attacks=["ridge", "decoder"]))
    'audit --uploads PATH/my-uploads --auxiliary mnist5k --attacks ridge,decoder'
    """
    words = ["audit"]
    for item in fields(ForeignConfig):
        value = getattr(config, item.name)
        if value is None or value == getattr(ForeignConfig(""), item.name) or item.name == "data_root":
            continue
        text = ",".join(value) if isinstance(value, list) else str(value)
        text = shown(text) if item.name in PLACES else text
        words += ["--" + item.name.replace("_", "-"), text]
    return shlex.join(words)


def check_config(config: ForeignConfig) -> None:
    """Raise one AuditError that names every option that cannot be meant so."""
    problems = []
    if config.weights and not config.encoder:
        problems.append("--weights needs --encoder package.module:factory, which builds what the weights belong to")
    if config.encoder and not config.auxiliary:
        problems.append("--encoder needs --auxiliary: attackers learn from public images what an encoder makes")
    if config.encoder and not re.fullmatch(r"\w+(\.\w+)*:\w+", config.encoder):
        problems.append(f"--encoder is {config.encoder!r}, must be package.module:factory")
    if config.auxiliary_images < 5:
        problems.append(f"--auxiliary-images is {config.auxiliary_images}, must be at least 5")
    if config.threads < 1:
        problems.append(f"--threads is {config.threads}, must be at least 1")
    if not config.attacks:
        problems.append("--attacks is empty; name at least one, for instance ridge")
    if problems:
        raise AuditError("; ".join(problems))
