"""What both clients do: which request a verb is, and what an answer means. No network here."""

import secrets
from collections.abc import Mapping
from typing import Any, NamedTuple
from urllib.parse import quote

import numpy as np

from continuarm import errors
from continuarm.core.compiling import Array
from continuarm.ledger.entries import id_of, text_of
from continuarm.live.decision import Decision
from continuarm.numbers import names_of

__all__ = ["AWAY", "Call", "Talk"]

AWAY = {502, 503, 504}  # statuses of a service that may answer later
BY_WORD: dict[str, type[errors.ContinuarmError]] = {
    "closed-before": errors.AlreadyToldError,
    "expired": errors.ExpiredDecisionError,
    "unknown-decision": errors.UnknownDecisionError,
    "unknown-experiment": errors.UnknownExperimentError,
    "conflict": errors.ExperimentConflictError,
    "key-conflict": errors.KeyConflictError,
    "unavailable": errors.UnavailableError,
}


class Call(NamedTuple):
    """A request."""

    method: str
    path: str
    body: dict[str, Any] | None = None
    query: dict[str, Any] | None = None


class Talk:
    """Requests and answers of one experiment."""

    def __init__(self, experiment: str) -> None:
        self._here = f"/v1/experiments/{quote(experiment, safe='')}"

    def ask(self, context: Any, within: Any, key: str | None) -> Call:
        """A decision; with a key always, so that a second try is none."""
        body = {"context": _plain(context), "key": key or secrets.token_urlsafe(16)}
        if within is not None:
            body["within"] = {name: list(map(float, pair)) for name, pair in within.items()}
        return Call("POST", f"{self._here}/decisions", body)

    def tell(self, decision: Decision | int, payoff: float, value: Any) -> Call:
        """A payoff."""
        body: dict[str, Any] = {"id": text_of(_id(decision)), "payoff": payoff}
        if value is not None:
            body["value"] = _plain(value)
        return Call("POST", f"{self._here}/payoffs", body)

    def forget(self, decision: Decision | int) -> Call:
        """That there will be none."""
        return Call("POST", f"{self._here}/forget", {"id": text_of(_id(decision))})

    def recommend(self, context: Any) -> Call:
        """The best decision known."""
        plain = _plain(context)
        by_name = plain if isinstance(plain, dict) else dict(enumerate(plain))
        query = {str(name): repr(number) for name, number in by_name.items()}
        return Call("GET", f"{self._here}/recommendation", query=query)

    @staticmethod
    def decision(context: Any, answer: dict[str, Any]) -> Decision:
        """The decision of an answer."""
        names, plain = tuple(answer["decision"]), _plain(context)
        numbers = list(plain.values()) if isinstance(plain, dict) else plain
        value = np.array(list(answer["decision"].values()), np.float64)
        point = np.array(numbers, np.float64)
        return Decision(id_of(answer["id"]), point, value, names, None, answer["role"])

    @staticmethod
    def best(answer: dict[str, Any]) -> Array:
        """The decision of a recommendation."""
        return np.array(list(answer["decision"].values()), np.float64)


def refused(status: int, answer: Any) -> errors.ContinuarmError:
    """What an answer that is none means."""
    word, message = answer.get("error", ""), answer.get("message", f"status {status}")
    return BY_WORD.get(word, errors.InputError)(message)


def _plain(given: Any) -> Any:
    """A context or a decision as JSON has it."""
    if isinstance(given, Mapping):
        return {str(name): float(number) for name, number in given.items()}
    names = names_of(given)
    if names is not None:
        raise errors.InputError(f"a dictionary or a sequence is needed, but got {given!r}")
    return [float(number) for number in np.asarray(given, np.float64).ravel()]


def _id(decision: Decision | int) -> int:
    id_ = decision.id if isinstance(decision, Decision) else decision
    if isinstance(id_, bool) or not isinstance(id_, int) or id_ < 0:
        raise errors.UnknownDecisionError(
            f"a Decision or its number is needed, but got {decision!r}"
        )
    return id_
