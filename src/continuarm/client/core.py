"""What both clients do: which request a verb is, and what an answer means. No network here."""

import secrets
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple
from urllib.parse import quote

import numpy as np

from continuarm import errors
from continuarm.core.compiling import Array
from continuarm.ledger.entries import id_of, text_of
from continuarm.live.decision import Decision, Decisions
from continuarm.numbers import names_of

__all__ = ["AWAY", "Call", "Talk", "plain_of", "refused"]

AWAY = {429, 502, 503, 504}  # statuses of a service that may answer later
AT_ONCE = 1000  # in a batch
BY_WORD: dict[str, type[errors.ContinuarmError]] = {
    "closed-before": errors.AlreadyToldError,
    "expired": errors.ExpiredDecisionError,
    "unknown-bin": errors.UnknownBinError,
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

    def options(self, timeout: float) -> dict[str, Any]:
        """As `httpx` takes it."""
        where = {"method": self.method, "url": self.path}
        return where | {"json": self.body, "params": self.query, "timeout": timeout}


class Talk:
    """Requests and answers of one experiment."""

    def __init__(self, experiment: str) -> None:
        self._here = f"/v1/experiments/{quote(experiment, safe='')}"

    def _post(self, verb: str, body: dict[str, Any] | None = None) -> Call:
        return Call("POST", f"{self._here}/{verb}", body)

    def ask(self, context: Any, within: Any, key: str | None) -> Call:
        """A decision; with a key always, so that a second try is none."""
        body = {"context": plain_of(context), "key": key or _key()}
        if within is not None:
            body["within"] = {name: list(map(float, pair)) for name, pair in within.items()}
        return self._post("decisions", body)

    def ask_many(self, contexts: Any) -> list[Call]:
        """Decisions, a thousand at a time."""
        rows = _rows(contexts)
        return [
            self._post("decisions", {"contexts": part, "keys": [_key() for _ in part]})
            for part in _parts(rows)
        ]

    def tell(self, decision: Decision | int, payoff: float, value: Any) -> Call:
        """A payoff."""
        return self._post("payoffs", _paid(decision, payoff, value))

    def tell_many(
        self, decisions: Decisions | Sequence[Any], payoffs: Any, values: Any
    ) -> list[Call]:
        """Payoffs, a thousand at a time."""
        ids = decisions.ids if isinstance(decisions, Decisions) else decisions
        done = [None] * len(ids) if values is None else values
        told = [_paid(*one) for one in zip(ids, payoffs, done, strict=True)]
        return [self._post("payoffs", {"payoffs": part}) for part in _parts(told)]

    @staticmethod
    def all_closed(answers: list[dict[str, Any]]) -> None:
        """Raise why the first of all was refused, if one was."""
        for answer in answers:
            for one in answer["closed"]:
                if not one["done"]:
                    raise refused(0, one["refused"])

    def forget(self, decision: Decision | int) -> Call:
        """That there will be none."""
        return self._post("forget", {"id": text_of(_id(decision))})

    def forget_answer(self, answer: dict[str, Any]) -> Call:
        """The same for what was answered."""
        return self._post("forget", {"id": answer["id"]})

    def forget_all(self, ids: list[str]) -> Call:
        """The same for several."""
        return self._post("forget", {"ids": ids})

    def recommend(self, context: Any) -> Call:
        """The best decision known."""
        return Call("GET", f"{self._here}/recommendation", query=_query(context))

    def explain(self, what: Any) -> Call:
        """Why a decision was made, or what is best for a context."""
        if isinstance(what, Decision):
            return Call("GET", f"{self._here}/explain/{text_of(_id(what))}")
        return Call("GET", f"{self._here}/explain", query=_query(what))

    def steer(self, verb: str) -> Call:
        """Pause, or resume."""
        return self._post(verb)

    @staticmethod
    def decision(context: Any, answer: dict[str, Any]) -> Decision:
        """The decision of an answer."""
        names, plain = tuple(answer["decision"]), plain_of(context)
        numbers = list(plain.values()) if isinstance(plain, dict) else plain
        value = np.array(list(answer["decision"].values()), np.float64)
        point = np.array(numbers, np.float64)
        return Decision(id_of(answer["id"]), point, value, names, None, answer["role"])

    @staticmethod
    def decisions(
        contexts: Any, answers: list[dict[str, Any]], forget: Callable[[list[str]], None]
    ) -> Decisions:
        """The decisions of answers; if one is none, the others are forgotten."""
        every = [one for answer in answers for one in answer["decisions"]]
        refusals = [one["refused"] for one in every if "refused" in one]
        if refusals:
            for part in _parts([one["id"] for one in every if "id" in one]):
                forget(part)
            raise refused(0, refusals[0])
        rows = [list(row.values()) if isinstance(row, dict) else row for row in _rows(contexts)]
        values = [list(one["decision"].values()) for one in every]
        ids = np.array([id_of(one["id"]) for one in every], object)  # too large for a machine
        roles = tuple(one["role"] for one in every)
        return Decisions(ids, np.array(rows, float), np.array(values, float), None, roles)

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


def plain_of(given: Any) -> Any:
    """A context or a decision as JSON has it."""
    if isinstance(given, Mapping):
        return {str(name): float(number) for name, number in given.items()}
    names = names_of(given)
    if names is not None:
        raise errors.InputError(f"a dictionary or a sequence is needed, but got {given!r}")
    return [float(number) for number in np.asarray(given, np.float64).ravel()]


def _rows(contexts: Any) -> list[Any]:
    """Contexts one by one: rows of an array, dictionaries, or a dictionary of columns."""
    if isinstance(contexts, Mapping):
        rows = zip(*contexts.values(), strict=True)
        return [dict(zip(contexts, map(float, row), strict=True)) for row in rows]
    return [plain_of(context) for context in contexts]


def _parts(rows: list[Any]) -> Iterator[list[Any]]:
    return (rows[k : k + AT_ONCE] for k in range(0, len(rows), AT_ONCE))


def _query(context: Any) -> dict[str, str]:
    plain = plain_of(context)
    by_name = plain if isinstance(plain, dict) else dict(enumerate(plain))
    return {str(name): repr(number) for name, number in by_name.items()}


def _key() -> str:
    return secrets.token_urlsafe(16)


def _paid(decision: Decision | int, payoff: float, value: Any) -> dict[str, Any]:
    body: dict[str, Any] = {"id": text_of(_id(decision)), "payoff": float(payoff)}
    return body if value is None else body | {"value": plain_of(value)}


def _id(decision: Decision | int) -> int:
    id_ = decision.id if isinstance(decision, Decision) else decision
    if isinstance(id_, bool) or not isinstance(id_, int) or id_ < 0:
        raise errors.UnknownDecisionError(
            f"a Decision or its number is needed, but got {decision!r}"
        )
    return id_
