"""Decide from an exported table in plain Python: no numpy, no numba, one file to copy.

reader = Reader(open("table.json").read())
reader.decide({"age": 37, "income": 52000})
"""

import json
import math
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from numbers import Real
from typing import Any

__all__ = ["VERSION", "WITH_SEGMENTS", "WITH_SURFACES", "Reader"]

# readers of before know no segments that are frozen, and then no smooth surfaces
VERSION, WITH_SEGMENTS, WITH_SURFACES = 2, 3, 4
MOST_SEGMENTS = 100
HAS_SEGMENTS = {VERSION: (False,), WITH_SEGMENTS: (True,), WITH_SURFACES: (False, True)}
STILL = 1e-9  # as in the policy itself: a round that moves no coordinate further is the last
ROUNDS = 8
STEPS, SURE = 64, 2.0  # from the start to the peak; standard errors
MOST_CELLS, MOST_DEGREES = 2**24, 16
LEVEL, SLOPES, CURVATURES = "level", "slopes", "curvatures"  # kinds of a surface's groups
MOST_DEGREE = 100  # of a context in a surface
LARGEST = 1.7976931348623157e308  # the largest float
FOLLOWED = "start", "surface", "terms"  # what a bin has, if its best decision is not constant

Vector = list[float]
Matrix = list[list[float]]
# where a quadratic is highest between two points, or otherwise the third one
Climb = Callable[[Vector, Vector, Vector, Vector], Vector]


class Reader:
    """The learned decisions of a policy, as `policy.export()` wrote them."""

    def __init__(self, text: str | bytes) -> None:
        try:
            table: Any = json.loads(text)
            version = table["version"]
            if table["format"] != "continuarm table" or not isinstance(version, int):
                raise KeyError
        except (KeyError, TypeError, ValueError, RecursionError):
            raise ValueError(
                "a table written by `export` is needed, but got another text"
            ) from None
        if version not in (VERSION, WITH_SEGMENTS, WITH_SURFACES):
            raise ValueError(
                f"the table's version must be {VERSION}, {WITH_SEGMENTS} or {WITH_SURFACES}, "
                f"which this reads, but got {version}"
            )
        if not _is_table(table):
            raise ValueError("the parts of a table must fit together, but this one is damaged")
        self.context: dict[str, Any] = table["context"]
        self.decision: dict[str, Any] = table["decision"]
        self.bins: list[dict[str, Any]] = table["bins"]
        self.start: dict[str, Any] = table["start"]
        self.max_move: Vector | None = table.get("max_move")
        self.reference: dict[str, Any] | None = table.get("reference")
        self.segments: list[dict[str, Any]] = table.get("segments", [])
        self.then: list[dict[str, Any]] = table.get("then", [])
        self._guard: Any = None
        if "allowed" in table:  # coupled limits, or spaced values
            low, high = self.decision["low"], self.decision["high"]
            self._guard = _guard_of(table["allowed"], low, high)

    def decide(self, context: Mapping[str, float] | Sequence[float] = ()) -> Vector:
        """The best decision known for a context, as `recommend` would answer."""
        point = _point(self.context, context)
        low, high = self.decision["low"], self.decision["high"]
        start, bins, reference = self._known(point)
        if self.max_move is None:
            return self._best(start, bins, point, low, high)
        middle = self._reference(point, start, reference)
        ends = list(zip(middle, self.max_move, low, high, strict=True))
        low = [min(max(v - move, a), b) for v, move, a, b in ends]
        high = [min(max(v + move, a), b) for v, move, a, b in ends]
        if self._guard is not None:
            low, high = self._guard.near(middle, self.max_move)
        return self._best(start, bins, point, low, high)

    def _known(self, point: Vector) -> tuple[Any, Any, Any]:
        """What answers, and what it stays near to: in a frozen segment, what was known then."""
        values = dict(zip(self.context["names"], point, strict=True))
        for segment in self.segments:
            where = segment["where"].items()
            if all(low <= values[name] <= high for name, (low, high) in where):
                then = self.then[segment["known"]]
                near = None if then["near"] is None else self.then[then["near"]]
                return then["start"], then["bins"], near
        return self.start, self.bins, self.reference

    def _reference(self, point: Vector, start: Any, reference: Any) -> Vector:
        """What decisions stay near to: what was learned when that was renewed, or the start."""
        low, high = self.decision["low"], self.decision["high"]
        if reference is not None:
            return self._best(reference["start"], reference["bins"], point, low, high)
        unit = self._start(start, point)
        return [a + y * (b - a) for y, a, b in zip(unit, low, high, strict=True)]

    def _best(
        self,
        start: dict[str, Any],
        bins: list[dict[str, Any]],
        point: Vector,
        low: Vector,
        high: Vector,
    ) -> Vector:
        """The best decision known between `low` and `high`."""
        x = _to_unit(self.context, point)
        found = bins[0]
        for bin_ in bins:
            if all(
                low <= v and (v < high or high == 1.0)
                for v, low, high in zip(x, bin_["low"], bin_["high"], strict=True)
            ):
                found = bin_
        begin = self._start(start, point, found.get("cells"))
        if self._guard is not None:
            return _guarded(self._guard.between(low, high), found, x, begin)
        ends = _to_unit(self.decision, low), _to_unit(self.decision, high)
        if not any(part in found for part in FOLLOWED):
            value = list(found["best"])
            return [min(max(v, a), b) for v, a, b in zip(value, low, high, strict=True)]
        if "start" in found:
            unit = begin
        elif "surface" in found:
            unit = _best_of_surface(found, x, begin, *ends, _highest_in_box)
        elif "trust" in found:
            unit = _centre_of(found, x, begin, *ends)
        else:
            unit = _peak_of(found, x, *ends)
        box = zip(unit, self.decision["low"], self.decision["high"], low, high, strict=True)
        return [min(max(a + y * (b - a), c), d) for y, a, b, c, d in box]

    def _start(self, start: dict[str, Any], point: Vector, cells: int | None = None) -> Vector:
        """What the incumbent does, or the middle of its cell, on the unit cube."""
        value = list(start["constant"])
        for j, slopes in enumerate(start["by_context"]):
            for slope, x in zip(slopes, point, strict=True):
                value[j] += slope * x
        ends = zip(value, self.decision["low"], self.decision["high"], strict=True)
        unit = [(min(max(v, a), b) - a) / (b - a) for v, a, b in ends]
        if cells is None:
            return unit
        return [(min(int(y * cells), cells - 1) + 0.5) / cells for y in unit]

    def decide_by_name(
        self, context: Mapping[str, float] | Sequence[float] = ()
    ) -> dict[str, float]:
        """The same by the names of the decision."""
        return dict(zip(self.decision["names"], self.decide(context), strict=True))


