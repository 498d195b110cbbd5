"""Polytope: a box of decisions with limits that couple coordinates."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from continuarm.box import Box
from continuarm.checks import among
from continuarm.core.allowed.bundles import Allowed
from continuarm.core.allowed.exactness import EQUAL, is_allowed
from continuarm.core.compiling import Array
from continuarm.errors import InputError, SettingsError
from continuarm.numbers import reals
from continuarm.sets.anchors import anchor_of, nearest_of
from continuarm.sets.bundle import Rows, bundle, solved
from continuarm.sets.inequalities import parse, written

__all__ = ["Polytope"]

Equal = tuple[ArrayLike, ArrayLike]


class Polytope(Box):
    """A box of decisions in which linear inequalities, and equalities, must hold, too.

    Parameters
    ----------
    box : the Box, whose spacing must be kept, too.
    A : inequalities as people write them, `["small <= large - 0.5", "ads + stock <= 100"]`, with
        `<=`, `>=` or `==`, numbers, `2 * name`, `+`, `-` and parentheses; or a matrix with a row
        for each, a column for each coordinate.
    b : with a matrix: `A @ value <= b`.
    names : the order of the columns by name; for a box without names the names of its coordinates.
    equal : with a matrix: (E, e) for `E @ value == e`.

    An equality is solved for one coordinate without a spacing, the same for all decisions, and
    holds to 1e-9 of that coordinate's side. Inequalities hold for floats as they are, in every
    order of summation. Where nothing is allowed, the limits that conflict are named.

    >>> box = Box([0, 0], [10, 10], names=["small", "large"])
    >>> sizes = Polytope(box, ["small <= large - 0.5", "small + large <= 12"])
    >>> sizes.allows([5.75, 6.25]), sizes.allows([5.8, 6.2])
    (True, False)
    >>> sizes.nearest({"small": 8, "large": 3}).round(6)
    array([5.25, 5.75])
    """

    __slots__ = ("A", "allowed", "b", "box", "equal", "texts")

    box: Box
    A: Array
    b: Array
    equal: tuple[Array, Array]
    texts: tuple[str, ...]  # equalities first
    allowed: Allowed

    def __init__(
        self,
        box: Box,
        A: Sequence[str] | ArrayLike,
        b: ArrayLike | None = None,
        names: Sequence[str] | None = None,
        equal: Equal | None = None,
    ) -> None:
        if type(box) is not Box:  # rows of another Polytope would be forgotten
            raise SettingsError(f"`box` must be a Box, but got {box!r}")
        if _is_text(A):
            if b is not None or equal is not None or names is not None:
                raise SettingsError("`b`, `names` and `equal` go with a matrix, but got text, too")
            rows, equals, texts = _read(box, A)
        else:
            box, order = _ordered(box, names)
            rows, equals = _matrix("A", A, b, order), _equal(equal, order)
            texts = _written(box, rows, equals)
        self._make(box, rows, equals, texts, None)

    def _make(self, box: Box, rows: Rows, equals: Rows, texts: list[str], anchor: Any) -> None:
        """Check that something is allowed, and keep it all."""
        if len(equals.bounds) >= max(box.dim, 1):
            raise SettingsError(
                f"fewer equalities than the {box.dim} coordinates are needed, "
                f"but got {len(equals.bounds)}"
            )
        eliminated, pivots = solved(box, equals, texts)
        allowed = bundle(box, rows, eliminated, pivots, np.zeros(box.dim))
        found = _known(allowed, anchor)
        if found is None:
            found = anchor_of(box, rows, eliminated, texts, allowed)
        allowed = allowed._replace(anchor=found)
        for array in (*rows, *equals, *(part for part in allowed if isinstance(part, np.ndarray))):
            array.flags.writeable = False
        parts = {"box": box, "A": rows.factors, "b": rows.bounds, "texts": tuple(texts)}
        parts |= {"equal": tuple(equals), "allowed": allowed}
        parts |= {name: getattr(box, name) for name in Box.__slots__}
        for name, part in parts.items():
            object.__setattr__(self, name, part)

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"a Polytope cannot be changed, but `{name}` was assigned")

    def __getstate__(self) -> Any:
        """What `Polytope.from_state` makes it of, in numbers and text."""
        return {
            "box": self.box.__getstate__(),
            "A": self.A.tolist(),
            "b": self.b.tolist(),
            "equal": [part.tolist() for part in self.equal],
            "texts": list(self.texts),
            "anchor": np.asarray(self.allowed.anchor).tolist(),
        }

    @classmethod
    def from_state(cls, state: Mapping[str, Any]) -> "Polytope":
        """The same again: the anchor, too, so that no number depends on who looked for it."""
        made = cls.__new__(cls)
        made.__setstate__(state)
        return made

    def __setstate__(self, state: Any) -> None:
        box, order = Box(*state["box"]), slice(None)
        rows, equals = _matrix("A", state["A"], state["b"], order, box.dim), Rows(*state["equal"])
        equals = _matrix("equal", *equals, order, box.dim)
        texts = [str(text) for text in state["texts"]]
        if len(texts) != len(rows.bounds) + len(equals.bounds):
            raise SettingsError(f"a text is needed for each row, but got {texts}")
        self._make(box, rows, equals, texts, state["anchor"])

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Polytope) and self._numbers() == other._numbers()

    def __hash__(self) -> int:
        return hash((self.box, self.A.tobytes(), self.b.tobytes()))

    def _numbers(self) -> tuple[Any, ...]:
        equal = [part.tolist() for part in self.equal]
        return self.box, self.A.tolist(), self.b.tolist(), equal

    def __repr__(self) -> str:
        if self.box.named:
            return f"Polytope({self.box!r}, {list(self.texts)!r})"
        equal = [part.tolist() for part in self.equal]
        rest = f", equal={tuple(equal)}" if equal[1] else ""
        return f"Polytope({self.box!r}, {self.A.tolist()}, {self.b.tolist()}{rest})"

    def allows(self, value: ArrayLike | Mapping[str, float]) -> bool:
        """Whether a decision is allowed: box, spacing, `A @ value <= b`, and equalities."""
        point = self.box.array(value)
        if not self.box.allows(point) or not (self.A @ point <= self.b).all():
            return False
        factors, bounds = self.equal
        side = np.abs(factors) * self.box.span
        spare = EQUAL * side.max(axis=1, initial=0.0)
        return bool((np.abs(factors @ point - bounds) <= spare).all())

    def nearest(self, value: ArrayLike | Mapping[str, float]) -> Array:
        """The allowed decision nearest to one that may lie anywhere, by the sides of the box."""
        point = self.box.array(value)
        if not np.isfinite(point).all():
            raise InputError(f"finite numbers are needed, but got {value!r}")
        return nearest_of(self.allowed, point)


def _known(allowed: Allowed, anchor: Any) -> Array | None:
    """An anchor that was found before, if it is allowed."""
    if anchor is None:
        return None
    found = reals(anchor)
    low, high = np.asarray(allowed.edges)
    if found is None or found.shape != low.shape or not is_allowed(allowed, low, high, found):
        raise SettingsError(f"an anchor must be allowed, but got {anchor!r}")
    return found


def _is_text(given: Any) -> bool:
    if isinstance(given, str):
        raise SettingsError(f"inequalities must be a list of texts, but got {given!r}")
    return isinstance(given, Sequence) and any(isinstance(one, str) for one in given)


def _read(box: Box, texts: Any) -> tuple[Rows, Rows, list[str]]:
    """The rows of inequalities as people write them; equalities first in the texts."""
    if not box.named:
        raise SettingsError(f"inequalities in words need a Box with names, but got {box!r}")
    for name in box.names:
        if not (name[:1].isalpha() or name.startswith("_")):
            raise SettingsError(
                f"names in inequalities must begin with a letter, but got {name!r}"
            )
    found: tuple[list[Any], list[Any]] = ([], [])
    for number, text in enumerate(texts, 1):
        if not isinstance(text, str):
            raise SettingsError(f"row {number} must be text, but got {text!r}")
        row = parse(text, box.names, number)
        found[row.is_equality].append((row, text))
    made = [
        Rows(
            np.array([row.factors for row, _ in part]).reshape(-1, box.dim),
            np.array([row.bound for row, _ in part]),
        )
        for part in found
    ]
    return made[0], made[1], [text for part in reversed(found) for _, text in part]


def _ordered(box: Box, names: Any) -> tuple[Box, Any]:
    """The box, with names if it had none, and the columns of a matrix in its order."""
    if names is None:
        return box, list(range(box.dim))
    if not box.named:
        low, high, _, *spaced = box.__getstate__()
        return Box(low, high, names, *spaced), list(range(box.dim))
    if isinstance(names, str) or sorted(map(str, names)) != sorted(box.names):
        raise SettingsError(
            f"`names` must be those of the box, {among(box.names)}, but got {names}"
        )
    return box, [list(names).index(name) for name in box.names]


def _matrix(what: str, matrix: Any, bounds: Any, order: Any, dim: int | None = None) -> Rows:
    width = len(order) if dim is None else dim
    factors, sides = reals(matrix), reals(bounds)
    if factors is not None and factors.size == 0:
        factors = factors.reshape(-1, width)
    if factors is None or sides is None or factors.ndim != 2 or factors.shape[1] != width:
        raise SettingsError(
            f"`{what}` must be texts, or a matrix of {width} columns with a bound for each row, "
            f"but got {matrix!r}, {bounds!r}"
        )
    if sides.shape != factors.shape[:1]:
        raise SettingsError(
            f"each row of `{what}` must have a bound, but got {len(factors)} rows and shape "
            f"{sides.shape}"
        )
    for i, (row, side) in enumerate(zip(factors, sides, strict=True), 1):
        if not (np.isfinite(row).all() and np.isfinite(side) and row.any()):
            raise SettingsError(
                f"row {i} of `{what}` must have finite numbers, not all 0, but got "
                f"{row.tolist()}, {float(side)}"
            )
    return Rows(np.ascontiguousarray(factors[:, order]) + 0.0, sides + 0.0)


def _equal(equal: Any, order: Any) -> Rows:
    if equal is None:
        return Rows(np.empty((0, len(order))), np.empty(0))
    if not isinstance(equal, Sequence) or len(equal) != 2:
        raise SettingsError(f"`equal` must be a matrix and its bounds, but got {equal!r}")
    return _matrix("equal", equal[0], equal[1], order)


def _written(box: Box, rows: Rows, equals: Rows) -> list[str]:
    names = box.names if box.named else [f"value{j}" for j in range(box.dim)]
    return [
        written(row, relation, float(bound), names)
        for part, relation in ((equals, "=="), (rows, "<="))
        for row, bound in zip(part.factors.tolist(), part.bounds, strict=True)
    ]
