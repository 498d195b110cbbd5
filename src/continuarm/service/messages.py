"""What is said over HTTP, as types: they check requests, and make the OpenAPI page."""

from collections.abc import Iterable
from typing import Annotated, Any, Literal

from msgspec import UNSET, Meta, Struct, UnsetType

__all__ = [
    "Answer",
    "Answers",
    "Closing",
    "Closings",
    "Done",
    "Forget",
    "Freeze",
    "Log",
    "NewExperiment",
    "Payoff",
    "Refusal",
    "Request",
]

MOST_AT_ONCE = 1000  # contexts or payoffs in a batch
MOST_DIMENSIONS = 1000
DEEPEST = 20  # lists and objects inside each other, in an option
Text = Annotated[str, Meta(min_length=1, max_length=200)]
Numbers = Annotated[list[float], Meta(max_length=MOST_DIMENSIONS)]
Values = dict[Text, float] | Numbers  # by name, or in order
Id = Annotated[str, Meta(pattern="^[0-9a-f]{32}$", min_length=32, max_length=32)]


class Edges(Struct, forbid_unknown_fields=True):
    """A box: the lowest and the highest value of each coordinate, and their names.

    spacing, ending : allowed values, as for `ca.Box`; rows: coupled limits, as for `ca.Polytope`,
    such as `"small <= large - 0.5"`. Both are for decisions. units: of each coordinate, to show.
    """

    low: Numbers
    high: Numbers
    names: Annotated[list[Text], Meta(max_length=MOST_DIMENSIONS)] | None = None
    spacing: float | Numbers | None = None
    ending: float | Numbers | None = None
    rows: Annotated[list[Text], Meta(max_length=MOST_DIMENSIONS)] | None = None
    units: Annotated[list[Text], Meta(max_length=MOST_DIMENSIONS)] | None = None


class PayoffNamed(Struct, forbid_unknown_fields=True, omit_defaults=True):
    """What a payoff is, such as "profit per visitor", and its unit, to show."""

    name: Text | None = None
    unit: Text | None = None


class NewExperiment(Struct, forbid_unknown_fields=True):
    """What an experiment is made of; `options` are those of the policy.

    payoff : what a payoff is, and its unit, to show.
    outside : whether a context outside its box is refused, or clipped and said so.
    after : the experiment that this one succeeds: it begins with what that one's payoffs teach.
    """

    context: Edges
    decision: Edges
    policy: Text = "recommended"
    options: dict[Text, Any] = {}
    payoff: PayoffNamed | None = None
    outside: Literal["refuse", "clip"] = "refuse"
    after: Text | None = None

    def __post_init__(self) -> None:
        inner = list[Any](self.options.values())
        for _ in range(DEEPEST + 1):
            inner = [one for outer in inner for one in _inside(outer)]
        if inner:
            raise ValueError(f"`options` may have {DEEPEST} lists in each other, but have more")


def _inside(outer: Any) -> Iterable[Any]:
    if isinstance(outer, dict):
        return outer.values()
    return outer if isinstance(outer, list) else ()


class Request(Struct, forbid_unknown_fields=True):
    """A decision is wanted: for one context, or for each of several.

    within : limits for some coordinates, by name: `{"price": [3.0, 4.5]}`.
    key : unique per experiment: a second try with it gets the same decision. Several: one each.
    """

    context: Values | UnsetType = UNSET
    contexts: Annotated[list[Values], Meta(max_length=MOST_AT_ONCE)] | UnsetType = UNSET
    within: dict[Text, tuple[float, float]] | None = None
    key: Text | None = None
    keys: Annotated[list[Text], Meta(max_length=MOST_AT_ONCE)] | None = None


class Refusal(Struct, omit_defaults=True):
    """Why something was not done: a word for programs, a sentence for people."""

    error: str
    message: str
    field: str | None = None


class Answer(Struct, omit_defaults=True):
    """A decision, and the number under which its payoff is told; or why there is none.

    clipped : the coordinates of the context that were outside their box.
    """

    id: str | None = None
    decision: dict[str, float] | None = None
    role: str | None = None
    clipped: list[str] | None = None
    refused: Refusal | None = None


class Answers(Struct):
    """One answer for each context, in order."""

    decisions: list[Answer]


class Payoff(Struct, forbid_unknown_fields=True):
    """What a decision paid; `value` is what was really done, if it was something else."""

    id: Id | UnsetType = UNSET
    payoff: float | UnsetType = UNSET
    value: Values | None = None
    payoffs: Annotated[list["OnePayoff"], Meta(max_length=MOST_AT_ONCE)] | UnsetType = UNSET


class OnePayoff(Struct, forbid_unknown_fields=True):
    """One of several."""

    id: Id
    payoff: float
    value: Values | None = None


class Forget(Struct, forbid_unknown_fields=True):
    """Payoffs that will never come: one, or several."""

    id: Id | UnsetType = UNSET
    ids: Annotated[list[Id], Meta(max_length=MOST_AT_ONCE)] | UnsetType = UNSET


class Closing(Struct, omit_defaults=True):
    """What became of one: it is durable, or why it was refused."""

    id: str
    done: bool
    refused: Refusal | None = None


class Closings(Struct):
    """One for each, in order."""

    closed: list[Closing]


class Done(Struct):
    """It is done, and durable."""

    done: bool = True


class Freeze(Struct, forbid_unknown_fields=True):
    """Contexts that are frozen, or no longer: for each name the lowest and the highest value, both
    included: `{"hour": [18, 24]}`. What is not named may be anything."""

    segment: dict[Text, tuple[float, float]]


class Log(Struct, forbid_unknown_fields=True):
    """The log of an older rule: columns by name, those of context and decision, and `payoff`."""

    columns: dict[Text, Annotated[list[float], Meta(max_length=100_000)]]
