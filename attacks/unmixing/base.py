"""`unmix`: one client's view -> its prototypes, and how far to trust them. Threat level Q0: no encoder, no truth."""

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace

import torch
from torch import Tensor
from torch.nn import functional as F

from attacks.unmixing.identifiability import Judgement, judge, rank_of
from attacks.unmixing.kalman import predicted_error
from attacks.unmixing.least_squares import LeastSquares
from attacks.unmixing.likelihood import DriftFilter, Estimate
from attacks.unmixing.model import Stream, permuted_weights, stream_of
from knowledge_forms.base import ServerView, Upload
from knowledge_forms.check import SUM_TOLERANCE
from knowledge_forms.errors import AuditError
from knowledge_forms.registry import Registry

Unmixer = Callable[[Stream, Tensor], Estimate]
UNMIXERS: Registry[Unmixer] = Registry("unmixing method", package="attacks.unmixing")
DEFAULT = "adaptive_norm_smoothed"
CLAIM_WINDOW = 50
ONE_PROTOTYPE = "the prototype of one class"
IN_THE_CLEAR = {"RSR": "one private representation", "RAR": "a mean of one class's images, weighted at random"}
"""What an upload of one class is, by mechanism; a prototype under the others."""
_BUILT_IN: dict[str, Unmixer] = {
    "least_squares": LeastSquares(),
    "windowed": LeastSquares(windowed=True),
    "polynomial": LeastSquares(degree=2),
    "filter": DriftFilter(adaptive=False, norm_smoothed=False),
    "adaptive": DriftFilter(norm_smoothed=False),
    DEFAULT: DriftFilter(bounded=True),
    "learned_drift": DriftFilter(learn=40, bounded=True),
    "second_order": DriftFilter(adaptive=False, norm_smoothed=False, order=2),
}
for _name, _method in _BUILT_IN.items():
    UNMIXERS.register(_name)(_method)


@dataclass(frozen=True)
class Unmixed:
    """What unmixing found for one client; nothing in it rests on truth.

    classes: int64 [h], ever held. prototypes: [h,d] float32, the newest state (empty where refused).
    smoothed, filtered: [T,h,d] float32 by round of `rounds` int64 [T]. rank, condition: of the weights.
    error_by_round: [T], predicted relative error of the smoothed states (0 exact, 1 no recovery).
    predicted_smoothed: its median over the last half of the rounds, 50 at most. predicted_last: of `prototypes`.
    predicted_error: the larger of the two, which the claim rests on.
    null_gap: nats per scalar by which permuted weights fit worse (nan without nulls).
    oldest: rounds by which the oldest of `prototypes` is behind the newest upload; 0 but for uploads of one class each.
    status: validated | inconclusive | not_validated | refused, with its reason. label_share: [h], mean weight by
    class (under mechanisms that weigh samples, an estimate of the label histogram).
    """

    client: int
    method: str
    classes: Tensor
    rounds: Tensor
    prototypes: Tensor
    smoothed: Tensor
    filtered: Tensor
    error_by_round: Tensor
    rank: int
    condition: float
    predicted_error: float
    predicted_smoothed: float
    predicted_last: float
    null_gap: float
    status: str
    reason: str
    label_share: Tensor
    form: str = "prototype"
    oldest: int = 0
    options: dict[str, float] = field(default_factory=dict)

    @property
    def validated(self) -> bool:
        """Whether the predicted error can carry a claim."""
        return self.status == "validated"

    @property
    def recovered(self) -> bool:
        """Whether there is anything to decode."""
        return len(self.prototypes) > 0


