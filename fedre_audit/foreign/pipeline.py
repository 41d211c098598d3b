"""`audit --uploads`: foreign uploads become a run folder, and the stages of every audit do the rest.

foreign.json     the clients' own ids, what the auditor had, the plan and its notes
uploads/raw, truth/    made here from truth and encoder: the ceiling, and what the scores compare with
"""

import hashlib
import json
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import asdict, fields
from pathlib import Path

from attacks.base import ATTACKS
from fedre_audit.config import AuditConfig, resolve
from fedre_audit.data.base import ImageData
from fedre_audit.foreign.config import ForeignConfig, check_config, command_line
from fedre_audit.foreign.data import gather, read_auxiliary
from fedre_audit.foreign.encoder import ForeignModel, encoder_sha256, load_encoder, refuse_untrusted
from fedre_audit.foreign.layout import MANIFEST, lay_out
from fedre_audit.foreign.partial import unmix_all, write_partial, write_pictures
from fedre_audit.foreign.plan import plan, plan_text
from fedre_audit.foreign.truth import read_truth_folder
from fedre_audit.foreign.uploads import ForeignUploads, read_uploads
from fedre_audit.options import COMMAND_FILE
from fedre_audit.pipeline import set_up_torch
from fedre_audit.runs import Run, default_path, lock_run, open_run
from fedre_audit.stages import attack as attacking
from fedre_audit.stages import score as scoring
from fedre_audit.stages.prepare import Prepared
from knowledge_forms.errors import AuditError
from knowledge_forms.store import write_bytes
from reports.render import write_report

FOREIGN = "foreign.json"


def fingerprint(
    config: ForeignConfig, found: ForeignUploads, models: Sequence[ForeignModel], public: ImageData | None
) -> str:
    """Hash of the options, of every byte of the folders they name, of the encoders and of the public images.

    A run folder resumes the same audit alone: an encoder whose code was corrected makes another one.
    """
    digest = hashlib.sha256(json.dumps(asdict(config), sort_keys=True).encode())
    places = [config.uploads, config.truth, *({config.weights.replace("{client}", str(i)) for i in found.ids} if
                                              config.weights else ())]  # fmt: skip
    for place in sorted(str(place) for place in places if place):
        path = Path(place)
        for file in sorted(path.rglob("*.safetensors")) if path.is_dir() else [path]:
            if file.is_file():
                digest.update(hashlib.sha256(file.read_bytes()).digest())
    for model in models:
        digest.update(encoder_sha256(model).encode())
    if public is not None:
        digest.update(public.content_hash.encode())
    return digest.hexdigest()


def as_audit_config(
    config: ForeignConfig, found: ForeignUploads, prepared: Prepared | None, digest: str
) -> AuditConfig:
    """The configuration of the run folder; what trained the clients is not known and stays at its default."""
    return resolve(
        AuditConfig(
            form=found.form,
            dataset=f"uploads-{digest[:16]}",
            mechanism=found.mechanism,
            system=found.system,
            family="foreign",
            clients=len(found.ids),
            rounds=len(found.rounds),
            private_images=max(1, len(prepared.split.private)) if prepared else 1,
            auxiliary_images=max(1, len(prepared.split.auxiliary)) if prepared else 1,
            feature_width=found.feature_width,
            broadcast=bool(found.broadcast),
            attacks=list(config.attacks),
            seed=config.seed,
            device="cpu",
            threads=config.threads,
            precision="fp32",
            workers=1,
        )
    )


def load_encoders(
    config: ForeignConfig, found: ForeignUploads, prepared: Prepared | None
) -> tuple[list[ForeignModel], list[str]]:
    """An encoder per client, probed, and notes on them; none where the auditor has none."""
    if config.encoder is None or prepared is None:
        return [], []
    loaded = [
        load_encoder(config.encoder, config.weights, client, prepared.data.shape, found.classes, found.feature_width)
        for client in found.ids
    ]
    counts = Counter(note for _, noted in loaded for note in noted)
    notes = [f"--encoder {config.encoder} of {count} clients: {note}" for note, count in counts.items()]
    if config.weights is None:
        notes.append("no --weights: the encoders are as the factory makes them")
    return [model for model, _ in loaded], notes


def audit_uploads(
    config: ForeignConfig,
    out: Path | None = None,
    *,
    quiet: bool = False,
    say: Callable[[str], None] = print,
    restart: str | None = None,
) -> Run:
    """Audit recorded uploads with whatever else there is; returns the run folder.

    say: is told the plan and notes. restart: the stage to start again from, in a folder that is there.
    """
    check_config(config)
    for name in config.attacks:
        if not ATTACKS[name].uses_upload:
            raise AuditError(f"attack '{name}' is a floor and always runs; leave it out of --attacks")
    started = time.perf_counter()
    found = read_uploads(Path(config.uploads), config.form)
    say(plan_text(config, found))
    truth = read_truth_folder(Path(config.truth), found) if config.truth else None
    public = read_auxiliary(config, found)
    prepared = gather(config, found, truth, public)
    set_up_torch(AuditConfig(threads=config.threads))
    models, notes = load_encoders(config, found, prepared)
    audit_config = as_audit_config(config, found, prepared, fingerprint(config, found, models, public))
    path = out or default_path(audit_config)
    with lock_run(path):
        run = open_run(path, audit_config)
        if restart not in (None, "score"):  # scoring clears for itself, once it has read what it needs
            run.clear(str(restart))
        if not run.has(MANIFEST):
            notes += lay_out(run, found, truth, models)
            told = {"options": asdict(config), "clients": list(found.ids), "plan": plan(config, found),
                    "notes": [*found.notes, *notes]}  # fmt: skip
            run.write_json(FOREIGN, told)
            write_bytes(run.path / COMMAND_FILE, (command_line(config) + "\n").encode())
        for note in run.read_json(FOREIGN, "notes")["notes"]:
            say(f"note: {note}")
        seconds = {"prepare": time.perf_counter() - started}
        started = time.perf_counter()
        if models and prepared is not None and not run.has(attacking.DONE):
            attacking.attack(run, prepared, quiet=quiet)
        if not models:
            unmix_all(run)
        seconds["attack"] = time.perf_counter() - started
        if restart == "score" or not run.has(scoring.DONE):
            if models and truth is not None and prepared is not None:
                scoring.score(run, prepared, seconds=seconds, quiet=quiet)
            else:
                write_partial(run, config, prepared, plan(config, found), seconds)
        if models and truth is None:
            say(f"reconstructions: {write_pictures(run)} pictures in {run.path / 'reconstructions'}")
        write_report(run.path)
    return run


def audit_again(run: Run, stage: str, *, quiet: bool = False) -> Run:
    """Start a foreign audit again from a stage; AuditError where what it was made from has changed or is gone.

    The folder may be somebody else's: the code that its options name is run only where it was asked for before.
    """
    known = {item.name for item in fields(ForeignConfig)}
    held = run.read_json(FOREIGN, "options")["options"]
    options = ForeignConfig(**{name: value for name, value in held.items() if name in known})
    if options.encoder is not None:
        refuse_untrusted(options.encoder)
    return audit_uploads(options, run.path, quiet=quiet, restart=stage)
