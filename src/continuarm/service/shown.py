"""What is seen of an experiment, as types: they make the OpenAPI page, and a page can be drawn."""

from typing import Any, Literal

from msgspec import Struct

__all__ = [
    "BinSays",
    "Bins",
    "Cells",
    "Curve",
    "Diagnosis",
    "ExperimentSays",
    "Experiments",
    "Explained",
    "HistorySays",
    "Lines",
    "PayoffCurve",
    "Recommendation",
    "SegmentIsFrozen",
    "UpliftSays",
]

Health = Literal["good", "note", "warning", "serious"]
Whose = Literal["ours", "incumbent"]
Numbers = dict[str, float]  # by name


class BoxSays(Struct):
    """A box: edges, names and units of its coordinates; of decisions, what is allowed in it.

    spacing, ending : allowed values, 0: any; rows: coupled limits.
    """

    low: list[float]
    high: list[float]
    names: list[str]
    units: list[str] | None
    spacing: list[float]
    ending: list[float]
    rows: list[str]


class Counts(Struct):
    """Decisions by what became of them.

    late : whose time to live was over before a payoff came; lost: that were forgotten.
    """

    decisions: int
    payoffs: int
    open: int
    late: int
    lost: int


class Mean(Struct):
    """A mean payoff; error: its standard error, if there are two payoffs."""

    payoffs: int
    mean: float
    error: float | None


class Trend(Struct):
    """Mean payoffs of the first hundred and of the last eighth of all, the incumbent's included.

    name, unit : what a payoff is, as it was given.
    """

    name: str | None
    unit: str | None
    beginning: Mean | None
    lately: Mean | None


class Between(Struct):
    """An estimate, and what it is between."""

    low: float
    estimate: float
    high: float


class UpliftSays(Struct):
    """How much better decisions are than the incumbent's, in payoff and in percent.

    counted, incumbents : decisions, and those of them that were the incumbent's.
    waiting : decisions that are not counted yet.
    confidence : that the intervals are right at every look.
    """

    per_decision: Between | None
    percent: Between | None
    counted: int
    incumbents: int
    waiting: int
    confidence: float
    text: str


class Incumbent(Struct):
    """What is done today: `constant + by_context · context`, a row of `by_context` each."""

    constant: list[float]
    by_context: list[list[float]]


class OptionsSay(Struct):
    """The options that were given, or their defaults; in units."""

    start: Incumbent
    reach: list[float] | None
    memory: float | None
    ttl: int | None
    ttl_seconds: float | None
    missing: float | None
    share: float
    max_move: list[float] | None
    outside: Literal["refuse", "clip"]


class SegmentSays(Struct):
    """Contexts that are frozen, by their lowest and highest values.

    asked, at : how many decisions had been asked for when it was frozen, and when that was, in
        seconds; 0 where the experiment has no clock. text: all of it in words.
    """

    segment: dict[str, tuple[float, float]]
    asked: int
    at: float
    text: str


class SegmentIsFrozen(Struct):
    """It is frozen, and that is durable."""

    segment: SegmentSays
    done: bool = True


class FrozenSays(Struct):
    """What is frozen: segments, the one that answers first before others, and numbers of bins."""

    segments: list[SegmentSays]
    bins: list[int]


class ExperimentSays(Struct):
    """An experiment as it is now.

    policy : its name if it has one, else its parts.
    health : the worst level of its diagnosis, which is made at most once a second.
    one_bin : whether it never has more bins, so that cells show more of it.
    uplift : None where no share of decisions is the incumbent's.
    """

    name: str
    policy: str
    archived: bool
    paused: bool
    frozen: FrozenSays
    health: Health
    events: int
    bins: int
    one_bin: bool
    counts: Counts
    payoff: Trend
    uplift: UpliftSays | None
    context: BoxSays
    decision: BoxSays
    options: OptionsSay
    settings: dict[str, Any]


class Unavailable(Struct):
    """An experiment that this server cannot open, and why."""

    name: str
    error: str
    message: str


