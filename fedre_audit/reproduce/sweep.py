"""The search for the published attack: settings of the pixel attack on one seed, then one thing changed at a time.

The main grid is on a plain CNN, attacked after the last round. The other federations change the round or the
architecture and keep the rest; `small` and `HtFE-img-4` hold nine architectures, and their means are kept by model.
"""

import itertools
import json
from collections.abc import Sequence
from dataclasses import asdict, fields
from typing import Any

from fedre_audit.comparison import arms_of, train_arms
from fedre_audit.config import AuditConfig, resolve
from fedre_audit.reproduce.base import Request
from fedre_audit.reproduce.pixel_attack import Setting, measure_setting
from fedre_audit.stages.prepare import prepare
from knowledge_forms.store import write_bytes

ARMS = {"raw": "raw", "prototype": "prototype", "entangled": "entangled:RAP"}
PLAIN, ROUNDS = "small_cnn", 200
"""Twice the published rounds: after 100 the stream of these clients is validated for one or two of ten."""
SMALL: dict[str, Any] = {"preset": "small", "clients": 10, "family": PLAIN, "rounds": ROUNDS}
FULL: dict[str, Any] = {"preset": "full"}
REFERENCE = Setting(200, 0.1, 0.15)
"""What the changes of one thing at a time start from; chosen before the grid was measured."""
GRID = (
    *(
        Setting(200, lr, tv)
        for lr, tv in itertools.product((0.05, 0.1, 0.2, 0.3), (0.0, 0.1, 0.15, 0.2, 0.3, 0.35, 0.4))
    ),
    *(Setting(steps, 0.1, tv) for steps, tv in itertools.product((100, 300), (0.1, 0.15))),
    *(Setting(200, 0.2, tv, start="normal") for tv in (0.3, 0.35)),
    Setting(200, 0.1, 0.15, start="normal"),
    Setting(200, 0.1, 0.15, target="nearest"),
    Setting(200, 0.1, 0.15, target="mixture"),
)
PLAN: dict[tuple[str, int], Sequence[Setting]] = {
    (PLAIN, ROUNDS): GRID,
    (PLAIN, 10): (REFERENCE,),
    (PLAIN, 100): (REFERENCE,),
    ("small", ROUNDS): (REFERENCE, Setting(200, 0.3, 0.1), Setting(200, 0.5, 0.08)),
    ("HtFE-img-4", 20): (REFERENCE,),
}
"""(family, rounds) -> what is tried on its uploads."""
FACTORS = tuple(field.name for field in fields(Setting))


def settings_of(request: Request, seed: int, **changes: Any) -> AuditConfig:
    """The federation whose uploads are attacked, resolved."""
    base = {**(SMALL if request.preset == "small" else FULL), **changes}
    root = str(request.data_root) if request.data_root else None
    return resolve(
        AuditConfig(
            dataset="tinyimagenet", attacks=["ridge"], data_root=root, seed=seed, **{"device": request.device, **base}
        )
    )


def sweep(
    request: Request, plan: dict[tuple[str, int], Sequence[Setting]] | None = None, per_client: int = 3
) -> list[dict[str, Any]]:
    """Every setting of every federation on the tuning seed; each is stored when done: an interrupted sweep goes on."""
    path = request.out / f"sweep-{request.preset}-seed-{request.seed}-rows-{per_client}.json"
    done: list[dict[str, Any]] = json.loads(path.read_text()) if path.is_file() else []
    for (family, rounds), settings in (PLAN if plan is None else plan).items():
        names = {"family": family, "rounds": rounds}
        due = [s for s in settings if not any((names | asdict(s)).items() <= entry.items() for entry in done)]
        if not due:
            continue
        config = settings_of(request, request.seed, **names)
        root = request.out / f"seed-{request.seed}" / f"{family}-{rounds}"
        runs = train_arms(arms_of(config, list(ARMS.values()), own_system=False), root, quiet=True)
        folders = {form: runs[arm].path for form, arm in ARMS.items()}
        prepared = prepare(config, quiet=True)
        for setting in due:
            done.append(names | measure_setting(folders, prepared, setting, per_client, request.seed))
            write_bytes(path, (json.dumps(done, indent=1) + "\n").encode())
    return done


def plain_grid(tried: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """The entries that compete: the plain CNN's last round, scored against all members; nearest first."""
    own = [e for e in tried if (e["family"], e["rounds"], e["target"]) == (PLAIN, ROUNDS, "members")]
    return sorted(own, key=lambda entry: entry["distance"])


def setting_of(entry: dict[str, Any]) -> Setting:
    """The setting of a stored entry."""
    return Setting(**{name: entry[name] for name in FACTORS})
