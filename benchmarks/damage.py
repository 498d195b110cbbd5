"""Saved files as an attacker would edit them: arrays and header changed, the checksum right."""

import copy
import json
import math
from collections.abc import Callable
from typing import Any

import numpy as np

import continuarm as ca
from continuarm.live.named.by_name import maker_of

__all__ = ["POLICIES", "Parts", "damaged", "put_together", "saved_parts", "taken_apart"]

POLICIES: dict[str, dict[str, Any]] = {
    "recommended": {},
    "recommended reach=None": {"reach": None},
    "terms that enter": {},
    "smooth surface": {},
    "static-kwsa": {},
    "adaptive-kwsa": {},
    "uniform-ucb": {},
    "robbins-monro": {},
    "spaced": {},
    "coupled": {},
}
GUARDED = ("spaced", "coupled")  # the recommended one, with allowed values or coupled limits
LIMITS = (["a + b <= 12", "a <= b + 3"], ["a + b == 10"], ["a <= b - 0.5", "b <= 2 * a"])
NO_MOVES = ("static-kwsa", "adaptive-kwsa", "uniform-ucb")  # these refuse `max_move`
KNOWN = {"horizon": 400, "curvature": 1.0, "curvature_max": 4.0}
SHAPES = ((1, 1), (2, 2), (0, 1))
WAITING: tuple[dict[str, Any], ...] = (
    {"ttl": 60},
    {"ttl_seconds": 1e6},
    {"ttl": 40, "missing": 0.0, "share": 0.3},
    {"ttl": None, "share": 0.1, "max_move": 0.8},
)

USED = (  # by compiled code
    *("counts", "nodes", "rows", "pool", "seats"),
    *("reference_counts", "reference_nodes", "reference_rows"),
    *("then0_counts", "then0_nodes", "then0_rows"),
)
SUMS = ("notes", "history", "tally")  # over a whole life: for diagnoses, figures and the uplift

Header = dict[str, Any]
Arrays = dict[str, Any]
Parts = tuple[dict[str, Any], Header, Arrays]
Change = Callable[[np.random.Generator, Parts], None]

NUMBERS = (0, 1, -1, 2, 3, 7, 8, 100, 999, 1e5, 1e6, 1e9, 2**31, 2**53, 2**63, 1e18, 1e100, 1e300)
FLOATS = (
    *NUMBERS,
    0.5,
    -0.0,
    1e-300,
    5e-324,
    1.7e308,
    -1e9,
    -1e300,
    math.nan,
    math.inf,
    -math.inf,
)
ODD: tuple[Any, ...] = (None, True, "", "a", [], {}, [[]], "ff" * 40, [1, 2], {"kind": 1}, -1.5)
KINDS = ("Grid", "Tree", "EvidenceTree", "KieferWolfowitz", "GradientAscent", "GridUCB", "Nobody")


def saved_parts(name: str, number: int) -> Parts:
    """What the file of a policy has in it that has learned a while and has open decisions."""
    rng = np.random.default_rng(number)
    dx, dy = SHAPES[number % len(SHAPES)]
    waiting = WAITING[number % len(WAITING)]
    if name == "robbins-monro":
        waiting = {k: v for k, v in waiting.items() if k != "missing"}
    if name in NO_MOVES:
        waiting = {k: v for k, v in waiting.items() if k != "max_move"}
    box = ca.Box.unit(dx), _decision(name, dy, number)
    policy = _made(name, box, waiting | POLICIES[name], number)
    for k in range(int(rng.integers(1, 400))):
        decision = policy.ask(rng.random(dx), now=float(k)) if dx else policy.ask(now=float(k))
        fate = rng.random()
        slope = {"gradient": -decision.value} if policy.uses_gradient else {}
        if fate < 0.8:
            policy.tell(
                decision, float(-((decision.value - 3.0) ** 2).sum() + rng.normal()), **slope
            )
        elif fate < 0.9:
            policy.forget(decision)
        elif fate > 0.97 and policy.max_move is not None:
            policy.renew_reference()
    if number % 2 and policy.life.model.stands_alone and policy.bins():
        policy.freeze(_one(rng, policy.bins()))
    if number % 3 and dx and policy.life.model.stands_alone:
        policy.freeze({"0": (0.2, 0.7)})
    shell = policy.__getstate__()
    header, arrays = taken_apart(shell.pop("state"))
    return json.loads(json.dumps(shell)), header, arrays


