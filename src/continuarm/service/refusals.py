"""Which error is which status: one table, and one shape."""

import msgspec

from continuarm import errors
from continuarm.service.fields import field_of
from continuarm.service.messages import Refusal
from continuarm.service.tokens import ForbiddenError, TooManyError, UnauthorisedError

__all__ = ["GoneError", "TooBusyError", "TooLargeError", "ending", "refusal_of", "status_of"]


class TooLargeError(errors.ContinuarmError):
    """A request is larger than it may be."""


class TooBusyError(errors.UnavailableError):
    """Too much is under way already, or it takes too long: try again."""


class GoneError(errors.ContinuarmError):
    """Nobody waits for the answer any more."""


def ending() -> errors.UnavailableError:
    """What is said when the process ends before an answer is there."""
    return errors.UnavailableError(
        "a server must go on to answer, but this one ends: ask again, with the same key"
    )


# The first that fits counts: a class stands before those that it inherits from.
TABLE: tuple[tuple[type[Exception], int, str], ...] = (
    (UnauthorisedError, 401, "unauthorised"),
    (ForbiddenError, 403, "forbidden"),
    (TooManyError, 429, "too-many"),
    (TooLargeError, 413, "too-large"),
    (msgspec.ValidationError, 400, "malformed"),
    (msgspec.DecodeError, 400, "malformed"),
    (UnicodeDecodeError, 400, "malformed"),
    (errors.AlreadyToldError, 409, "closed-before"),
    (errors.ExpiredDecisionError, 409, "expired"),
    (errors.UnknownDecisionError, 404, "unknown-decision"),
    (errors.UnknownExperimentError, 404, "unknown-experiment"),
    (errors.ExperimentConflictError, 409, "conflict"),
    (GoneError, 499, "gone"),
    (TooBusyError, 503, "busy"),
    (errors.UnavailableError, 503, "unavailable"),
    (errors.StoreError, 503, "unavailable"),
    (errors.KeyConflictError, 409, "key-conflict"),
    (errors.UnknownBinError, 404, "unknown-bin"),
    (errors.SegmentConflictError, 409, "segment-conflict"),
    (errors.InputError, 422, "invalid"),
    (errors.SettingsError, 422, "invalid"),
    (errors.ContinuarmError, 500, "failed"),
)


def status_of(error: Exception) -> int:
    """The status of an error."""
    return _row(error)[0]


def refusal_of(error: Exception) -> Refusal:
    """An error as it is said."""
    return Refusal(_row(error)[1], str(error), field_of(error))


def _row(error: Exception) -> tuple[int, str]:
    for kind, status, word in TABLE:
        if isinstance(error, kind):
            return status, word
    raise error
