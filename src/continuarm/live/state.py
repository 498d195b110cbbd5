"""A life as bytes, and back: one line of JSON, then the bytes of the arrays that it lists.

Equal states have equal bytes. Arrays are written up to what is in use, so that it does not matter
how much room they had.
"""

import json
import math
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import NDArray

from continuarm import checks
from continuarm.box import Box
from continuarm.core import notes
from continuarm.core.compiling import Array
from continuarm.core.fitting import MOST as MOST_COUNTED
from continuarm.core.fitting import misfit
from continuarm.core.learners.protocol import width
from continuarm.core.state import CLOCK, HEAD, ROWS_USED, SERIALS, TEMPLATE, State
from continuarm.errors import SavedFileError, SettingsError
from continuarm.live import registry
from continuarm.live.affine_rule import AffineRule
from continuarm.live.as_it_was import AsItWas, distinct
from continuarm.live.checked_events import check_segment
from continuarm.live.deciding import Beginning, Held
from continuarm.live.events import Paused
from continuarm.live.history import history_of
from continuarm.live.incumbent import Incumbent, incumbent_of
from continuarm.live.inputs import finite
from continuarm.live.life import Life
from continuarm.live.near_reference import life_of, move_of
from continuarm.live.open_decisions import BIN, NUMBER, Open, Waiting
from continuarm.live.segments import edges_of, segment_of
from continuarm.live.uplift import checked_share, tally_of
from continuarm.sets import set_of

__all__ = ["beginning_of", "from_bytes", "has_learned", "parts_of", "to_bytes"]

MOST = int(MOST_COUNTED)
LAST_ID = 2**128 - 2**64  # so that there are numbers left
DTYPES = ("<f8", "<i8", "<u8")
BROKEN = (
    ArithmeticError,
    AttributeError,
    LookupError,
    MemoryError,
    RecursionError,
    TypeError,
    ValueError,
)
Arrays = dict[str, NDArray[Any]]


def to_bytes(life: Life) -> bytes:
    """The whole state of a life."""
    life.count_closed()
    header, arrays = _header(life), _arrays(life)
    listed = [(name, array.dtype.str, array.shape) for name, array in arrays.items()]
    text = json.dumps(header | {"arrays": listed}, allow_nan=False)
    return text.encode() + b"\n" + b"".join(array.tobytes() for array in arrays.values())


def from_bytes(content: bytes) -> Life:
    """The life that `to_bytes` wrote; what does not fit together is refused."""
    with _fitting():
        header, arrays = parts_of(content)
        beginning = _beginning(header, arrays)
        _check_sizes(beginning, arrays)
        life = life_of(beginning)
        _restore(life, header, arrays)
    return life


def beginning_of(content: bytes) -> Beginning:
    """What the life began with that `to_bytes` wrote, whatever can be read of what it learned."""
    with _fitting():
        return _beginning(*parts_of(content))


def has_learned(content: bytes) -> bool:
    """Whether there is more in a state than its beginning."""
    with _fitting():
        header, arrays = parts_of(content)
        counted = arrays["counts"][[CLOCK, SERIALS, TEMPLATE]].any()
        held = header["paused"] or "segments" in header or "reference_rows" in arrays
        return bool(header["asked"] or counted or held)


def parts_of(content: bytes) -> tuple[dict[str, Any], Arrays]:
    """The header and the arrays of a state."""
    with _fitting():
        text, _, data = content.partition(b"\n")
        header: dict[str, Any] = json.loads(text)
        arrays, start = {}, 0
        for name, dtype, shape in header["arrays"]:
            if dtype not in DTYPES:
                raise SavedFileError(f"arrays must be of {DTYPES}, but got {dtype!r}")
            flat = np.frombuffer(data, dtype, math.prod(shape), start)
            arrays[name] = flat.reshape(shape).copy()
            start += flat.nbytes
    return header, arrays


@contextmanager
def _fitting() -> Iterator[None]:
    """Say of whatever breaks that the parts do not fit together."""
    try:
        yield
    except SavedFileError:
        raise
    except BROKEN as error:
        raise SavedFileError(
            f"the parts of a saved state must fit together, but got {type(error).__name__}: "
            f"{error}"
        ) from error