def _decision(name: str, dy: int, number: int) -> ca.Box:
    box = ca.Box([1.0] * dy, [9.0] * dy)
    if name not in GUARDED:
        return box
    steps = 0.5 if name == "spaced" or dy == 1 else (0.0, 0.25 * (number % 2))
    box = ca.Box([1.0] * dy, [9.0] * dy, names=["a", "b"][:dy], spacing=steps)
    if name == "spaced":
        return box
    return ca.Polytope(box, ["a <= 6.2"] if dy == 1 else LIMITS[number // 3 % len(LIMITS)])


def _made(
    name: str, boxes: tuple[ca.Box, ca.Box], options: dict[str, Any], number: int
) -> ca.Policy:
    if name == "smooth surface":  # few columns, so that most numbers of a row are not of them
        few = ca.SmoothSurface(columns=14)
        return ca.Policy(*boxes, partition=ca.Grid(1), learner=few, rng=number, **options)
    if name != "terms that enter":
        kind = "recommended" if name in GUARDED else name.split()[0]
        made: ca.Policy = maker_of(kind)(*boxes, KNOWN | {"rng": number}, options)
        return made
    steady: dict[str, Any] = {"bounded": True, "level": True, "calm": True}
    learner = ca.ResponseSurface(reach=0.1, degree=5, enter_lead=0.5, **steady)
    tree = ca.EvidenceTree()
    return ca.Policy(*boxes, partition=tree, learner=learner, rng=number, **options)


def taken_apart(state: bytes) -> tuple[Header, Arrays]:
    """What a saved state says of itself, and its arrays."""
    text, _, data = state.partition(b"\n")
    header: Header = json.loads(text)
    arrays, start = {}, 0
    for name, dtype, shape in header.pop("arrays"):
        flat = np.frombuffer(data, dtype, math.prod(shape), start)
        arrays[name] = flat.reshape(shape).copy()
        start += flat.nbytes
    return header, arrays


def put_together(header: Header, arrays: Arrays) -> bytes:
    """The inverse; a header with a list of arrays of its own keeps it."""
    listed = [(name, array.dtype.str, array.shape) for name, array in arrays.items()]
    text = json.dumps({"arrays": listed} | header)
    return text.encode() + b"\n" + b"".join(array.tobytes() for array in arrays.values())


def damaged(parts: Parts, rng: np.random.Generator) -> tuple[dict[str, Any], bytes]:
    """A copy with one to three changes: the shell and the state of a file."""
    shell, header, arrays = copy.deepcopy(parts)
    for _ in range(int(rng.integers(1, 4))):
        change = CHANGES[int(rng.integers(len(CHANGES)))]
        change(rng, (shell, header, arrays))
    return shell, put_together(header, arrays)


def _one(rng: np.random.Generator, of: Any) -> Any:
    return of[int(rng.integers(len(of)))]


def _array(rng: np.random.Generator, parts: Parts) -> tuple[str, Any]:
    """An array, mostly one that compiled code uses, or sums."""
    arrays, kind = parts[2], rng.random()
    names = [name for name in (USED if kind < 0.7 else SUMS) if name in arrays]
    name = _one(rng, names if kind < 0.85 and names else list(arrays))
    return name, arrays[name]


def _number(rng: np.random.Generator, kind: str) -> Any:
    if rng.random() < 0.5:
        return rng.integers(-2, 12) if kind == "i" else int(rng.integers(0, 12))
    return _one(rng, FLOATS)


def _put(array: Any, at: int, value: Any) -> None:
    with np.errstate(all="ignore"):
        if array.dtype.kind in "iu":
            small = value if math.isfinite(value) and abs(value) < 2.0**62 else 2**62
            value = abs(int(small)) if array.dtype.kind == "u" else int(small)
        array.reshape(-1)[at] = value


def set_number(rng: np.random.Generator, parts: Parts) -> None:
    """One number of an array becomes another."""
    _, array = _array(rng, parts)
    if array.size:
        _put(array, int(rng.integers(array.size)), _number(rng, array.dtype.kind))


def set_small(rng: np.random.Generator, parts: Parts) -> None:
    """One of the first numbers of a row, where indices, lengths and links stand."""
    _, array = _array(rng, parts)
    if array.size and array.ndim == 2:
        row, column = int(rng.integers(len(array))), int(rng.integers(min(8, array.shape[1])))
        _put(array, row * array.shape[1] + column, _number(rng, array.dtype.kind))


def set_link(rng: np.random.Generator, parts: Parts) -> None:
    """Whole numbers kept as int64 in an array of floats."""
    _, array = _array(rng, parts)
    if array.size and array.dtype.kind == "f":
        links = array.reshape(-1).view(np.int64)
        links[int(rng.integers(array.size))] = int(rng.integers(-2, 40))


def nudge(rng: np.random.Generator, parts: Parts) -> None:
    """A number becomes one more or less: nearly right."""
    _, array = _array(rng, parts)
    if array.size:
        at, by = int(rng.integers(array.size)), int(_one(rng, (-1, 1, 2)))
        if array.dtype.kind == "f" and rng.random() < 0.3:
            links = array.reshape(-1).view(np.int64)
            links[at] = links[at] + by
        elif array.dtype.kind != "u":
            array.reshape(-1)[at] = array.reshape(-1)[at] + by


def nudge_small(rng: np.random.Generator, parts: Parts) -> None:
    """The same where indices, lengths and links stand."""
    _, array = _array(rng, parts)
    if array.size and array.ndim == 2 and array.dtype.kind == "f":
        row, column = int(rng.integers(len(array))), int(rng.integers(min(8, array.shape[1])))
        array[row, column] += int(_one(rng, (-1, 1, 2)))


def swap_seats(rng: np.random.Generator, parts: Parts) -> None:
    """Open decisions exchange their places, or share one."""
    seats = parts[2].get("seats")
    if seats is not None and seats.ndim == 2 and len(seats) and seats.shape[1] > 1:
        a, b = rng.integers(seats.shape[1], size=2)
        if rng.random() < 0.5:
            seats[:, a] = seats[:, b]
        else:
            seats[0, a], seats[0, b] = seats[0, b], seats[0, a]
    if seats is not None and seats.ndim == 2 and seats.size and rng.random() < 0.3:
        tickets = (-1, -2, -3, 0, 1 << 20, -(1 << 20))
        seats[-1, int(rng.integers(seats.shape[1]))] = _one(rng, tickets)


def swap_numbers(rng: np.random.Generator, parts: Parts) -> None:
    """Two numbers of an array change places."""
    _, array = _array(rng, parts)
    if array.size:
        a, b = rng.integers(array.size, size=2)
        flat = array.reshape(-1)
        flat[a], flat[b] = flat[b], flat[a]


def copy_row(rng: np.random.Generator, parts: Parts) -> None:
    """One row of an array becomes another's: links twice, cycles."""
    _, array = _array(rng, parts)
    if len(array) > 1:
        a, b = rng.integers(len(array), size=2)
        array[a] = array[b]


def reshape(rng: np.random.Generator, parts: Parts) -> None:
    """Rows cut off or added, columns cut off, another dtype."""
    name, array = _array(rng, parts)
    kind = int(rng.integers(5))
    if kind == 0:
        array = array[: int(rng.integers(0, len(array) + 1))]
    elif kind == 1:
        array = np.concatenate([array, array])
    elif kind == 2 and array.ndim == 2:
        array = array[:, : int(rng.integers(0, array.shape[1] + 1))]
    elif kind == 3:
        array = array.view(np.int64 if array.dtype.kind == "f" else np.float64)
    else:
        array = array.reshape(-1)
    parts[2][name] = np.ascontiguousarray(array)


def huge(rng: np.random.Generator, parts: Parts) -> None:
    """All numbers of a column, or of an array, are far too large, or none."""
    _, array = _array(rng, parts)
    value = _one(rng, FLOATS)
    if array.size and array.dtype.kind == "f":
        if array.ndim == 2 and rng.random() < 0.7:
            array[:, int(rng.integers(array.shape[1]))] = value
        else:
            array[...] = value


def drop(rng: np.random.Generator, parts: Parts) -> None:
    """A part is missing."""
    part = parts[int(rng.integers(3))]
    if part and rng.random() < 0.2:
        del part[_one(rng, list(part))]


def header_value(rng: np.random.Generator, parts: Parts) -> None:
    """A value of the header, or below one, is another."""
    _replace(rng, parts[1])


def shell_value(rng: np.random.Generator, parts: Parts) -> None:
    """The same of the shell."""
    _replace(rng, parts[0])


def _replace(rng: np.random.Generator, value: Any) -> None:
    """Go down into a value and replace something."""
    while isinstance(value, dict | list) and len(value):
        keys = list(value) if isinstance(value, dict) else list(range(len(value)))
        key = _one(rng, keys)
        below = value[key]
        if not isinstance(below, dict | list) or not len(below) or rng.random() < 0.15:
            new = _one(rng, ODD) if rng.random() < 0.4 else _one(rng, FLOATS)
            value[key] = "" if isinstance(new, float) and not math.isfinite(new) else new
            return
        value = below


def box(rng: np.random.Generator, parts: Parts) -> None:
    """A box of other dimensions, up to 100,000, or of other edges."""
    dim = int(_one(rng, (0, 1, 2, 3, 10, 1000, 100_000)))
    low = float(_one(rng, (0.0, -1e300, 1e-300, -1e9)))
    high = float(_one(rng, (1.0, 1e300, 1e9, 5e-324)))
    parts[1][_one(rng, ("context", "decision"))] = [[low] * dim, [high] * dim, None]


def allowed(rng: np.random.Generator, parts: Parts) -> None:
    """What is allowed, nearly right or not: edges, steps, rows, bounds, the anchor."""
    part = parts[1].get("decision")
    for _ in range(4):
        if not isinstance(part, dict | list) or not part:
            return
        key = _one(rng, list(part) if isinstance(part, dict) else range(len(part)))
        if isinstance(part[key], float) and rng.random() < 0.5:
            part[key] += float(_one(rng, (-1.0, 1.0, 1e-9, 0.01, -0.25)))
            return
        if not isinstance(part[key], dict | list):
            _replace(rng, part)
            return
        part = part[key]


def option(rng: np.random.Generator, parts: Parts) -> None:
    """An option of partition or learner, or its kind."""
    part = parts[1].get(_one(rng, ("partition", "learner")))
    if not isinstance(part, dict):
        return
    if rng.random() < 0.2:
        part["kind"] = _one(rng, KINDS)
    elif isinstance(part.get("options"), dict) and part["options"]:
        name = _one(rng, list(part["options"]))
        part["options"][name] = _one(rng, (*NUMBERS, 0.5, 1e-300, 5e-324, *ODD, [3] * 40))


def lists(rng: np.random.Generator, parts: Parts) -> None:
    """What the header says of its arrays."""
    arrays = parts[2]
    listed = [[name, array.dtype.str, list(array.shape)] for name, array in arrays.items()]
    entry = _one(rng, listed)
    kind = int(rng.integers(3))
    if kind == 0:
        entry[1] = _one(rng, ("<f4", "|O", "<i8", "<u8", "<f8", ">f8", "|V8", "U9", ""))
    elif kind == 1 and entry[2]:
        entry[2][0] = _one(rng, (0, -1, 1, 10**6, 2**62, 10**30, 1.5, "3"))
    else:
        entry[0] = _one(rng, ("rows", "nodes", "unknown", ""))
    parts[1]["arrays"] = listed


CHANGES: tuple[Change, ...] = (
    *(
        set_number,
        set_small,
        set_small,
        set_link,
        nudge,
        nudge_small,
        swap_seats,
        swap_numbers,
        copy_row,
        reshape,
        huge,
    ),
    *(drop, header_value, shell_value, box, allowed, option, lists),
)
