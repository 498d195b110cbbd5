"""The sequences and choices of the paper: a_n, c_n, K, L and n_l, each by name.

Legend: T horizon, dx and dy dimensions of context and decision, α Hölder exponent (`holder`),
M1 and M5 smallest and largest curvature on the unit cube, ρ the ratio of the constants of binning
bias and noise. Where the paper's text slips, docs/reading.md says what is implemented and why.
"""

import math
from collections.abc import Sequence

from continuarm.errors import SettingsError

__all__ = [
    "bins",
    "bins_with_gradients",
    "depth",
    "depth_with_gradients",
    "split_after",
    "step",
    "step_interval",
    "uniform_size",
]

BINS = ("printed", "consistent", "lipschitz")
DEPTHS = ("printed", "consistent")
SPLITS = ("text", "appendix", "lipschitz")


def step_interval(curvature: float) -> tuple[float, float]:
    """The interval `(1/(4 M1), 1/(2 M1)]` of the step a in Proposition 1."""
    return 1 / (4 * curvature), 1 / (2 * curvature)


def step(curvature: float) -> float:
    """The middle of the interval."""
    low, high = step_interval(curvature)
    return (low + high) / 2


def bins(
    rule: str, horizon: int, dx: int, dy: int, holder: float = 1.0, ratio: float = 1.0
) -> int:
    """K, the bins per dimension, rounded to nearest and held so that `(dy+1) K^dx <= T`.

    - `"printed"`: `(dx^(α-2) dy^(α-3) T)^(1/(dx+2α))`, as Theorem 1 prints it;
    - `"consistent"`: `(4 α² ρ² dx^(α-2) dy^(-3) T)^(1/(dx+2α))`, which minimises its bound;
    - `"lipschitz"`: `T^(1/(dx+4))`, the rate of the lower bound, where y*(x) is Lipschitz.

    >>> [bins(rule, 10**6, dx=1, dy=2) for rule in ("printed", "consistent", "lipschitz")]
    [63, 79, 16]
    """
    if dx == 0:
        return 1
    if rule == "printed":
        size = dx ** (holder - 2) * dy ** (holder - 3) * horizon
        power = 1 / (dx + 2 * holder)
    elif rule == "consistent":
        size = 4 * (holder * ratio) ** 2 * dx ** (holder - 2) * dy**-3.0 * horizon
        power = 1 / (dx + 2 * holder)
    elif rule == "lipschitz":
        size, power = float(horizon), 1 / (dx + 4)
    else:
        raise _unknown("bins", BINS, rule)
    return _held(size**power, horizon, dx, dy)


def bins_with_gradients(horizon: int, dx: int, dy: int, holder: float = 1.0) -> int:
    """K of the Robbins–Monro variant, `T^(1/(dx+α))`: its error falls like 1/n, not 1/√n."""
    return 1 if dx == 0 else _held(horizon ** (1 / (dx + holder)), horizon, dx, 0)


def depth(
    rule: str, horizon: int, dx: int, dy: int, holder: float = 1.0, ratio: float = 1.0
) -> int:
    """L, the deepest level, rounded to nearest and held so that `(dy+1) 2^(L dx) <= T`.

    - `"printed"`: `(log T + 2 log α - 3 log dy + 2 log dx) / ((dx+2α) log 2)`, as Theorem 2;
    - `"consistent"`: `log2` of the consistent K, which minimises its bound.

    >>> [depth(rule, 10**6, dx=1, dy=2) for rule in ("printed", "consistent")]
    [6, 6]
    """
    if rule not in DEPTHS:
        raise _unknown("depth", DEPTHS, rule)
    if dx == 0:
        return 0
    scale = holder**2 * dy**-3.0 * horizon
    scale *= dx**2 if rule == "printed" else 4 * ratio**2 * dx ** (holder - 2)
    level = round(math.log2(scale) / (dx + 2 * holder))
    deepest = math.log2(horizon / (dy + 1)) / dx
    return max(0, min(level, math.floor(deepest + 1e-9)))


def depth_with_gradients(rule: str, horizon: int, dx: int, dy: int, holder: float = 1.0) -> int:
    """L of the Robbins–Monro variant: `"printed"` as `depth`, `"consistent"` log2 of its own K.

    >>> [depth_with_gradients(rule, 10**6, dx=1, dy=2) for rule in ("printed", "consistent")]
    [6, 9]
    """
    if rule != "consistent":
        return depth(rule, horizon, dx, dy, holder)
    return math.floor(math.log2(bins_with_gradients(horizon, dx, dy, holder)))


def split_after(
    rule: str | Sequence[int], levels: int, holder: float = 1.0, curvature_max: float | None = None
) -> list[int]:
    """n_l, the stencils that a bin of level l completes before it splits, l = 0 .. L-1.

    - `"text"`: `2^(2αl)`, the main text;
    - `"appendix"`: the smallest whole number above `max(64 M5², 2^(1+α))`, the same at each level;
    - `"lipschitz"`: `30·16^l`, the balance for a Lipschitz y*(x) (α = 2);
    - or the numbers themselves, one per level.

    >>> split_after("text", 4), split_after("lipschitz", 3)
    ([1, 4, 16, 64], [30, 480, 7680])
    """
    if not isinstance(rule, str):
        return _explicit(rule, levels)
    if rule == "text":
        return [math.ceil(2 ** (2 * holder * level) - 1e-9) for level in range(levels)]
    if rule == "appendix":
        if curvature_max is None:
            raise SettingsError(
                '`split_after="appendix"` needs `curvature_max` (M5), but got None'
            )
        return [math.floor(max(64 * curvature_max**2, 2 ** (1 + holder))) + 1] * levels
    if rule == "lipschitz":
        return [30 * 16**level for level in range(levels)]
    raise _unknown("split_after", SPLITS, rule)


def uniform_size(horizon: int, dx: int, dy: int, holder: float = 1.0) -> int:
    """K = k of the uniform algorithm, `T^(1/(dx+dy+2α))`, rounded to nearest.

    >>> uniform_size(10**7, dx=1, dy=2)
    25
    """
    return max(1, round(math.pow(horizon, 1 / (dx + dy + 2 * holder))))


def _held(size: float, horizon: int, dx: int, dy: int) -> int:
    most = math.floor(float(horizon / (dy + 1)) ** (1 / dx) + 1e-9)
    return int(max(1, min(round(size), most)))


def _explicit(numbers: Sequence[int], levels: int) -> list[int]:
    whole = [int(n) for n in numbers if float(n) == int(n) and n >= 1]
    if len(whole) != len(numbers) or len(whole) < levels:
        raise SettingsError(
            f"`split_after` must be {levels} whole numbers of at least 1, one per level, "
            f"but got {list(numbers)}"
        )
    return whole[:levels]


def _unknown(option: str, known: tuple[str, ...], value: object) -> SettingsError:
    return SettingsError(f"`{option}` must be a number or one of {list(known)}, but got {value!r}")
