"""What both clients do: which request a verb is, and what an answer means. No network here."""

import secrets
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple
from urllib.parse import quote

import numpy as np

from continuarm import errors
from continuarm.box import Box
from continuarm.client.plain import (
    Plain,
    about,
    array_of,
    limits_of,
    payoff_of,
    payoffs_of,
    plain_of,
    rows_of,
    segment_of,
)
from continuarm.core.compiling import Array
from continuarm.ledger.entries import id_of, number_of, text_of
from continuarm.live.cells import Cell
from continuarm.live.decision import Bin, Decision, Decisions
from continuarm.live.segments import Between, Segment

__all__ = ["AWAY", "Call", "Talk", "refused"]

AWAY = {429, 502, 503, 504}  # statuses of a service that may answer later
AT_ONCE = 1000  # in a batch
AS_SAID = ("expected", "expected_error", "gain", "gain_error", "frozen")  # of a cell
BY_WORD: dict[str, type[errors.ContinuarmError]] = {
    "closed-before": errors.AlreadyToldError,
    "expired": errors.ExpiredDecisionError,
    "unknown-bin": errors.UnknownBinError,
    "segment-conflict": errors.SegmentConflictError,
    "unknown-decision": errors.UnknownDecisionError,
    "unknown-experiment": errors.UnknownExperimentError,
    "conflict": errors.ExperimentConflictError,
    "key-conflict": errors.KeyConflictError,
    "unavailable": errors.UnavailableError,
    "unauthorised": errors.DeniedError,
    "forbidden": errors.DeniedError,
}


class Call(NamedTuple):
    """A request."""

    method: str
    path: str
    body: dict[str, Any] | None = None
    query: dict[str, Any] | None = None

    def options(self, address: str, timeout: float) -> dict[str, Any]:
        """As `httpx` takes it."""
        where = {"method": self.method, "url": address + self.path}
        return where | {"json": self.body, "params": self.query, "timeout": timeout}