class Experiments(Struct):
    """All experiments that are not archived, by name.

    preparing : the names of those that are made or opened now; the compiler may take a while.
    """

    experiments: list[ExperimentSays]
    unavailable: list[Unavailable]
    preparing: list[str]


class FindingSays(Struct):
    """An assumption that the payoffs contradict.

    evidence, measure : a number, and what it is. bins: those it concerns; none: overall.
    """

    level: Literal["note", "warning", "serious"]
    check: str
    where: str
    evidence: float
    measure: str
    advice: str
    bins: list[int]


class Diagnosis(Struct):
    """What the checks of learning found, the worst first; which could not be made, and why."""

    health: Health
    payoffs: int
    findings: list[FindingSays]
    unchecked: dict[str, str]
    text: str


class BinSays(Struct):
    """One bin: contexts from low to high, and what was learned for its middle.

    best, error : the best decision known, and standard errors of where payoffs put it.
    expected, expected_error : the payoff of `best`.
    tried : from where to where decisions were tried, by name.
    """

    id: int
    low: list[float]
    high: list[float]
    level: int
    visits: int
    payoffs: int
    frozen: bool
    best: Numbers
    error: Numbers | None
    expected: float | None
    expected_error: float | None
    tried: dict[str, tuple[float, float]] | None


class Bins(Struct):
    """Bins in the order in which they were made; count: of all; next: ask for those after it."""

    bins: list[BinSays]
    count: int
    next: int | None


class CellSays(Struct):
    """A part of the contexts, and what is known in its middle; `freeze` takes its segment.

    best, today : the best decision known there, and what the incumbent does.
    expected, gain : the payoff of `best`, and by how much more that is than of `today`, with
        their standard errors; None: not known.
    peak, error : where payoffs put the best decision, and its standard errors; an error is None
        where they do not show it yet.
    frozen : whether its middle is frozen.
    """

    segment: dict[str, tuple[float, float]]
    context: Numbers
    best: Numbers
    today: Numbers
    expected: float | None
    expected_error: float | None
    gain: float | None
    gain_error: float | None
    peak: Numbers | None
    error: dict[str, float | None] | None
    frozen: bool


class Cells(Struct):
    """Equal parts of one or two contexts, along the last one first; held: where others are."""

    along: list[str]
    held: Numbers
    cells: list[CellSays]


class BucketSays(Struct):
    """Payoffs in a row, from the `first` on: how many were of this kind, and their mean."""

    whose: Whose
    first: int
    last: int
    payoffs: int
    mean: float
    error: float | None


class HistorySays(Struct):
    """Mean payoffs over time, ours and the incumbent's, in at most 64 buckets each."""

    buckets: list[BucketSays]


class Coordinate(Struct):
    """One coordinate of the decision along a context.

    learned : the best known; peak, error: where payoffs put it, and its standard error.
    today : what the incumbent does. set_by: the guards that set the best known.
    """

    learned: list[float]
    peak: list[float | None]
    error: list[float | None]
    today: list[float]
    set_by: list[str]


class Curve(Struct):
    """The decision that was learned along a context; held: where the others are."""

    along: str
    held: Numbers
    x: list[float]
    decision: dict[str, Coordinate]


class PayoffCurve(Struct):
    """The payoff expected over one coordinate of the decision; no numbers: nobody knows.

    held : where the other coordinates are. tried: whether decisions were tried there; allowed:
        whether limits and guards allow one there.
    best, today : the coordinate of the best decision known, and of the incumbent's.
    """

    over: str
    context: Numbers
    held: Numbers
    x: list[float]
    expected: list[float]
    error: list[float]
    tried: list[bool]
    allowed: list[bool]
    best: float
    today: float


class Explained(Struct):
    """Numbers by name, and `text` that needs no other."""

    text: str | None = None


class Lines(Struct):
    """One event, on a line of its own."""

    position: int
    time: float
    event: str
    id: str | None = None


class Recommendation(Struct):
    """The best decision known now; clipped: what of the context was outside its box."""

    decision: Numbers
    clipped: list[str]
