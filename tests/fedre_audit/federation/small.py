"""A small federation of four clients for the tests: one class; one-image classes; one image."""

from functools import partial

import torch

from fedre_audit.config import AuditConfig, resolve
from fedre_audit.federation.client import ClientData
from fedre_audit.federation.engine import run_federation
from fedre_audit.federation.forms import make_form
from fedre_audit.federation.recorder import Recorder
from fedre_audit.federation.systems import SYSTEMS
from fedre_audit.models import build_clients
from fedre_audit.seeding import generator

SHAPE, CLASSES, WIDTH = (1, 12, 12), 4, 48
ROUNDS = 4
LABELS = [[0, 0, 1, 1, 1, 2], [3, 3, 3, 3, 3], [0, 1, 1, 1, 1, 3, 3, 2, 2], [2]]


def client_data(client, labels):
    draw = generator(7, "images", client=client)
    n = len(labels)
    images = torch.randint(0, 256, (n + 2, *SHAPE), generator=draw, dtype=torch.uint8)
    tests = torch.tensor([labels[0], labels[-1]]) if n > 1 else torch.empty(0, dtype=torch.int64)
    ids = torch.arange(n) + 100 * client
    return ClientData(images[:n], torch.tensor(labels), ids, images[n : n + len(tests)], tests)


def federate(run_dir, labels=LABELS, *, also=None, models=None, on_round=None, every=2, **changes):
    options = {"clients": len(labels), "rounds": ROUNDS, "batch_size": 4, "feature_width": WIDTH, "device": "cpu"}
    config = resolve(AuditConfig(**{**options, **changes}))
    form = make_form(config.form, config)
    clients = models or build_clients("small", len(labels), SHAPE, CLASSES, WIDTH, config.seed, config.mapping)
    return run_federation(
        models=clients,
        client_data=[client_data(client, own) for client, own in enumerate(labels)],
        system=SYSTEMS[config.system](),
        form=form,
        config=config,
        recorder=Recorder(
            run_dir=run_dir,
            system=config.system,
            form=form,
            num_classes=CLASSES,
            feature_width=WIDTH,
            seed=config.seed,
            also=also or {},
            build=partial(make_form, config=config),
        ),
        on_round=on_round,
        checkpoint_every=every,
    )