def _header(life: Life) -> dict[str, Any]:
    beginning, opened = life.beginning, life.open
    for part in (beginning.partition, beginning.learner):
        if not registry.is_registered(part):
            raise SettingsError(
                f"a kind must be registered to be saved, but {type(part).__name__} is not: "
                "`continuarm.register`"
            )
    offset = {"clock_offset": life.clock_offset} if life.clock_offset else {}
    return (
        offset
        | _segments(life)
        | {
            "context": beginning.context.__getstate__(),
            "decision": beginning.decision.__getstate__(),
            "partition": registry.to_plain(beginning.partition),
            "learner": registry.to_plain(beginning.learner),
            "waiting": list(beginning.waiting),
            "start_given": beginning.start is not None,
            "asked": opened.asked,
            "next_id": f"{opened.next_id:x}",
            "ids": [f"{id_:x}" for id_ in opened.open],
            "held": [f"{id_:x}" for id_ in opened.held],
            "now": life.now if math.isfinite(life.now) else None,
            "share": beginning.share,
            "max_move": None if beginning.max_move is None else beginning.max_move.tolist(),
            "paused": life.paused,
            "history": [life.history.told, life.history.width, life.history.pauses],
            "line": [f"{id_:x}" for id_ in life.comparison.line],
            "paid": [f"{id_:x}" for id_ in life.comparison.paid],
        }
    )


def _arrays(life: Life) -> Arrays:
    beginning, model, opened = life.beginning, life.model, life.open
    known, n, dx, dy = model.state, len(opened.open), model.dx, model.dy
    columns = list(zip(*opened.open.values(), strict=True)) or [()] * 8
    return _known_then(life) | {
        "start": life.incumbent.numbers.first,
        "by_context": life.incumbent.numbers.slopes,
        "reach": life.limits.reach,
        "key": beginning.key,
        "counts": known.counts,
        "nodes": known.nodes,
        "rows": known.rows[: int(known.counts[ROWS_USED])],
        "pool": known.pool[: int(known.pool[0, 1])],
        "notes": known.notes,
        "seats": np.array(columns[0:2], np.int64).reshape(2, n),
        "contexts": _stacked(columns[2], dx),
        "values": _stacked(columns[3], dy),
        "starts": _stacked(columns[4], dy),
        "at": np.array(columns[5], np.float64),
        "numbers": np.array(columns[6], np.int64),
        "bins": np.array(columns[7], np.int64),
        "held": np.array(list(opened.held.values()), np.float64),
        "asked_per_bin": np.array(life.asked_per_bin, np.int64),
        "theirs": np.array(list(life.comparison.line.values()), np.int64),
        "paid": np.array(list(life.comparison.paid.values()), np.float64),
        "tally": np.array(life.comparison.tally, np.float64),
        "history": np.array(life.history.numbers, np.float64),
    }


def _stacked(points: Sequence[Array], dim: int) -> Array:
    """Points as rows; ten times as quick as `np.array`."""
    flat = np.concatenate(points) if points else np.empty(0)
    return flat.reshape(len(points), dim)


def _segments(life: Life) -> dict[str, Any]:
    """What is frozen, where anything is: by which of those that are known it is answered, and to
    which of them each of these stays near."""
    every = list(distinct(life.segments))
    if not every:
        return {}
    number = {id(one): k for k, one in enumerate(every)}
    listed = [segment.plain() | {"known": number[id(one)]} for segment, one in life.segments]
    near = [None if one.reference is None else number[id(one.reference)] for one in every]
    return {"segments": listed, "near": near}


def _known_then(life: Life) -> Arrays:
    """What answers in segments, and what `max_move` is counted from, if that was renewed."""
    every = {f"then{k}": one for k, one in enumerate(distinct(life.segments))}
    if isinstance(life.reference, AsItWas):
        every["reference"] = life.reference
    return {
        f"{prefix}_{name}": array
        for prefix, one in every.items()
        for name, array in one.arrays().items()
    }


def _restore_known_then(life: Life, header: dict[str, Any], arrays: Arrays) -> None:
    moves = life.beginning.max_move is not None
    life.reference = _restored(life, "reference", arrays)
    if life.reference is not None and not moves:
        raise SavedFileError("a reference is kept where there is a `max_move`, but there is none")
    near, every = header.get("near", []), list[AsItWas]()
    for k in range(len(near)):
        one = _restored(life, f"then{k}", arrays)
        if one is None:
            raise SavedFileError(f"what answers in segment {k} must be there, but is not")
        every.append(one)
    for one, number in zip(every, near, strict=True):
        if number is not None:
            one.reference = every[checks.whole("near", number, 0, len(every) - 1)]
            if not moves or near[number] is not None:
                raise SavedFileError(f"a segment stays near to what was known, but got {near}")
    for given in header.get("segments", []):
        known = every[checks.whole("known", given["known"], 0, len(every) - 1)]
        segment = segment_of(
            {k: v for k, v in given.items() if k != "known"}, life.beginning.context
        )
        check_segment(life, segment.where)
        life.segments += (Held(segment, known),)
    life.edges = edges_of([one.segment for one in life.segments], life.beginning.context)
    if [*map(id, distinct(life.segments))] != [*map(id, every)]:
        raise SavedFileError(f"segments must be answered in their order, but got {near}")


