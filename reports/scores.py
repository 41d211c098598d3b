"""scores.json, version 1: its types.

Shares, accuracies and rates are fractions in [0,1]; PSNR and gains over it are dB; MSE is on the 0-255 scale.
A number that is not finite is null. Everything that may differ between two equal runs lies in `volatile`.
"""

from typing import Any, Literal, NotRequired, TypedDict

LEVELS = ("NO_IMAGE_LEAKAGE_FOUND", "CLASS_LEVEL", "SAMPLE_LEVEL")
Level = Literal["NOT_ASSESSED", "NO_IMAGE_LEAKAGE_FOUND", "CLASS_LEVEL", "SAMPLE_LEVEL"]
Number = float | None
Interval = list[Number] | None


class Run(TypedDict):
    seed: int
    seeds: list[int]
    versions: dict[str, str]
    config_sha256: str
    device: str
    precision: str
    threads: int
    command: NotRequired[str]


class Volatile(TypedDict):
    created: NotRequired[str | None]
    seconds: NotRequired[dict[str, Number]]
    peak_memory_mb: NotRequired[Number]
    host: NotRequired[Any]


class Dataset(TypedDict):
    """auxiliary_from: where the public images came from: 'same' (data set), classes of it, or another data set.

    class_names: by class number; left out where the names are the numbers.
    """

    name: str
    shape: list[int]
    classes: int
    private: int
    auxiliary: int
    auxiliary_from: NotRequired[str]
    disjoint: bool
    duplicates_dropped: int
    class_names: NotRequired[list[str]]


class Means(TypedDict):
    """Mean accuracy over clients: weighted by their test images, and plain."""

    weighted: Number
    unweighted: Number


class Accuracy(TypedDict):
    last: Means
    best: Means


class Traffic(TypedDict):
    """One round, all clients together: scalars up and down, and bytes of both ways."""

    upload_scalars: Number
    upload_scalars_published_count: Number
    broadcast_scalars: Number
    bytes: Number


class Federation(TypedDict):
    """seeds_averaged: over how many seeds accuracy and traffic are means; left out where there is one."""

    system: str
    form: str
    mechanism: str
    clients: int
    rounds: int
    broadcast: bool
    accuracy: Accuracy
    traffic: Traffic
    seeds_averaged: NotRequired[int]


class Floors(TypedDict):
    """What attackers reach without the representation; permuted: with one that tells nothing of these images."""

    mean_image: Number
    class_mean: Number
    best: Number
    permuted: Number


class Estimate(TypedDict):
    value: Number
    ci95: Interval


class Gains(TypedDict):
    """Value minus floor, paired per client; positive leaks more where `more_leakage` is higher."""

    mean_image: Estimate | None
    class_mean: Estimate | None
    best: Estimate | None
    permuted: Estimate | None


class Budget(TypedDict):
    auxiliary: Number
    steps: Number
    restarts: Number


class Row(TypedDict):
    """curve: the row is a point of a curve over attacker budget, never of the verdict."""

    form: str
    attack: str
    level: Literal["Q0", "Q1", "Q2", "Q3"]
    stream: int
    round: int
    target: str
    slice: str
    metric: str
    unit: str
    value: Number
    ci95: Interval
    n: int
    n_invalid: int
    n_clusters: int
    n_rows: NotRequired[int]
    interval_unit: Literal["client", "image"]
    more_leakage: Literal["higher", "lower"]
    headline: bool
    floor: Floors
    gain: Gains
    best_floor: NotRequired[str | None]
    ceiling: Number
    ceiling_n: NotRequired[int]
    chance: Number
    candidates: Number
    budget: Budget
    curve: NotRequired[Literal["rounds", "auxiliary"]]
    status: Literal["ok", "not_validated", "failed"]
    reason: str | None


class Unmixing(TypedDict):
    client: int
    rounds: int
    classes: int
    rank: Number
    condition: Number
    predicted_error: Number
    null_gap: Number
    validated: bool
    recovered: NotRequired[bool]
    reason: str | None
    true_error: NotRequired[Number]
    oldest: NotRequired[int]


class Lowering(TypedDict):
    """What a change would do to the leak, measured: the leak before it, under it, and the difference.

    ci95: of the difference, paired by client; None where it was not paired.
    """

    change: str
    metric: str
    unit: str
    before: NotRequired[Number]
    value: Number
    difference: Number
    ci95: Interval
    more_leakage: Literal["higher", "lower"]
    note: str | None


class Disclosure(TypedDict):
    client: int
    kind: str
    value: Any


class Bound(TypedDict):
    form: str
    kind: str
    value: Number
    against: Any


Flag = TypedDict("Flag", {"client": int, "class": int | str | None, "kind": str})
Exposure = TypedDict(
    "Exposure",
    {"client": int, "class": NotRequired[int | str | None], "form": str, "attack": str, "metric": str,
     "value": Number, "floor": Number, "n": int},
)  # fmt: skip


ExposedSample = TypedDict(
    "ExposedSample",
    {"client": int, "class": int | str | None, "sample": int, "form": str, "attack": str, "metric": str,
     "value": Number, "floor": Number, "gain": Number, "picked": Number},
)  # fmt: skip
"""A single image. sample: its place in the data set. picked: 1 where the first guess is right, None without a pool."""


class Distribution(TypedDict):
    """Per-image gains in bins: len(edges) = len(counts) + 1."""

    form: str
    attack: str
    metric: str
    edges: list[float]
    counts: list[int]


class Check(TypedDict):
    name: str
    attack: str
    value: Number
    expected: Number
    tolerance: Number
    passed: bool


class Competence(TypedDict):
    passed: bool
    checks: list[Check]


class Numbers(TypedDict):
    floor: Number
    form: Number
    ceiling: Number
    unit: str
    metric: str
    target: NotRequired[str]
    against: NotRequired[str]


class Verdict(TypedDict):
    level: Level
    sentence: str
    rule: str
    thresholds: dict[str, Any]
    worst: Any
    numbers: NotRequired[Numbers]


class Decided(TypedDict):
    """A row that met a rule of the verdict. against: the floor it beat; gain and ci95: over that floor."""

    attack: str
    level: str
    stream: int
    slice: str
    target: str
    metric: str
    unit: str
    value: Number
    n: int
    more_leakage: Literal["higher", "lower"]
    against: str
    floor: Number
    gain: Number
    ci95: Interval


class Missing(TypedDict):
    """What kept a run from being assessed, the section of the page that shows it, and what to change."""

    what: str
    section: Literal["competence", "unmixing", "table"]
    change: str


class Grounds(TypedDict):
    """On what the verdict rests; `decided` is empty where no level was met, `missing` where it was assessed."""

    decided: list[Decided]
    missing: list[Missing]


class Scores(TypedDict):
    """scores.json. `exposure` (worst clients and classes first), `exposed_samples` (worst first), `distributions`,
    `lowering` and `grounds` may be left out.

    An unmixing entry's `true_error` is the auditor's: relative error of the recovered prototypes against the true.
    """

    schema_version: int
    run: Run
    volatile: Volatile
    dataset: Dataset
    federation: Federation
    rows: list[Row]
    unmixing: list[Unmixing]
    disclosures: list[Disclosure]
    bounds: list[Bound]
    flags: list[Flag]
    exposure: NotRequired[list[Exposure]]
    exposed_samples: NotRequired[list[ExposedSample]]
    distributions: NotRequired[list[Distribution]]
    lowering: NotRequired[list[Lowering]]
    competence: Competence
    verdict: Verdict
    grounds: NotRequired[Grounds]