def _guard_of(allowed: Any, low: Vector, high: Vector) -> Any:
    """What holds decisions to what is allowed; not in this file, because few tables need it."""
    try:
        from continuarm.live.reader_guard import guard_of
    except ModuleNotFoundError:
        raise ValueError(
            "a table with allowed values or coupled limits needs continuarm, or its files "
            "`continuarm/live/reader_guard.py` and `continuarm/core/allowed` under these paths, "
            "but got a reader alone"
        ) from None
    return guard_of(allowed, low, high)


def _to_unit(box: dict[str, Any], point: Vector) -> Vector:
    ends = zip(point, box["low"], box["high"], strict=True)
    return [(value - low) / (high - low) for value, low, high in ends]


def _point(box: dict[str, Any], context: Mapping[str, float] | Sequence[float]) -> Vector:
    """A context in the order of its box, inside it."""
    names = box["names"]
    given = _names_of(context)
    if given is not None:
        if len(given) != len(names) or set(given) != set(names):
            raise ValueError(f"the names must be {names}, but got {given}")
        by_field = isinstance(context, tuple)
        context = [getattr(context, name) if by_field else context[name] for name in names]
    if not hasattr(context, "__len__"):
        raise ValueError(f"{len(names)} numbers are needed, but got {context!r}")
    if len(context) != len(names):
        raise ValueError(f"{len(names)} numbers are needed, but got {len(context)}")
    point = []
    for name, value, low, high in zip(names, context, box["low"], box["high"], strict=True):
        if not isinstance(value, Real) or isinstance(value, Fraction):
            raise ValueError(f"{name} must be a number, but got {value!r}")
        if not low <= value <= high:
            raise ValueError(f"`{low} <= {name} <= {high}` must hold, but got {value}")
        point.append(float(value))
    return point


