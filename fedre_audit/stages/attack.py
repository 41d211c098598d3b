"""Stage 2: attackers reconstruct images from the server's view. Truth is not read: moving it away changes nothing."""

from collections.abc import Iterator

from torch import Tensor

from attacks.base import ATTACKS
from attacks.floors import permuted_view
from attacks.knowledge import Q3
from fedre_audit.federation.view import read_view
from fedre_audit.models import ClientModel, as_encoder, load_clients
from fedre_audit.progress import progress
from fedre_audit.runs import Run
from fedre_audit.seeding import derive_seed
from fedre_audit.stages.prepare import Prepared
from fedre_audit.stages.train import CEILING
from knowledge_forms.base import ServerView
from knowledge_forms.store import write_tensors

DONE = "attacks/complete.json"


def audited_forms(run: Run) -> list[str]:
    """The audited form, and the raw form that gives its ceiling."""
    return list(dict.fromkeys([run.config.form, CEILING]))


def auxiliary(prepared: Prepared) -> tuple[Tensor, Tensor]:
    """The attacker's public images [N,c,h,w] in [0,1] and their labels [N]."""
    ids = prepared.split.auxiliary
    return prepared.data.images[ids].float() / 255.0, prepared.data.labels[ids]


def knowledge_of(run: Run, client: int, model: ClientModel, images: Tensor, labels: Tensor) -> Q3:
    """What the auditor's worst-case attacker of one client is given."""
    encoder = as_encoder(model)
    return Q3(
        images=images,
        labels=labels,
        num_classes=model.classifier.out_features,
        seed=derive_seed(run.config.seed, "attack", client=client),
        architecture=model.rebuild,
        encoder=encoder,
        module=encoder,
    )


def attack_client(run: Run, knowledge: Q3, views: dict[str, ServerView], client: int) -> Iterator[None]:
    """Every attack on one client, every form; yields after each fit."""
    for name in run.config.attacks:
        fitted = ATTACKS[name]().fit(knowledge)
        for form, view in views.items():
            own = view.client(client)
            found = fitted.reconstruct(own)
            null = fitted.reconstruct(permuted_view(own, knowledge))
            write_tensors(
                run.path / "attacks" / form / name / f"client-{client:03d}.safetensors",
                {"images": found.images.cpu().numpy(), "permuted": null.images.cpu().numpy()},
                {"client": client, "round": found.round, "level": knowledge.level},
            )
        yield


def attack(run: Run, prepared: Prepared, *, quiet: bool = False) -> None:
    """Run the configured attacks on the newest upload of every client; the marker is written last."""
    views = {form: read_view(run.path, form) for form in audited_forms(run)}
    images, labels = auxiliary(prepared)
    models = load_clients(run.path)
    clients = views[run.config.form].clients
    with progress("attack uploads", len(clients) * len(run.config.attacks), quiet=quiet) as tick:
        for client in clients:
            for _ in attack_client(run, knowledge_of(run, client, models[client], images, labels), views, client):
                tick()
    run.write_json(DONE, {"clients": clients, "attacks": list(run.config.attacks)})