def _restored(life: Life, prefix: str, arrays: Arrays) -> AsItWas | None:
    """What was known at some time; None: nothing was kept."""
    start = f"{prefix}_"
    kept = {n.removeprefix(start): array for n, array in arrays.items() if n.startswith(start)}
    if not kept:
        return None
    kept["reach"] = _reach(life, kept["reach"])
    boxes = life.beginning.context, life.beginning.decision
    return AsItWas.restored(life, kept, _incumbent(*boxes, kept))


def _beginning(header: dict[str, Any], arrays: Arrays) -> Beginning:
    context, decision = Box(*header["context"]), set_of(header["decision"])
    ttl, ttl_seconds, missing = header["waiting"]
    missing = None if missing is None else finite(missing)
    key, given = arrays["key"], checks.flag("start_given", header["start_given"])
    if key.shape != (2,) or key.dtype != np.uint64:
        raise SavedFileError(f"a key of 2 words is needed, but got {key!r}")
    return Beginning(
        context,
        decision,
        registry.from_plain(header["partition"]),
        registry.from_plain(header["learner"]),
        _incumbent(context, decision, arrays) if given else None,
        key,
        Waiting.checked(ttl, ttl_seconds, missing),
        checked_share(header["share"]),
        move_of(header["max_move"], decision),
    )


def _incumbent(context: Box, decision: Box, arrays: Arrays) -> Incumbent:
    """A rule whose numbers are finite wherever it is asked; if a constant, in its box."""
    first, slopes = arrays["start"], arrays["by_context"]
    fits = first.dtype == slopes.dtype == np.float64 and slopes.shape == (
        decision.dim,
        context.dim,
    )
    if not fits or first.shape != (decision.dim,):
        raise SavedFileError(f"a start must fit its boxes, but got {first!r} and {slopes!r}")
    if not slopes.any():
        decision.point(first)
    return incumbent_of(context, decision, AffineRule(first, slopes))


def _check_sizes(beginning: Beginning, arrays: Arrays) -> None:
    """Look at the dimensions before anything is made as large as they say."""
    learner = beginning.learner.configured(beginning.context.dim, beginning.decision.dim)
    wanted, got = HEAD + width(learner), arrays["rows"].shape
    if len(got) != 2 or got[1] != wanted:
        raise SavedFileError(f"the saved rows must have {wanted} numbers, but got {got}")


def _restore(life: Life, header: dict[str, Any], arrays: Arrays) -> None:
    model, state = life.model, State(*(arrays[name] for name in State._fields))
    seats = _seats(arrays["seats"], len(header["ids"]))
    wrong = misfit(model.pcfg, model.lcfg, state, seats)
    if wrong is not None:
        raise SavedFileError(f"a saved state must have {wrong}, but has not")
    if not notes.fits(state.notes, model.dx, model.dy):
        raise SavedFileError(f"notes must be such as were noted, but got {state.notes!r}")
    model.state = state
    if life.beginning.waiting.missing is not None:
        _payoff(life, life.beginning.waiting.missing)
    boxes = life.beginning.context, life.beginning.decision
    life.follow(life.beginning.start or _incumbent(*boxes, arrays))
    life.limits = life.limits._replace(reach=_reach(life, arrays["reach"]))
    ids = [int(text, 16) for text in header["ids"]]
    opened = _opened(life, ids, seats, arrays)
    held = [int(text, 16) for text in header["held"]]
    payoffs = [_payoff(life, payoff) for payoff in arrays["held"].tolist()]
    if not set(held) <= set(ids) or len(set(ids)) < len(ids) or len(set(held)) < len(held):
        raise SavedFileError(f"open decisions must be different, but got {ids} and {held}")
    if held and life.beginning.waiting.missing is None:
        raise SavedFileError(f"payoffs are held where silence is one, but got {held}")
    asked = checks.whole("asked", header["asked"], 0, MOST)
    if any(not 0 <= decision[NUMBER] < asked for decision in opened.values()):
        raise SavedFileError(f"open decisions must be among the {asked} asked, but are not")
    next_id = int(header["next_id"], 16)
    if not max(ids, default=-1) < next_id <= LAST_ID:
        raise SavedFileError(f"the next number must be above {ids}, but is {next_id}")
    life.open.restore(opened, dict(zip(held, payoffs, strict=True)), asked, next_id)
    life.learned_before = asked  # nobody knows any more
    life.now = -math.inf if header["now"] is None else finite(header["now"])
    life.clock_offset = finite(header.get("clock_offset", 0.0))
    counts = arrays["asked_per_bin"]
    fits = counts.ndim == 1 and 1 <= len(counts) <= state.counts[SERIALS] + 1
    unmade = sum(decision[BIN] == 0 for decision in opened.values())
    if not fits or counts.dtype != np.int64 or not ((counts >= 0) & (counts <= MOST)).all():
        raise SavedFileError(f"each bin must have been asked so often, but got {counts!r}")
    if counts[0] < unmade or any(d[BIN] > state.counts[SERIALS] for d in opened.values()):
        raise SavedFileError("open decisions must have been asked of a bin, but were not")
    life.asked_per_bin = counts.tolist()
    _restore_comparison(life, header, arrays)
    _restore_known_then(life, header, arrays)