def _names_of(context: Any) -> list[Any] | None:
    """The names of a dictionary, a series, a named tuple or a structured row."""
    keys = getattr(context, "keys", None)
    if keys is not None and any(isinstance(name, str) for name in keys()):
        return list(keys())
    fields = getattr(context, "_fields", None) or getattr(
        getattr(context, "dtype", None), "names", None
    )
    return None if fields is None else list(fields)


def _is_table(table: dict[str, Any]) -> bool:
    """Whether a decision from this table can only lie in the decision's box."""
    try:
        context, decision = table["context"], table["decision"]
        fits = all(_is_box(box) for box in (context, decision))
        move, dy = table.get("max_move"), len(decision["names"])
        if move is not None:
            fits = fits and _are_numbers(move, dy) and min(move) >= 0.0
        learned = [table, table["reference"]] if "reference" in table else [table]
        learned += table.get("then", [])
        fits = fits and _are_segments(table, context["names"])
        has_surface = any("surface" in bin_ for part in learned for bin_ in part["bins"])
        return (
            fits
            and has_surface == (table["version"] == WITH_SURFACES)
            and all(_is_learned(part, context, decision) for part in learned)
        )
    except (AttributeError, KeyError, TypeError, ValueError):
        return False


def _are_segments(table: dict[str, Any], names: list[str]) -> bool:
    """Whether each segment has a condition, and says what was known then."""
    segments, then = table.get("segments", []), table.get("then", [])
    listed = isinstance(segments, list) and isinstance(then, list)
    if (
        not listed
        or len(segments) > MOST_SEGMENTS
        or bool(segments) not in HAS_SEGMENTS[table["version"]]
    ):
        return False
    for known in then:
        near = known["near"]
        if near is not None and not _is_index(near, then):
            return False
    for segment in segments:
        where = segment["where"]
        if not isinstance(where, dict) or not where or not set(where) <= set(names):
            return False
        if not all(_are_numbers(rule, 2) for rule in where.values()):
            return False
        if not _is_index(segment["known"], then):
            return False
    return True


def _is_index(number: Any, of: list[Any]) -> bool:
    return type(number) is int and 0 <= number < len(of)


def _is_learned(table: dict[str, Any], context: dict[str, Any], decision: dict[str, Any]) -> bool:
    bins, fits = table["bins"], _is_rule(table["start"], context, len(decision["names"]))
    return fits and bool(bins) and all(_is_bin(bin_, context, decision) for bin_ in bins)


def _is_box(box: dict[str, Any]) -> bool:
    names, low, high = box["names"], box["low"], box["high"]
    named = isinstance(names, list) and all(isinstance(name, str) for name in names)
    dim = len(names)
    numbers = _are_numbers(low, dim) and _are_numbers(high, dim)
    spans = numbers and all(0.0 < b - a <= LARGEST for a, b in zip(low, high, strict=True))
    return named and len(set(names)) == dim and spans


def _is_rule(start: dict[str, Any], context: dict[str, Any], dy: int) -> bool:
    """Whether the start is a number for every context."""
    first, slopes, dx = start["constant"], start["by_context"], len(context["names"])
    fits = _are_numbers(first, dy) and isinstance(slopes, list) and len(slopes) == dy
    if not fits or not all(_are_numbers(row, dx) for row in slopes):
        return False
    ends = zip(context["low"], context["high"], strict=True)
    farthest = [max(abs(a), abs(b)) for a, b in ends]
    sizes = ([abs(slope) for slope in row] for row in slopes)
    rows = zip(first, sizes, strict=True)
    return all(abs(v) + _dot(row, farthest) <= LARGEST for v, row in rows)