def unmix(
    view: ServerView, method: str | Unmixer = DEFAULT, *, nulls: int = 5, seed: int = 0, label: str | None = None
) -> Unmixed:
    """Estimate the prototypes of the one client in `view` from all its uploads; needs no encoder (Q0).

    method: a name of UNMIXERS, or an unmixer of one's own. nulls: permuted-weights refits (0: no gap).
    Weights that never change (rank 1 over several rounds) are refused, with the reason; uploads of one class each
    show what they carry and need no unmixing. Raises AuditError on several clients, on uploads of several rows and on
    non-finite ones.
    """
    unmixer = UNMIXERS[method] if isinstance(method, str) else method
    stream = stream_of(view)
    rounds, h, _ = stream.shape
    rank, condition = rank_of(stream.weights)
    if bool(((stream.weights > 1.0 - SUM_TOLERANCE).sum(1) == 1).all()):
        return _observed(view, stream, rank, condition)
    if rank == 1 and h > 1 and rounds > 1:
        return _refused(view, stream, condition)
    weights = torch.cat([stream.weights[None], permuted_weights(stream.weights, nulls, seed)])
    estimate = unmixer(stream, weights)
    errors = predicted_error(estimate.smoothed, estimate.covariance)
    smoothed, last = float(errors[-min(CLAIM_WINDOW, (rounds + 1) // 2) :].median()), float(errors[-1])
    error = smoothed if smoothed > last or math.isnan(smoothed) else last
    gap = math.nan
    if nulls and rounds > h:
        gap = float((estimate.nll[1:].mean() - estimate.nll[0]) / ((rounds - h) * stream.shape[2]))
    judgement = judge(
        rounds=rounds, classes=h, rank=rank, error=error, null_gap=gap, models_drift=estimate.models_drift
    )
    return Unmixed(
        client=view.latest.client,
        method=label or (method if isinstance(method, str) else type(method).__name__),
        classes=stream.classes,
        rounds=stream.rounds,
        prototypes=estimate.smoothed[-1].float(),
        smoothed=estimate.smoothed.float(),
        filtered=estimate.filtered.float(),
        error_by_round=errors,
        rank=rank,
        condition=condition,
        predicted_error=error,
        predicted_smoothed=smoothed,
        predicted_last=last,
        null_gap=gap,
        status=judgement.status,
        reason=judgement.reason,
        label_share=stream.weights.mean(0).float(),
        options=estimate.options,
    )


def recovered_view(view: ServerView, unmixed: Unmixed, *, index: int = -1) -> ServerView:
    """The view with the client's uploads replaced by its recovered prototypes, one-hot: any decoder takes it.

    index: which of `unmixed.rounds` (default the newest, the round of the newest encoder).
    Raises AuditError where unmixing was refused.
    """
    if not unmixed.recovered:
        raise AuditError(f"client {unmixed.client}: nothing was unmixed ({unmixed.reason}); decode its uploads instead")
    upload = Upload(
        client=unmixed.client,
        round=int(unmixed.rounds[index]),
        form=unmixed.form,
        representation=unmixed.smoothed[index] if len(unmixed.smoothed) > 1 else unmixed.prototypes,
        label_encoding=F.one_hot(unmixed.classes, view.num_classes).float(),
    )
    return replace(view, form=unmixed.form, mechanism="", uploads=(upload,))


def _observed(view: ServerView, stream: Stream, rank: int, condition: float) -> Unmixed:
    """Every upload carries one class: the newest upload of each class is the answer, exact for the round it is from."""
    label = stream.weights.argmax(1)
    held = label.unique()
    newest = torch.stack([(label == c).nonzero().max() for c in held])
    oldest = int(stream.rounds[-1] - stream.rounds[newest].min())
    form = "raw" if view.mechanism == "RSR" else "prototype"
    reason = f"nothing to unmix: each upload is {IN_THE_CLEAR.get(view.mechanism, ONE_PROTOTYPE)}, in the clear"
    if oldest:
        reason += f"; the newest of a class is up to {oldest} rounds old, and the encoder has changed since"
    # RAR draws other weights each round: its mean of a class is near the prototype, how near is not known.
    error = math.nan if oldest or view.mechanism == "RAR" else 0.0
    seen = replace(stream, weights=stream.weights[:, held], classes=stream.classes[held])
    prototypes = stream.uploads[newest]
    return _direct(view, seen, rank, condition, prototypes, form, Judgement("validated", reason), error, oldest)


def _refused(view: ServerView, stream: Stream, condition: float) -> Unmixed:
    extra = "; they are the label histogram of the client" if view.mechanism == "VAR" else ""
    reason = f"refused: the mixing weights never change (rank 1 for {len(stream.classes)} classes){extra}"
    none = stream.uploads[:0]
    return _direct(view, stream, 1, condition, none, "prototype", Judgement("refused", reason), math.nan)


def _direct(
    view: ServerView, stream: Stream, rank: int, condition: float, prototypes: Tensor, form: str,
    judgement: Judgement, error: float, oldest: int = 0,
) -> Unmixed:  # fmt: skip
    states = prototypes.float()
    return Unmixed(
        client=view.latest.client, method="observed", classes=stream.classes, rounds=stream.rounds,
        prototypes=states, smoothed=states[None], filtered=states[None],
        error_by_round=torch.full((len(stream.rounds),), error), rank=rank, condition=condition,
        predicted_error=error, predicted_smoothed=error, predicted_last=error, null_gap=math.nan,
        status=judgement.status, reason=judgement.reason, label_share=stream.weights.mean(0).float(), form=form,
        oldest=oldest,
    )  # fmt: skip
