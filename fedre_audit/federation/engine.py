"""The round loop every system shares: send -> evaluate -> train locally -> upload -> aggregate."""

import math
from collections.abc import Callable, Sequence
from dataclasses import asdict
from functools import partial
from typing import Any

import torch
from torch import Tensor

from fedre_audit.config import AuditConfig, config_sha256
from fedre_audit.federation.checkpoint import load_state, save_state
from fedre_audit.federation.client import ClientData
from fedre_audit.federation.forms import make_form
from fedre_audit.federation.history import History, mean_accuracy, read_history
from fedre_audit.federation.local import LocalClient, Outcome, settle
from fedre_audit.federation.recorder import LocalState, Recorder, make_upload
from fedre_audit.federation.systems import System
from fedre_audit.models.base import ClientModel, check_width
from fedre_audit.models.store import save_clients
from fedre_audit.seeding import generator
from fedre_audit.workers import Workers, forkable, share_tensors
from knowledge_forms.base import KnowledgeForm, Upload
from knowledge_forms.errors import AuditError
from knowledge_forms.traffic import count_traffic


def pick_device(name: str) -> torch.device:
    """auto: cuda where available, else cpu. On cuda convolutions are made deterministic and full precision."""
    if name == "cuda" and not torch.cuda.is_available():
        raise AuditError("--device cuda: this machine offers no CUDA device; use --device cpu")
    if name == "cpu" or not torch.cuda.is_available():
        return torch.device("cpu")
    torch.backends.cudnn.deterministic = True
    torch.backends.cudnn.benchmark = False
    torch.backends.cudnn.allow_tf32 = False
    return torch.device("cuda")


def run_federation(
    *,
    models: Sequence[ClientModel],
    client_data: Sequence[ClientData],
    system: System,
    form: KnowledgeForm,
    config: AuditConfig,
    recorder: Recorder,
    on_round: Callable[[dict[str, Any]], None] | None = None,
    checkpoint_every: int = 10,
) -> History:
    """Train `config.rounds` rounds (config resolved), record each; models end on the device, as trained.

    The server learns from the system's own form; where the audited form is another one, that one is recorded from
    the same trajectory. A checkpoint in the recorder's run folder is continued, and gives the same bytes as a run
    without interruption, as does any number of `config.workers`. Raises AuditError on a width mismatch (before
    training) and on a non-finite loss.
    """
    if config.rounds is None:
        raise ValueError("run_federation needs a resolved configuration")
    torch.set_num_threads(config.threads)
    device = pick_device(config.device)
    server = system.start(models)
    check_width(models, models[0].classifier.in_features if server is None else server.weight.shape[1])
    data = [own.to(device) for own in _training_data(client_data, config)]
    for model in models:
        model.to(device).to(memory_format=torch.channels_last)  # any model gains: a quarter of a small CNN's step

    path, sha = recorder.run_dir / "clients" / "state.safetensors", config_sha256(config)
    history, first = History(), 0
    if path.exists():
        server, first = load_state(path, models, sha)
        history = History(read_history(recorder.run_dir).rows[:first])
    history.write(recorder.run_dir)

    workers = forkable(config.workers, config.threads)
    if workers > 1:
        for model in models:
            share_tensors(model)
    clients = [LocalClient(k, model, own, config) for k, (model, own) in enumerate(zip(models, data, strict=True))]
    with Workers(partial(_round_of, clients), [client.cost for client in clients], workers) as fleet:
        for round_ in range(first, config.rounds):
            sent = system.send(server, models, config)
            present = participants(len(models), config, round_)
            outcomes = dict(fleet.map((round_, set(present))))
            settle(device)
            correct = [int(outcomes[client].correct) for client in range(len(models))]
            losses = [_finite_loss(outcomes[client], config, round_, client) for client in range(len(models))]
            states = [_state(outcomes[client], data[client], config, round_, client) for client in present]
            recorded = recorder.record(round_, states, sent)
            uploads = _system_uploads(system, form, recorded, states, config, recorder.num_classes)
            server, server_loss = system.aggregate(server, uploads, config)
            if server_loss is not None and not math.isfinite(server_loss):
                raise AuditError(
                    f"round {round_}: the server loss is not finite; lower --server_lr ({config.server_lr})"
                )
            row = {
                "round": round_,
                "participants": present,
                "accuracy": mean_accuracy(correct, [len(own.test_labels) for own in data]),
                "train_loss": losses,
                "server_loss": server_loss,
                "collapsed": [state.client for state in states if collapsed(state.representations)],
                "traffic": asdict(count_traffic(recorded if system.form else [], sent, len(models))),
            }
            history.append(recorder.run_dir, row)
            if (round_ + 1) % checkpoint_every == 0 or round_ + 1 == config.rounds:
                save_state(path, models, server, round_ + 1, sha)
            if on_round is not None:
                on_round(row)
    save_clients(recorder.run_dir, models)
    return history


