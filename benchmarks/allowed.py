"""How good, and how fast, the best allowed decision of a surface is found.

python -m benchmarks.allowed [--surfaces 200] [--write docs/guards.md]
"""

import argparse
import itertools
import time
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numba import types

import continuarm as ca
from continuarm.core.allowed.bundles import Allowed
from continuarm.core.allowed.compiled import ALLOWED, best, room_for, to_units
from continuarm.core.compiling import VECTOR, Array, compile_entry, in_python
from continuarm.sets import Decisions, allowed_of, box_of
from continuarm.table import Table

SIZES = {2: 30, 3: 21, 4: 11, 5: 8}  # values of each coordinate, by dimension
ROWS = (0, 3, 6, 10)
EXACT = 1e-12
HEADING = "## Measured\n"


class Surface(NamedTuple):
    """slope·v + ½ vᵀHv."""

    slope: Array
    hessian: Array

    def __call__(self, v: Array) -> Any:
        return v @ self.slope + 0.5 * ((v @ self.hessian) * v).sum(axis=-1)

    @property
    def coefficients(self) -> tuple[Array, Array, Array]:
        """Slope, diagonal, and what is above it; nothing where all of that is 0."""
        above = self.hessian[np.triu_indices(len(self.slope), 1)]
        return self.slope, np.diag(self.hessian).copy(), above if above.any() else np.empty(0)


def rotated(rng: np.random.Generator, d: int, bent: float = 0.0) -> Surface:
    """Curvatures from 0.2 to 4 in directions of any kind; the peak may lie outside."""
    turn, _ = np.linalg.qr(rng.normal(size=(d, d)))
    hessian = turn @ np.diag(bent - 4.0 * np.exp(rng.uniform(-3, 0, d))) @ turn.T
    hessian = 0.5 * (hessian + hessian.T)
    return Surface(-hessian @ rng.uniform(-1.2, 1.2, d), hessian)


def cut(box: ca.Box, m: int, rng: np.random.Generator) -> Decisions:
    """A box, with m rows of small whole numbers that leave its middle."""
    if not m:
        return box
    rows = rng.integers(-3, 4, (m, box.dim)) * 1.0
    rows[~rows.any(axis=1)] = 1.0
    return ca.Polytope(box, rows, rows @ np.floor(box.centre) + rng.uniform(0, box.span[0] / 2, m))


def lattice_of(d: int, n: int, m: int, rng: np.random.Generator) -> Decisions:
    """Whole numbers from 0 to n - 1, with m rows."""
    return cut(ca.Box(np.zeros(d), np.full(d, n - 1.0), spacing=1), m, rng)


@cache
def _repeated() -> Any:
    """The whole of a decision, from the surface to units, so many times."""

    def entry(allowed, slope, bends, twists, low, high, work, v, value, times):  # type: ignore[no-untyped-def]
        done = True
        for _ in range(times):
            done = best(allowed, slope, bends, twists, low, high, work, v) and done
            lowest, highest = allowed.edges[0], allowed.edges[1]
            done = to_units(allowed, v, lowest, highest, work, value) and done
        return done

    return compile_entry(entry, types.boolean(ALLOWED, *(VECTOR,) * 8, types.int64))


def decide(allowed: Allowed, surface: Surface, times: int = 1) -> tuple[Array, float]:
    """The value handed out, and the seconds that took."""
    d = len(surface.slope)
    v, value, low, high = np.zeros(d), np.zeros(d), -np.ones(d), np.ones(d)
    work = np.full(in_python(room_for)(d, len(allowed.bounds)), np.nan)
    began = time.perf_counter()
    done = _repeated()(allowed, *surface.coefficients, low, high, work, v, value, times)
    took = (time.perf_counter() - began) / times
    if not done:
        raise RuntimeError("nothing allowed was found")
    return value, took