def _restore_comparison(life: Life, header: dict[str, Any], arrays: Arrays) -> None:
    """What is compared with the incumbent."""
    if checks.flag("paused", header["paused"]):
        life.apply(Paused())
    line, paid = ([int(text, 16) for text in header[name]] for name in ("line", "paid"))
    theirs, payoffs = arrays["theirs"].tolist(), arrays["paid"].tolist()
    distinct = len(set(line)) == len(line) and len(set(paid)) == len(paid)
    known = all(0 <= id_ < life.open.next_id for id_ in line)
    closed = set(paid) <= set(line) and not set(paid) & set(life.open.open)
    if not (distinct and known and closed) or set(theirs) - {0, 1}:
        raise SavedFileError(f"decisions in line must be different and closed, but got {line}")
    tally = arrays["tally"]
    if line and life.beginning.share == 0.0:
        raise SavedFileError(f"decisions are in line where there is a share, but got {line}")
    found = life.comparison
    found.line = OrderedDict((id_, flag == 1) for id_, flag in zip(line, theirs, strict=True))
    found.paid = {id_: _payoff(life, z) for id_, z in zip(paid, payoffs, strict=True)}
    found.tally = tally_of(tally.tolist())
    life.history = history_of(header["history"], arrays["history"].tolist())


def _reach(life: Life, reach: NDArray[Any]) -> NDArray[Any]:
    own = life.limits.reach
    fits = reach.shape == own.shape and reach.dtype == np.float64
    if not fits or not ((reach >= 0.0) & (reach <= 1.0) & ((reach > 0.0) == (own > 0.0))).all():
        raise SavedFileError(f"the reach must be as the learner's, but got {reach!r}")
    return reach


def _payoff(life: Life, payoff: Any) -> float:
    value, largest = finite(payoff), life.model.largest_payoff
    if abs(value) > largest:
        raise SavedFileError(f"a payoff must be within ±{largest:g}, but got {value}")
    return value


def _seats(seats: NDArray[Any], n: int) -> list[tuple[int, int]]:
    """The rows and tickets of open decisions."""
    if seats.shape != (2, n) or seats.dtype != np.int64:
        raise SavedFileError(f"each of {n} open decisions must have a place, but got {seats!r}")
    return [(row, ticket) for row, ticket in seats.T.tolist()]


def _opened(
    life: Life, ids: list[int], seats: list[tuple[int, int]], arrays: Arrays
) -> dict[int, Open]:
    """The open decisions."""
    context, decision = life.beginning.context, life.beginning.decision
    n, opened = len(ids), {}
    boxes = (("contexts", context), ("values", decision), ("starts", decision))
    points = {name: box.points(arrays[name]) for name, box in boxes}
    shapes = [points[name].shape[0] == n for name in points]
    shapes += [arrays[name].shape == (n,) for name in ("at", "numbers", "bins")]
    bins = arrays["bins"]
    shapes += [bins.dtype.kind == "i" and bool((bins >= 0).all()), min(ids, default=0) >= 0]
    if not all(shapes) or not np.isfinite(arrays["at"]).all():
        raise SavedFileError(f"each of {n} open decisions must have all its parts, but has not")
    for k, id_ in enumerate(ids):
        row, ticket = seats[k]
        start, value = points["starts"][k], points["values"][k]
        if life.constant is not None and start.tobytes() == life.constant.tobytes():
            start = life.constant
        value.flags.writeable = False
        at, number, bin_ = (arrays[name][k].item() for name in ("at", "numbers", "bins"))
        opened[id_] = (row, ticket, points["contexts"][k], value, start, at, number, bin_)
    numbers = arrays["numbers"].tolist()
    if numbers != sorted(set(numbers)) or arrays["numbers"].dtype.kind != "i":
        raise SavedFileError(f"open decisions must be in the order of asking, but got {numbers}")
    return opened