def _round_of(clients: Sequence[LocalClient], client: int, request: tuple[int, set[int]]) -> Outcome:
    """What each worker does for a client: `request` names the round and who takes part in it."""
    round_, present = request
    return clients[client].round(round_, present=client in present)


def participants(clients: int, config: AuditConfig, round_: int) -> list[int]:
    """Who trains and uploads in a round, ascending: round(participation * clients), at least one, drawn at random."""
    if config.participation == 1:
        return list(range(clients))
    draw = torch.randperm(clients, generator=generator(config.seed, "participation", round=round_))
    return sorted(draw[: max(1, round(config.participation * clients))].tolist())


def last_rounds(clients: int, config: AuditConfig) -> set[int]:
    """The rounds in which some client takes part for the last time: its model is then what it stays."""
    if config.rounds is None:
        raise ValueError("last_rounds needs a resolved configuration")
    newest: dict[int, int] = {}
    for round_ in range(config.rounds):
        newest |= dict.fromkeys(participants(clients, config, round_), round_)
    return set(newest.values())


def collapsed(representations: Tensor) -> bool:
    """Whether more than one representation [N,d] came out, all alike to float precision: the encoder tells nothing."""
    spread = (representations - representations[0]).abs().max()
    return len(representations) > 1 and bool(spread <= 1e-6 * representations.abs().max())


def _training_data(client_data: Sequence[ClientData], config: AuditConfig) -> list[ClientData]:
    """What the configured loader ever shows; raises one AuditError naming every client it leaves without images."""
    kept = [own.whole_batches(config.batch_size) if config.released_loader else own for own in client_data]
    empty = [client for client, own in enumerate(kept) if len(own.images) == 0]
    if empty:
        raise AuditError(
            f"no images to train on at client {', '.join(map(str, empty))} (batches of {config.batch_size}, "
            f"released_loader {config.released_loader}); lower --batch_size or --clients"
        )
    return kept


def _finite_loss(outcome: Outcome, config: AuditConfig, round_: int, client: int) -> float | None:
    if outcome.loss is None:
        return None
    loss = float(outcome.loss)
    _require_finite(math.isfinite(loss), "training loss", config, round_, client)
    return loss


def _state(outcome: Outcome, own: ClientData, config: AuditConfig, round_: int, client: int) -> LocalState:
    assert outcome.representations is not None  # it took part
    representations = outcome.representations.cpu()
    _require_finite(bool(representations.isfinite().all()), "representation", config, round_, client)
    return LocalState(client, round_, own.ids.cpu(), own.labels.cpu(), representations)


def _require_finite(finite: bool, what: str, config: AuditConfig, round_: int, client: int) -> None:
    if not finite:
        raise AuditError(
            f"client {client}, round {round_}: the {what} is not finite; lower --lr ({config.lr}), or --server_lr "
            f"({config.server_lr}) where server_loss in history.jsonl grew first"
        )


def _system_uploads(
    system: System,
    form: KnowledgeForm,
    recorded: list[Upload],
    states: Sequence[LocalState],
    config: AuditConfig,
    num_classes: int,
) -> list[Upload]:
    """What the server of this system learns from: the audited uploads themselves where the form is its own."""
    if system.form is None or system.form == form.name:
        return recorded
    own_form = make_form(system.form, config)
    return [make_upload(own_form, state, num_classes, config.seed)[0] for state in states]
