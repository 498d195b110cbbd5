"""What a caller may hand over, as JSON has it: the forms that a policy takes, checked before they
are sent.

Only what holds without the experiment's boxes is checked here; the service checks the rest.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from continuarm.box import Box
from continuarm.core.compiling import Array
from continuarm.errors import InputError
from continuarm.live.inputs import finite
from continuarm.live.segments import Segment
from continuarm.numbers import by_name, names_of, reals
from continuarm.sets import is_guarded

__all__ = [
    "Plain",
    "about",
    "array_of",
    "limits_of",
    "payoff_of",
    "payoffs_of",
    "plain_of",
    "rows_of",
    "segment_of",
]

Plain = dict[str, float] | list[float]  # by name, or in order


@contextmanager
def about(field: str) -> Iterator[None]:
    """What is refused in here is about this field."""
    try:
        yield
    except InputError as error:
        error.field = field
        raise


def plain_of(given: Any, field: str) -> Plain:
    """A context or a decision."""
    with about(field):
        names = names_of(given)
        numbers = reals(given if names is None else by_name(given, names, names))
        if names is not None and numbers is not None and numbers.shape[1:] == (1,):
            numbers = numbers[:, 0]  # a table of one row
        if numbers is None or numbers.ndim != 1 or not np.isfinite(numbers).all():
            raise InputError(f"finite numbers are needed for `{field}`, but got {given!r}")
        listed: list[float] = numbers.tolist()
        return listed if names is None else dict(zip(map(str, names), listed, strict=True))


def rows_of(given: Any, field: str) -> list[Plain]:
    """Contexts or decisions one by one; they may be given as columns by name."""
    names = names_of(given)
    if names is not None:
        with about(field):
            columns = [reals(column) for column in by_name(given, names, names)]
            sizes = {None if one is None or one.ndim != 1 else one.size for one in columns}
            if None in sizes or len(sizes) > 1:
                raise InputError(f"columns of one length are needed, but got {given!r}")
        given = [dict(zip(names, row, strict=True)) for row in zip(*columns, strict=True)]
    elif not isinstance(given, Sequence | np.ndarray) or isinstance(given, str | bytes):
        with about(field):
            raise InputError(f"`{field}` must be rows or columns by name, but got {given!r}")
    return [plain_of(row, field) for row in given]


def array_of(plain: Plain) -> Array:
    """The numbers alone."""
    return np.array(list(plain.values()) if isinstance(plain, dict) else plain, np.float64)


def limits_of(within: Any, names: Sequence[str]) -> dict[str, list[float]]:
    """Limits by name; the names of the decision are for a Box that has none."""
    with about("within"):
        return {name: _edges(name, pair) for name, pair in _pairs(within, names).items()}


def _pairs(within: Any, names: Sequence[str]) -> dict[str, Any]:
    if isinstance(within, Box):
        if is_guarded(within):
            raise InputError(
                f"`within` must be a Box without spacing or coupled limits, but got {within!r}"
            )
        known = within.names if within.named else names
        if len(known) != within.dim:
            raise InputError(f"`within` must be a Box of {list(known)}, but got {within!r}")
        edges = zip(within.low.tolist(), within.high.tolist(), strict=True)
        return dict(zip(known, edges, strict=True))
    if isinstance(within, Mapping) and within:
        return {str(name): pair for name, pair in within.items()}
    raise InputError(
        f'`within` must be a Box, or such as {{"price": (3.0, 4.5)}}, but got {within!r}'
    )


def segment_of(given: Segment | Mapping[Any, Any]) -> dict[str, list[float]]:
    """A segment by name."""
    where = given.where if isinstance(given, Segment) else given
    with about("segment"):
        return {str(name): _edges(name, pair, "segment") for name, pair in where.items()}


def _edges(name: Any, pair: Any, field: str = "within") -> list[float]:
    edges = reals(pair)
    if edges is None or edges.shape != (2,) or not -np.inf < edges[0] <= edges[1] < np.inf:
        raise InputError(f"`low <= high` must hold for {name} in `{field}`, but got {pair!r}")
    found: list[float] = edges.tolist()
    return found


def payoff_of(given: Any, field: str = "payoff") -> float:
    """A payoff."""
    with about(field):
        return finite(given)


def payoffs_of(given: Any, count: int) -> list[float]:
    """The payoffs of so many decisions."""
    with about("payoffs"):
        if np.ndim(given) != 1 or isinstance(given, Mapping):
            raise InputError(f"a sequence is needed, but got {given!r}")
        listed = list(given)
        if len(listed) != count:
            raise InputError(f"{count} decisions need as many payoffs, but got {len(listed)}")
    return [payoff_of(one, "payoffs") for one in listed]
