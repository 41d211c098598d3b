"""scores.json of an audit that cannot be scored: what unmixing, label encodings and truth alone can tell, no more."""

import resource
import time
from typing import Any

from fedre_audit.audit.competence import competence
from fedre_audit.audit.disclosures import disclosures, flags
from fedre_audit.audit.truth import read_truth
from fedre_audit.federation.view import read_view
from fedre_audit.foreign.config import ForeignConfig, command_line
from fedre_audit.foreign.plan import Line
from fedre_audit.runs import Run
from fedre_audit.stages.attack import STREAMED, client_file, unmix_client
from fedre_audit.stages.blocks import federation_block, unmixing_block
from fedre_audit.stages.prepare import Prepared
from fedre_audit.stages.score import DONE
from fedre_audit.stages.strips import png_bytes
from knowledge_forms.store import read_tensors, write_bytes
from reports.schema import dump_scores

PICTURES = 8
"""Rows of one upload that are written as pictures."""


def unmix_all(run: Run) -> None:
    """Unmix every stream; needs uploads alone."""
    view = read_view(run.path, run.config.form)
    for client in view.clients if view.form == STREAMED else ():
        unmix_client(run, view.client(client))


def write_pictures(run: Run) -> int:
    """What the attackers reconstructed, as PNG files below `reconstructions/`, unrated; returns how many."""
    import torch

    view, written = read_view(run.path, run.config.form), 0
    for name in run.config.attacks or ():
        for client in view.clients:
            for stream in (False, True):
                path = client_file(run, view.form, name, client, stream=stream)
                if not path.is_file():
                    continue
                images = torch.from_numpy(read_tensors(path)[0]["images"])[:PICTURES]
                for row, image in enumerate(images):
                    kind = "stream" if stream else "newest"
                    target = run.path / "reconstructions" / f"{name}-client-{client:03d}-{kind}-row-{row:02d}.png"
                    write_bytes(target, png_bytes(image))
                    written += 1
    return written


def write_partial(
    run: Run, config: ForeignConfig, prepared: Prepared | None, lines: list[Line], seconds: dict[str, float]
) -> None:
    """Write scores.json without a single scored row; its verdict says why."""
    view, manifest = read_view(run.path, run.config.form), run.read_json("manifest.json", "versions", "device")
    why = next(reason for what, _, reason in lines if what == "scores and verdict")
    used = list(run.config.attacks or ()) if config.encoder else []
    scores: dict[str, Any] = {
        "schema_version": 1,
        "run": {
            "seed": config.seed, "seeds": [config.seed], "versions": manifest["versions"],
            "config_sha256": run.sha256, "device": manifest["device"], "precision": "fp32", "threads": config.threads,
            "command": command_line(config),
        },
        "volatile": {
            "created": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
            "seconds": {key: round(value, 2) for key, value in seconds.items()},
            "peak_memory_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024,
        },
        "dataset": {
            "name": prepared.data.name if prepared else "unknown: no images were given",
            "shape": list(prepared.data.images.shape[1:]) if prepared else [],
            "classes": view.num_classes,
            "private": len(prepared.split.private) if prepared else 0,
            "auxiliary": len(prepared.split.auxiliary) if prepared else 0,
            "disjoint": True,
            "duplicates_dropped": prepared.split.duplicates_dropped if prepared else 0,
        },
        "federation": federation_block(run, view),
        "rows": [],
        "unmixing": unmixing_block(run, view, 0),
        "disclosures": disclosures(view),
        "bounds": [],
        "flags": flags(read_truth(run.path, view.form)) if config.truth else [],
        "competence": competence(used, unmixing=view.form == STREAMED),
        "verdict": {
            "level": "NOT_ASSESSED",
            "sentence": f"Not assessed: nothing could be scored; {why}.",
            "rule": "Without private images, public images and encoder no attack can be scored, so nothing is claimed.",
            "thresholds": {},
            "worst": None,
        },
    }  # fmt: skip
    write_bytes(run.path / DONE, dump_scores(scores).encode())