class Talk:
    """Requests and answers of one experiment.

    is_known : whether the names of its boxes are known.
    """

    def __init__(self, experiment: str) -> None:
        self._here = f"/v1/experiments/{quote(experiment, safe='')}"
        self.is_known = False
        self._context, self._decision = list[str](), list[str]()

    def experiment(self) -> Call:
        """What it is."""
        return Call("GET", self._here)

    def know(self, answer: dict[str, Any]) -> None:
        """Keep the names of its boxes, which never change."""
        self._context, self._decision = answer["context"]["names"], answer["decision"]["names"]
        self.is_known = True

    @staticmethod
    def has_no_names(given: Any) -> bool:
        """Whether a context of a query, or limits, can only be sent when the names are known."""
        if isinstance(given, Box):
            return not given.named
        return isinstance(given, list) and bool(given)

    def _post(self, verb: str, body: dict[str, Any] | None = None) -> Call:
        return Call("POST", f"{self._here}/{verb}", body)

    def ask(self, context: Plain, within: Any, key: str | None) -> Call:
        """A decision; with a key always, so that a second try is none."""
        body: dict[str, Any] = {"context": context, "key": key or _key()}
        if within is not None:
            body["within"] = limits_of(within, self._decision)
        return self._post("decisions", body)

    def ask_many(self, rows: list[Plain]) -> list[Call]:
        """Decisions, a thousand at a time."""
        return [
            self._post("decisions", {"contexts": part, "keys": [_key() for _ in part]})
            for part in _parts(rows)
        ]

    def tell(self, decision: Decision | int | str, payoff: float, value: Any) -> Call:
        """A payoff."""
        done = None if value is None else plain_of(value, "value")
        return self._post("payoffs", _paid(decision, payoff_of(payoff), done))

    def tell_many(
        self, decisions: Decisions | Sequence[Any], payoffs: Any, values: Any
    ) -> list[Call]:
        """Payoffs, a thousand at a time."""
        ids = list(decisions.ids if isinstance(decisions, Decisions) else decisions)
        paid = payoffs_of(payoffs, len(ids))
        done = [None] * len(ids) if values is None else rows_of(values, "values")
        if len(done) != len(ids):
            error = errors.InputError(f"{len(ids)} values are needed, but got {len(done)}")
            error.field = "values"
            raise error
        told = [_paid(*one) for one in zip(ids, paid, done, strict=True)]
        return [self._post("payoffs", {"payoffs": part}) for part in _parts(told)]

    @staticmethod
    def all_closed(answers: list[dict[str, Any]]) -> None:
        """Raise why the first of all was refused, if one was."""
        for answer in answers:
            for one in answer["closed"]:
                if not one["done"]:
                    raise refused(0, one["refused"])

    def forget(self, decision: Decision | int | str) -> Call:
        """That there will be none."""
        return self._post("forget", {"id": text_of(_id(decision))})

    def forget_answer(self, answer: dict[str, Any]) -> Call:
        """The same for what was answered."""
        return self._post("forget", {"id": answer["id"]})

    def forget_answers(self, answers: list[dict[str, Any]]) -> list[Call]:
        """The same for answers with several, a thousand at a time."""
        ids = [one["id"] for answer in answers for one in answer["decisions"] if "id" in one]
        return [self._post("forget", {"ids": part}) for part in _parts(ids)]

    def recommend(self, context: Plain) -> Call:
        """The best decision known."""
        return Call("GET", f"{self._here}/recommendation", query=self._query(context))

    def explain(self, context: Plain) -> Call:
        """What is best for a context, and why."""
        return Call("GET", f"{self._here}/explain", query=self._query(context))

    def explain_decision(self, decision: Decision) -> Call:
        """Why a decision was made."""
        return Call("GET", f"{self._here}/explain/{text_of(_id(decision))}")

    def _query(self, context: Plain) -> dict[str, str]:
        """A context by name, as a query is."""
        if isinstance(context, list):
            if len(context) != len(self._context):
                error = errors.InputError(
                    f"{len(self._context)} numbers are needed for {self._context}, "
                    f"but got {len(context)}"
                )
                error.field = "context"
                raise error
            context = dict(zip(self._context, context, strict=True))
        return {name: repr(number) for name, number in context.items()}

    def cells(self, along: Any, parts: int, at: Plain | None) -> Call:
        """What is known in parts of one or two contexts."""
        names = [] if along is None else [along] if isinstance(along, str) else list(along)
        query: dict[str, Any] = {} if at is None else dict(self._query(at))
        return Call("GET", f"{self._here}/cells", query=query | {"along": names, "parts": parts})

    @staticmethod
    def all_cells(answer: dict[str, Any]) -> list[Cell]:
        """The cells of an answer."""
        return [
            Cell(
                where={name: Between(*ends) for name, ends in one["segment"].items()},
                context=_array(one["context"]),
                best=_array(one["best"]),
                today=_array(one["today"]),
                peak=None if one["peak"] is None else list(one["peak"].values()),
                peak_error=None if one["error"] is None else list(one["error"].values()),
                **{name: one[name] for name in AS_SAID},
            )
            for one in answer["cells"]
        ]

    def steer(self, verb: str) -> Call:
        """Pause, or resume."""
        return self._post(verb)

    def freeze(self, verb: str, what: Any) -> Call:
        """Freeze a segment or a bin, or unfreeze it."""
        if isinstance(what, Segment | Mapping):
            return self._post(verb, {"segment": segment_of(what)})
        with about("bin"):
            number = what.id if isinstance(what, Bin) else what
            if not isinstance(number, int) or isinstance(number, bool) or number < 0:
                raise errors.InputError(
                    f'a segment, such as {{"hour": (18, 24)}}, or the number of a bin is needed, '
                    f"but got {what!r}"
                )
        return self._post(f"bins/{number}/{verb}")

    @staticmethod
    def frozen(answer: dict[str, Any]) -> list[Segment | int]:
        """What is frozen of an experiment as it is: segments, and numbers of bins."""
        found = answer["frozen"]
        return [*map(_segment, found["segments"]), *found["bins"]]

    @staticmethod
    def segment(call: Call, answer: dict[str, Any]) -> Segment | None:
        """The segment that is frozen now; None: it was a bin."""
        if call.body is None:
            return None
        return _segment(answer.get("segment", call.body | {"asked": 0, "at": 0.0}))

    @staticmethod
    def decision(context: Plain, answer: dict[str, Any]) -> Decision:
        """The decision of an answer."""
        names, value = tuple(answer["decision"]), list(answer["decision"].values())
        point, numbers = array_of(context), np.array(value, np.float64)
        return Decision(id_of(answer["id"]), point, numbers, names, None, answer["role"])

    @staticmethod
    def decisions(rows: list[Plain], answers: list[dict[str, Any]]) -> Decisions:
        """The decisions of answers, if every one is a decision."""
        every = [one for answer in answers for one in answer["decisions"]]
        refusals = [one["refused"] for one in every if "refused" in one]
        if refusals:
            raise refused(0, refusals[0])
        points = np.array([array_of(row) for row in rows], float)
        values = [list(one["decision"].values()) for one in every]
        ids = np.array([id_of(one["id"]) for one in every], object)  # too large for a machine
        roles = tuple(one["role"] for one in every)
        return Decisions(ids, points, np.array(values, float), None, roles)

    @staticmethod
    def best(answer: dict[str, Any]) -> Array:
        """The decision of a recommendation."""
        return np.array(list(answer["decision"].values()), np.float64)


def refused(status: int, answer: Any) -> errors.ContinuarmError:
    """What an answer that is none means."""
    word, message = answer.get("error", ""), answer.get("message", f"status {status}")
    error = BY_WORD.get(word, errors.InputError)(message)
    error.field = answer.get("field")
    return error


def _segment(plain: dict[str, Any]) -> Segment:
    where = {name: Between(*ends) for name, ends in plain["segment"].items()}
    return Segment(where, plain["asked"], plain["at"])


def _parts(rows: list[Any]) -> Iterator[list[Any]]:
    return (rows[k : k + AT_ONCE] for k in range(0, len(rows), AT_ONCE))


def _key() -> str:
    return secrets.token_urlsafe(16)


def _paid(decision: Decision | int | str, payoff: float, value: Plain | None) -> dict[str, Any]:
    body: dict[str, Any] = {"id": text_of(_id(decision)), "payoff": payoff}
    return body if value is None else body | {"value": value}


def _id(decision: Decision | int | str) -> int:
    return number_of(decision.id if isinstance(decision, Decision) else decision)


def _array(named: dict[str, float]) -> Array:
    return np.array(list(named.values()), np.float64)