def gap_to_brute_force(decision: Decisions, surface: Surface) -> float:
    """What the best allowed value is better by, as a part of what it is better than the mean."""
    box, n = box_of(decision), int(decision.high[0]) + 1
    grid = np.array(list(itertools.product(range(n), repeat=box.dim)), np.float64)
    if isinstance(decision, ca.Polytope):
        grid = grid[(grid @ decision.A.T <= decision.b).all(axis=1)]
    heights = surface(grid / (n - 1) * 2.0 - 1.0)
    value, _ = decide(allowed_of(decision), surface)
    if not decision.allows(value):
        raise RuntimeError(f"{value} is not allowed by {decision}")
    gap = heights.max() - surface(value / (n - 1) * 2.0 - 1.0)
    return float(gap / max(heights.max() - heights.mean(), 1e-12))


def fastest(decision: Decisions, surface: Surface) -> float:
    """Seconds of a decision; the best of five, because the machine has other work, too."""
    allowed = allowed_of(decision)
    return min(decide(allowed, surface, 10)[1] for _ in range(5))


def microseconds(times: list[float]) -> list[float]:
    """The median, and what 95 of 100 stay within."""
    return [round(1e6 * float(np.quantile(times, part)), 1) for part in (0.5, 0.95)]


def gaps_table(surfaces: int) -> Table:
    """How far the value that is found is from the best of all allowed ones."""
    found = []
    for (d, n), m in itertools.product(SIZES.items(), ROWS):
        rng = np.random.default_rng(100 * d + m)
        gaps, times = [], []
        for _ in range(surfaces):
            decision, surface = lattice_of(d, n, m, rng), rotated(rng, d)
            gaps.append(max(gap_to_brute_force(decision, surface), 0.0))
            times.append(fastest(decision, surface))
        exact = sum(gap <= EXACT for gap in gaps) / surfaces
        mean, worst = (0.0 if g <= EXACT else g for g in (float(np.mean(gaps)), max(gaps)))
        found.append(
            (d, n, m, f"{exact:.1%}", f"{mean:.2g}", f"{worst:.2g}", *microseconds(times))
        )
        print(found[-1], flush=True)
    columns = ("dy", "values each", "rows", "exact", "mean gap", "worst gap", "µs", "95 % within")
    return Table.of(columns, found)


def speed_table(surfaces: int) -> Table:
    """Microseconds of a decision without a spacing."""
    found = []
    for d, m in ((1, 1), (2, 3), (5, 1), (5, 10), (10, 10), (20, 20)):
        rng = np.random.default_rng(100 * d + m)
        times = []
        for _ in range(surfaces):
            decision = cut(ca.Box(np.zeros(d), np.full(d, 10.0)), m, rng)
            times.append(fastest(decision, rotated(rng, d)))
        found.append((d, m, *microseconds(times)))
        print(found[-1], flush=True)
    return Table.of(("dy", "rows", "µs", "95 % within"), found)


def section(surfaces: int) -> str:
    """The last section of the page."""
    return f"""{HEADING}
By `python -m benchmarks.allowed --write docs/guards.md`, on {surfaces} surfaces per line: rotated,
with curvatures from 0.2 to 4, the peak in the box or somewhat outside it. Rows are of small whole
numbers and leave the middle. Time is that of one decision, from the surface to units, in compiled
code on one core of a shared machine.

The best allowed value against brute force. A gap is what the best of all allowed values is better
by, as a part of what it is better than their mean:

{gaps_table(surfaces).markdown()}

Without a spacing, where the peak is exact:

{speed_table(surfaces).markdown()}
"""


def main() -> None:
    """Measure, and write the section."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--surfaces", type=int, default=200)
    parser.add_argument("--write", type=Path)
    given = parser.parse_args()
    text = section(given.surfaces)
    print(text)
    if given.write:
        before = given.write.read_text().split(HEADING)[0]
        given.write.write_text(before + text)


if __name__ == "__main__":
    main()