def _is_bin(bin_: dict[str, Any], context: dict[str, Any], decision: dict[str, Any]) -> bool:
    dx, dy = len(context["names"]), len(decision["names"])
    if not _is_within(bin_["best"], decision["low"], decision["high"]):
        return False
    edges = [bin_["low"], bin_["high"]]
    if not all(_is_within(e, [0.0] * dx, [1.0] * dx) for e in edges) or not all(map(_lt, *edges)):
        return False
    cells, as_incumbent = bin_.get("cells", 1), bin_.get("start", True)
    if type(cells) is not int or not 1 <= cells <= MOST_CELLS or as_incumbent is not True:
        return False
    if "surface" in bin_:
        others = "start" in bin_ or "terms" in bin_
        return not others and _is_surface(bin_["surface"], dx, dy)
    if "terms" not in bin_:
        return True
    terms, (low, high) = bin_["terms"], bin_["tried"]
    ends = all(_is_within(end, [0.0] * dy, [1.0] * dy) for end in (low, high))
    return (
        type(bin_["dimensions"]) is int
        and bin_["dimensions"] == dy
        and len(terms) in (2 * dy, 2 * dy + dy * (dy - 1) // 2)
        and len(bin_["by_context"]) == dx
        and all(_are_numbers(row, len(row)) for row in (terms, *bin_["by_context"]))
        and all(len(row) <= len(terms) for row in bin_["by_context"])
        and len(bin_["by_degree"]) == dx
        and all(len(degrees) <= MOST_DEGREES for degrees in bin_["by_degree"])
        and all(_are_numbers(row, dy) for degrees in bin_["by_degree"] for row in degrees)
        and ends
        and all(a <= b for a, b in zip(low, high, strict=True))
        and ("trust" not in bin_ or _has_centre(bin_))
    )


def _is_surface(surface: dict[str, Any], dx: int, dy: int) -> bool:
    """Whether each group is a function of the context, with as many numbers as its kind has."""
    groups = surface["groups"]
    if not isinstance(groups, list) or not all(_is_group(group, dx, dy) for group in groups):
        return False
    sizes = [len(group["coefficients"]) for group in groups]
    bends = {n for n, group in zip(sizes, groups, strict=True) if group["kind"] == CURVATURES}
    if len(bends) > 1:
        return False
    if "trust" not in surface:
        return True
    rows, size = surface["triangle"], sum(sizes)
    return (
        _are_numbers([surface["trust"]], 1)
        and surface["trust"] >= 0.0
        and isinstance(rows, list)
        and len(rows) == size
        and all(_are_numbers(row, size - i) and row[0] > 0.0 for i, row in enumerate(rows))
    )


def _is_group(group: dict[str, Any], dx: int, dy: int) -> bool:
    sizes = {LEVEL: (1,), SLOPES: (dy,), CURVATURES: (dy, dy * (dy + 1) // 2)}
    context, coefficients = group["context"], group["coefficients"]
    return (
        isinstance(context, list)
        and all(_is_power(power, dx) for power in context)
        and ("step" not in group or _is_step(group["step"], dx))
        and len(coefficients) in sizes[group["kind"]]
        and _are_numbers(coefficients, len(coefficients))
    )


def _is_power(power: Any, dx: int) -> bool:
    """Whether it is the number of a context, and a degree."""
    whole = isinstance(power, list) and len(power) == 2 and all(type(n) is int for n in power)
    return whole and 0 <= power[0] < dx and 1 <= power[1] <= MOST_DEGREE


def _is_step(step: Any, dx: int) -> bool:
    """Whether it is the number of a context, and a place."""
    return _are_numbers(step, 2) and type(step[0]) is int and 0 <= step[0] < dx


def _has_centre(bin_: dict[str, Any]) -> bool:
    """Whether what eq. 12 needs is there."""
    gates, columns = bin_["gates"], bin_["triangle"]
    size = len(bin_["terms"]) + sum(len(row) for row in bin_["by_context"])
    size += sum(len(row) for degrees in bin_["by_degree"] for row in degrees)
    return (
        _are_numbers([bin_["trust"], *gates], size + 1)
        and bin_["trust"] >= 0.0
        and all(0.0 <= gate <= 1.0 for gate in gates)
        and isinstance(columns, list)
        and len(columns) == size
        and all(_are_numbers(column, j + 1) for j, column in enumerate(columns))
        and all(column[-1] > 0.0 for column in columns)
    )


def _lt(low: float, high: float) -> bool:
    return low < high


def _are_numbers(values: Any, n: int) -> bool:
    return (
        isinstance(values, list)
        and len(values) == n
        and all(type(v) in (int, float) and abs(v) <= LARGEST for v in values)
    )


def _is_within(values: Any, low: Vector, high: Vector) -> bool:
    return _are_numbers(values, len(low)) and all(
        a <= v <= b for v, a, b in zip(values, low, high, strict=True)
    )


def _within_bin(bin_: dict[str, Any], x: Vector) -> Vector:
    """The context scaled to [-1, 1] in its bin."""
    ends = zip(x, bin_["low"], bin_["high"], strict=True)
    return [(2.0 * v - low - high) / (high - low) for v, low, high in ends]


def _terms(bin_: dict[str, Any], u: Vector) -> Vector:
    """The coefficients that hold for this context."""
    terms: Vector = list(bin_["terms"])
    for v, slopes in zip(u, bin_["by_context"], strict=True):
        for k, slope in enumerate(slopes):
            terms[k] += slope * v
    for v, degrees in zip(u, bin_["by_degree"], strict=True):
        for factor, slopes in zip(_legendre(v, len(degrees)), degrees, strict=True):
            for k, slope in enumerate(slopes):
                terms[k] += slope * factor
    return terms


def _legendre(u: float, n: int) -> Vector:
    """The Legendre polynomials of degree 2, 3, …, n + 1."""
    before, now, found = 1.0, u, []
    for k in range(1, n + 1):
        before, now = now, ((2 * k + 1) * u * now - k * before) / (k + 1)
        found.append(now)
    return found


def _peak_of(bin_: dict[str, Any], x: Vector, low: Vector, high: Vector) -> Vector:
    """Where the bin's quadratic is highest for this context, on the unit cube.

    If that is not between `low` and `high`, where it is highest between them.
    """
    d, terms = bin_["dimensions"], _terms(bin_, _within_bin(bin_, x))
    peak = _tried(bin_, _highest(terms, [-1.0] * d, [1.0] * d))
    if _is_within(peak, low, high):
        return peak
    ends = [2.0 * v - 1.0 for v in low], [2.0 * v - 1.0 for v in high]
    return _tried(bin_, _highest(terms, *ends))


def _guarded(guard: Any, bin_: dict[str, Any], x: Vector, start: Vector) -> Vector:
    """The same where more than a box limits decisions, in units."""
    v0 = guard.nearest([2.0 * s - 1.0 for s in start])
    if "surface" in bin_:
        begin, bottom, top = (
            [0.5 + 0.5 * v for v in edge] for edge in (v0, guard.low, guard.high)
        )
        unit = _best_of_surface(bin_, x, begin, bottom, top, guard.highest)
        return list(guard.value([2.0 * y - 1.0 for y in unit], [2.0 * y - 1.0 for y in begin]))
    if "start" in bin_:
        return list(guard.value(v0, v0))
    if "terms" not in bin_:
        return list(guard.value(guard.nearest(guard.scaled(bin_["best"])), v0))
    u, (lowest, highest) = _within_bin(bin_, x), bin_["tried"]
    terms = _terms(bin_, u)
    low = [max(a, min(2.0 * t - 1.0, s)) for a, t, s in zip(guard.low, lowest, v0, strict=True)]
    high = [min(b, max(2.0 * t - 1.0, s)) for b, t, s in zip(guard.high, highest, v0, strict=True)]
    best = guard.highest(terms, low, high, v0)
    v = _surest(bin_, u, terms, v0, best) if "trust" in bin_ else best
    return list(guard.value([0.0 if one != one else one for one in v], v0))


def _best_of_surface(
    bin_: dict[str, Any], x: Vector, start: Vector, bottom: Vector, top: Vector, highest: Climb
) -> Vector:
    """The centre of a smooth surface, on the unit cube (eq. 11 of its page).

    In the order of the policy's own operations, so that both are the same to the last digit: where
    allowed values are spaced, a centre is often in the middle between two of them.
    """
    surface, d, u = bin_["surface"], len(start), _within_bin(bin_, x)
    low, high = ([2.0 * y - 1.0 for y in edge] for edge in (bottom, top))
    v0 = [min(max(2.0 * s - 1.0, a), b) for s, a, b in zip(start, low, high, strict=True)]
    factors = [_function(group, u) for group in surface["groups"]]
    terms = _at_context(surface["groups"], factors, d)
    v = highest(terms[SLOPES] + terms[CURVATURES], low, high, v0)
    if "trust" in surface:
        a, b = _along(v0, v, len(terms[CURVATURES]) > d)
        gain, bend = (_dot(terms[SLOPES] + terms[CURVATURES], way) for way in (a, b))
        sides = (_columns(surface["groups"], factors, way, d) for way in (a, b))
        spread = _spread_by_rows(surface["triangle"], *sides)
        t = _surest_part(gain, bend, surface["trust"], *spread)
        v = [s + t * (w - s) for s, w in zip(v0, v, strict=True)]
    unit = zip((0.5 + 0.5 * w for w in v), bottom, top, strict=True)
    return [min(y, b) if y >= a else a for y, a, b in unit]  # what is no number goes to the edge


def _function(group: dict[str, Any], u: Vector) -> float:
    """A step of one context, or the product of the Legendre polynomials of some."""
    if "step" in group:
        i, place = group["step"]
        return 1.0 if u[i] >= place else 0.0
    factor = 1.0
    for i, degree in group["context"]:
        before, now = 1.0, u[i]
        for k in range(1, degree):
            before, now = now, ((2 * k + 1) * u[i] * now - k * before) / (k + 1)
        factor *= now
    return factor


def _at_context(groups: list[dict[str, Any]], factors: Vector, d: int) -> dict[str, Vector]:
    """What the coefficients are for one context, by kind."""
    terms = {LEVEL: [0.0], SLOPES: [0.0] * d, CURVATURES: [0.0] * d}
    for group, factor in zip(groups, factors, strict=True):
        kind, coefficients = group["kind"], group["coefficients"]
        if len(coefficients) > len(terms[kind]):
            terms[kind] = [0.0] * len(coefficients)
        terms[kind] = [v + c * factor for v, c in zip(terms[kind], coefficients, strict=True)]
    return terms


def _along(v0: Vector, best: Vector, twisted: bool) -> tuple[Vector, Vector]:
    """Slopes and curvatures of the decision at v0 + t(v̂ - v0) less those at v0: ta + t²b."""
    way, d = [v - s for v, s in zip(best, v0, strict=True)], len(v0)
    a = [*way, *(s * w for s, w in zip(v0, way, strict=True))]
    b = [0.0] * d + [0.5 * w * w for w in way]
    if twisted:
        for i in range(d):
            for j in range(i + 1, d):
                a.append(v0[i] * way[j] + v0[j] * way[i])
                b.append(way[i] * way[j])
    return a, b


def _columns(groups: list[dict[str, Any]], factors: Vector, way: Vector, d: int) -> Vector:
    """The same by column of the triangle."""
    parts = {LEVEL: [0.0], SLOPES: way[:d], CURVATURES: way[d:]}
    pairs = zip(groups, factors, strict=True)
    return [factor * v for group, factor in pairs for v in parts[group["kind"]]]


def _spread_by_rows(rows: Matrix, a: Vector, b: Vector) -> tuple[float, float, float]:
    """|x_a|², x_a·x_b and |x_b|² of x = R⁻ᵀa; the triangle is given row by row."""
    aa = ab = bb = 0.0
    for i, row in enumerate(rows):
        x, y = a[i] / row[0], b[i] / row[0]
        if x != 0.0 or y != 0.0:
            for j in range(1, len(row)):
                a[i + j] -= row[j] * x
                b[i + j] -= row[j] * y
        aa += x * x
        ab += x * y
        bb += y * y
    return aa, ab, bb


def _surest_part(gain: float, bend: float, trust: float, aa: float, ab: float, bb: float) -> float:
    """Where between 0 and 1 the lower bound of what is gained is highest; 1, if that is sure."""
    if gain + bend > SURE * trust * math.sqrt(max(aa + 2.0 * ab + bb, 0.0)):
        return 1.0
    best = at = 0.0
    for step in range(1, STEPS + 1):
        t = step / STEPS
        error = math.sqrt(max(aa + t * (2.0 * ab + t * bb), 0.0))
        bound = t * (gain + t * bend - trust * error)
        if bound > best:
            best, at = bound, t
    return at


def _centre_of(
    bin_: dict[str, Any], x: Vector, start: Vector, bottom: Vector, top: Vector
) -> Vector:
    """The surest point between the start and the peak (eq. 12), on the unit cube."""
    u, (lowest, highest) = _within_bin(bin_, x), bin_["tried"]
    start = [min(max(s, a), b) for s, a, b in zip(start, bottom, top, strict=True)]
    terms, v0 = _terms(bin_, u), [2.0 * s - 1.0 for s in start]
    lows, highs = zip(lowest, start, bottom, strict=True), zip(highest, start, top, strict=True)
    low = [2.0 * max(min(a, s), edge) - 1.0 for a, s, edge in lows]
    high = [2.0 * min(max(b, s), edge) - 1.0 for b, s, edge in highs]
    moved = _surest(bin_, u, terms, v0, _highest(terms, low, high))
    middle = [0.5 if v != v else 0.5 + 0.5 * v for v in moved]  # numbers too large give no peak
    return [min(max(v, 0.0), 1.0) for v in middle]


def _surest(bin_: dict[str, Any], u: Vector, terms: Vector, v0: Vector, best: Vector) -> Vector:
    """The surest point on the way, in [-1, 1]."""
    a, b = _way(bin_, u, v0, best)
    gain, bend = _dot(terms, a), _dot(terms, b)
    at = _surest_part(gain, bend, bin_["trust"], *_spread(bin_, a, b))
    return [s + at * (v - s) for s, v in zip(v0, best, strict=True)]


def _way(bin_: dict[str, Any], u: Vector, v0: Vector, best: Vector) -> tuple[Vector, Vector]:
    """The features on the way from the start to the peak less those at the start: ta + t²b."""
    d = len(v0)
    way = [v - s for v, s in zip(best, v0, strict=True)]
    a = [*way, *(s * w for s, w in zip(v0, way, strict=True))]
    b = [0.0] * d + [0.5 * w * w for w in way]
    if len(bin_["terms"]) > 2 * d:
        for i in range(d):
            for j in range(i + 1, d):
                a.append(v0[i] * way[j] + v0[j] * way[i])
                b.append(way[i] * way[j])
    for v, slopes in zip(u, bin_["by_context"], strict=True):
        for k in range(len(slopes)):
            a.append(v * a[k])
            b.append(v * b[k])
    for v, degrees in zip(u, bin_["by_degree"], strict=True):
        for factor in _legendre(v, len(degrees)):
            a += [factor * w for w in way]
            b += [0.0] * d
    return a, b


def _spread(bin_: dict[str, Any], a: Vector, b: Vector) -> tuple[float, float, float]:
    """|x_a|², x_a·x_b and |x_b|² of x = √f R⁻ᵀa; the triangle is given column by column."""
    xa: Vector = []
    xb: Vector = []
    for j, column in enumerate(bin_["triangle"]):
        xa.append((a[j] - _dot(column, xa)) / column[-1])
        xb.append((b[j] - _dot(column, xb)) / column[-1])
    gates = bin_["gates"]
    weighed = [f * x for f, x in zip(gates, xa, strict=True)]
    square = sum(f * x * x for f, x in zip(gates, xb, strict=True))
    return _dot(weighed, xa), _dot(weighed, xb), square


def _highest(terms: Vector, low: Vector, high: Vector) -> Vector:
    """Where between `low` and `high` the quadratic with these coefficients is highest."""
    d = len(low)
    slope, bends, twists = terms[:d], terms[d : 2 * d], terms[2 * d :]
    if not twists:
        return [_peak(*each) for each in zip(slope, bends, low, high, strict=True)]
    hessian = [[0.0] * d for _ in range(d)]
    k = 0
    for i in range(d):
        hessian[i][i] = bends[i]
        for j in range(i + 1, d):
            hessian[i][j] = hessian[j][i] = twists[k]
            k += 1
    return _climb(slope, hessian, low, high)


def _highest_in_box(terms: Vector, low: Vector, high: Vector, otherwise: Vector) -> Vector:
    return _highest(terms, low, high)


def _tried(bin_: dict[str, Any], peak: Vector) -> Vector:
    """The peak on the unit cube, and nothing beyond what was tried."""
    low, high = bin_["tried"]
    middle = [0.5 if v != v else 0.5 + 0.5 * v for v in peak]  # numbers too large give no peak
    return [min(max(v, a), b) for v, a, b in zip(middle, low, high, strict=True)]


def _dot(a: Vector, b: Vector) -> float:
    """The product up to the end of the shorter one."""
    return _add(0.0, a, b)


def _add(total: float, a: Vector, b: Vector) -> float:
    """One product after the other added, as in the policy itself: `sum` rounds otherwise."""
    for p, q in zip(a, b, strict=False):
        total += p * q
    return total


def _take(total: float, a: Vector, b: Vector) -> float:
    """The same taken off."""
    for p, q in zip(a, b, strict=False):
        total -= p * q
    return total


def _peak(slope: float, bend: float, low: float, high: float) -> float:
    """Where in [low, high] `slope v + ½ bend v²` is highest."""
    if bend < 0.0:
        return min(max(-slope / bend, low), high)
    return high if slope + 0.5 * bend * (low + high) > 0.0 else low


def _climb(slope: Vector, hessian: Matrix, low: Vector, high: Vector) -> Vector:
    """Where between `low` and `high` `slope·v + ½ vᵀHv` is highest: Newton steps, and sweeps."""
    d = len(slope)
    v = [min(max(0.0, a), b) for a, b in zip(low, high, strict=True)]
    for _ in range(2 * d + ROUNDS):
        step = _newton(slope, hessian, v, low, high)
        if step is not None:
            reach = 1.0
            for j in range(d):
                if step[j] != 0.0:
                    edge = high[j] if step[j] > 0.0 else low[j]
                    reach = min(reach, (edge - v[j]) / step[j])
            v = [min(max(v[j] + reach * step[j], low[j]), high[j]) for j in range(d)]
        moved = 0.0
        for j in range(d):
            push = _add(slope[j] - hessian[j][j] * v[j], hessian[j], v)
            new = _peak(push, hessian[j][j], low[j], high[j])
            moved = max(moved, abs(new - v[j]))
            v[j] = new
        if moved <= STILL:
            break
    return v


def _newton(slope: Vector, hessian: Matrix, v: Vector, low: Vector, high: Vector) -> Vector | None:
    """The Newton step of the coordinates not pressed to their edge; None: H is not negative."""
    d = len(v)
    push = [_add(slope[j], hessian[j], v) for j in range(d)]
    free = [
        j
        for j in range(d)
        if not ((v[j] >= high[j] and push[j] >= 0.0) or (v[j] <= low[j] and push[j] <= 0.0))
    ]
    factor: Matrix = []  # of -H on the free coordinates, by Cholesky
    for row, j in enumerate(free):
        line: Vector = []
        for column in range(row):
            other = factor[column]
            entry = _take(-hessian[j][free[column]], line, other)
            line.append(entry / other[column])
        pivot = _take(-hessian[j][j], line, line)
        if not pivot > -1e-12 * hessian[j][j]:
            return None
        factor.append([*line, math.sqrt(pivot)])
    n = len(free)
    solved: Vector = []
    for row in range(n):
        rest = _take(push[free[row]], factor[row], solved)
        solved.append(rest / factor[row][row])
    for row in range(n - 1, -1, -1):
        below = range(row + 1, n)
        rest = _take(solved[row], [factor[k][row] for k in below], [solved[k] for k in below])
        solved[row] = rest / factor[row][row]
    step = [0.0] * d
    for row, j in enumerate(free):
        step[j] = solved[row]
    return step
