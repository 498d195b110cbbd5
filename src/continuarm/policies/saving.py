"""A policy's whole state as a header and arrays, and back."""

from typing import Any

import numpy as np

from continuarm import jit, saved_file
from continuarm.box import Box
from continuarm.engine import Engine
from continuarm.errors import SavedFileError, SettingsError
from continuarm.policies.open_decisions import ASKED_AT, TTL, VALUE, OpenDecisions

__all__ = ["gathered", "restore"]

STATE = ("nodes", "rows", "pool")


def gathered(policy: Any) -> tuple[dict[str, Any], saved_file.Arrays]:
    """All of a policy, copied: the caller, who holds its lock, can let go before it is written."""
    opened: OpenDecisions = policy._open
    waiting = opened.waiting
    header = {
        "policy": type(policy).__name__,
        "context": policy.context.__getstate__(),
        "decision": policy.decision.__getstate__(),
        "settings": policy.settings,
        "tokens": opened.tokens,
        "rng": _random_state(policy._rng),
        "open": [opened.next_id, opened.oldest, opened.now if np.isfinite(opened.now) else None],
        "engine": None,
    }
    dx, dy, n = policy.context.dim, policy.decision.dim, len(waiting)
    arrays: saved_file.Arrays = {
        "start": policy._start,
        "ids": np.array(list(waiting), np.int64),
        "slots": np.array([d[:2] for d in waiting.values()], np.int64).reshape(n, 2),
        "x": np.array([d[2] for d in waiting.values()]).reshape(n, dx),
        "y": np.array([d[3] for d in waiting.values()]).reshape(n, dy),
        "values": np.array([d[VALUE] for d in waiting.values()]).reshape(n, dy),
        "asked_at": np.array([d[ASKED_AT] for d in waiting.values()], np.float64),
        "held": np.array(list(opened.held), np.int64),
        "held_payoffs": np.array(list(opened.held.values()), np.float64),
    }
    engine: Engine | None = policy._engine
    if engine is not None:
        parts = engine.pcfg, engine.lcfg
        header["engine"] = [(type(cfg).__name__, jit.plain(cfg)) for cfg in parts]
        arrays |= {name: getattr(engine, name).copy() for name in STATE}
    return header, arrays


def restore(kind: type, header: dict[str, Any], arrays: saved_file.Arrays) -> Any:
    """The policy of a file that was read; what does not fit together is refused."""
    try:
        policy = _restored(kind, header, arrays)
        _check(policy)
    except SavedFileError:
        raise
    except (KeyError, TypeError, ValueError, IndexError, AttributeError) as error:
        raise SavedFileError(
            f"the parts of a saved file must fit together, but got {type(error).__name__}: {error}"
        ) from error
    return policy


def _check(policy: Any) -> None:
    """Tickets index arrays in compiled code, which does not look."""
    engine: Engine | None = policy._engine
    for id_, (row, ticket, x, y, value, _) in policy._open.waiting.items():
        shapes = (x.shape, y.shape, value.shape)
        fits = shapes == ((policy.context.dim,), (policy.decision.dim,), (policy.decision.dim,))
        if engine is None or not fits or not 0 <= id_ < policy._open.next_id:
            raise SavedFileError(f"decision {id_} must be of the saved policy, but is not")
        if not engine.holds(row, ticket):
            raise SavedFileError(
                f"decision {id_} must have a place, but got row {row}, ticket {ticket}"
            )


def _restored(kind: type, header: dict[str, Any], arrays: saved_file.Arrays) -> Any:
    settings = header["settings"]
    opened = OpenDecisions(settings.get("ttl", TTL), settings.get("ttl_seconds"))
    opened.next_id, opened.oldest, now = header["open"]
    opened.now = -np.inf if now is None else now
    for k, id_ in enumerate(arrays["ids"].tolist()):
        row, ticket = arrays["slots"][k].tolist()
        x, y, value = (arrays[name][k].copy() for name in ("x", "y", "values"))
        opened.waiting[id_] = (row, ticket, x, y, value, float(arrays["asked_at"][k]))
    opened.held = dict(zip(arrays["held"].tolist(), arrays["held_payoffs"].tolist(), strict=True))
    opened.tokens = [(first, token) for first, token in header["tokens"]]
    opened.new_token()
    engine = None
    if header["engine"] is not None:
        pcfg, lcfg = (_configured(*saved) for saved in header["engine"])
        engine = Engine(pcfg, lcfg, arrays["start"])
        for name in STATE:
            if arrays[name].shape[1:] != getattr(engine, name).shape[1:]:
                raise SavedFileError(
                    f"the file's {name} must have rows of {getattr(engine, name).shape[1]} "
                    f"numbers, but got {arrays[name].shape}"
                )
            setattr(engine, name, arrays[name])
    policy: Any = object.__new__(kind)
    policy.__setstate__(
        {
            "context": Box(*header["context"]),
            "decision": Box(*header["decision"]),
            "settings": settings,
            "missing": settings.get("missing"),
            "_start": arrays["start"],
            "_rng": _generator(header["rng"]),
            "_engine": engine,
            "_open": opened,
        }
    )
    return policy


def _configured(name: str, fields: dict[str, Any]) -> Any:
    kind = jit.registered(name)
    if kind is None or set(kind._fields) != set(fields):  # type: ignore[attr-defined]
        raise SavedFileError(f"the file's parts must be known here, but got {name}({fields})")
    return kind(
        **{k: np.array(v, np.float64) if isinstance(v, list) else v for k, v in fields.items()}
    )


def _random_state(rng: np.random.Generator) -> dict[str, Any]:
    state = dict(rng.bit_generator.state)
    if not issubclass(getattr(np.random, state["bit_generator"], int), np.random.BitGenerator):
        raise SettingsError(
            f"`rng` must use a bit generator of numpy to be saved, but got {rng.bit_generator!r}"
        )
    plain: dict[str, Any] = _plain(state)
    return plain


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, np.ndarray):
        return {"array": [int(number) for number in value], "dtype": value.dtype.str}
    return int(value) if isinstance(value, np.integer) else value


def _unplain(value: Any) -> Any:
    if not isinstance(value, dict):
        return value
    if set(value) == {"array", "dtype"}:
        return np.array(value["array"], value["dtype"])
    return {key: _unplain(item) for key, item in value.items()}


def _generator(state: dict[str, Any]) -> np.random.Generator:
    kind = getattr(np.random, state["bit_generator"])
    rng = np.random.Generator(kind())
    rng.bit_generator.state = _unplain(state)
    return rng
