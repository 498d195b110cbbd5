"""The random numbers of a decision: a function of a seed and of the decision's draw number.

Philox (Salmon, Moraes, Dror and Shaw, *Parallel random numbers: as easy as 1, 2, 3*, 2011), with
four words of 64 bits and ten rounds, turns a counter and a key into four random words. The key is
the seed. Block k of draw d has the counter (k, 0, d mod 2^64, d div 2^64).

A word w becomes the number u = (⌊w / 2^12⌋ + ½) / 2^52 in (0, 1), which is exact, and that the
standard normal number Φ⁻¹(u), by Wichura's algorithm AS 241 (PPND16, 1988). The map uses sums,
products, quotients, and beyond 1.44 standard deviations one logarithm and one root.
"""

import math
from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic
from numpy.typing import NDArray

from continuarm.core.compiling import Array, compiled, compiled_large

__all__ = ["Key", "chance", "fill_normal", "fill_words", "normal"]

Key = NDArray[np.uint64]

ROUNDS = 10
MULTIPLIERS = np.uint64(0xD2E7470EE14C6C93), np.uint64(0xCA5A826395121157)
WEYL = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xBB67AE8584CAA73B)
ZERO, TWELVE = np.uint64(0), np.uint64(12)
FAR_BLOCK = 2**62  # no decision has so many normal numbers

# the coefficients of AS 241, lowest power first: near the middle, in the tail, far in the tail
NEAR = (
    3.3871328727963666080e0, 1.3314166789178437745e2, 1.9715909503065514427e3,
    1.3731693765509461125e4, 4.5921953931549871457e4, 6.7265770927008700853e4,
    3.3430575583588128105e4, 2.5090809287301226727e3,
)  # fmt: skip
NEAR_BELOW = (
    1.0, 4.2313330701600911252e1, 6.8718700749205790830e2, 5.3941960214247511077e3,
    2.1213794301586595867e4, 3.9307895800092710610e4, 2.8729085735721942674e4,
    5.2264952788528545610e3,
)  # fmt: skip
TAIL = (
    1.42343711074968357734e0, 4.63033784615654529590e0, 5.76949722146069140550e0,
    3.64784832476320460504e0, 1.27045825245236838258e0, 2.41780725177450611770e-1,
    2.27238449892691845833e-2, 7.74545014278341407640e-4,
)  # fmt: skip
TAIL_BELOW = (
    1.0, 2.05319162663775882187e0, 1.67638483018380384940e0, 6.89767334985100004550e-1,
    1.48103976427480074590e-1, 1.51986665636164571966e-2, 5.47593808499534494600e-4,
    1.05075007164441684324e-9,
)  # fmt: skip
FAR = (
    6.65790464350110377720e0, 5.46378491116411436990e0, 1.78482653991729133580e0,
    2.96560571828504891230e-1, 2.65321895265761230930e-2, 1.24266094738807843860e-3,
    2.71155556874348757815e-5, 2.01033439929228813265e-7,
)  # fmt: skip
FAR_BELOW = (
    1.0, 5.99832206555887937690e-1, 1.36929880922735805310e-1, 1.48753612908506148525e-2,
    7.86869131145613259100e-4, 1.84631831751005468180e-5, 1.42151175831644588870e-7,
    2.04426310338993978564e-15,
)  # fmt: skip


@intrinsic
def _high_bits(typing: Any, a: Any, b: Any) -> Any:
    """The upper 64 bits of the product of two words."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        wide = ir.IntType(128)
        one, two = (builder.zext(argument, wide) for argument in arguments)
        product = builder.lshr(builder.mul(one, two), ir.Constant(wide, 64))
        return builder.trunc(product, ir.IntType(64))

    return types.uint64(types.uint64, types.uint64), generate


_high: Any = _high_bits  # called without the typing context


@compiled_large
def _block(key: Key, block: int, draw: Any, server: Any) -> Any:
    """Four random words."""
    a, b, c, d = np.uint64(block), ZERO, draw, server
    first, second = key[0], key[1]
    for _ in range(ROUNDS):
        high_a, low_a = _high(MULTIPLIERS[0], a), MULTIPLIERS[0] * a
        high_c, low_c = _high(MULTIPLIERS[1], c), MULTIPLIERS[1] * c
        a, b, c, d = high_c ^ b ^ first, low_c, high_a ^ d ^ second, low_a
        first += WEYL[0]
        second += WEYL[1]
    return a, b, c, d


@compiled
def fill_words(key: Key, draw: Any, server: Any, words: Any) -> None:
    """The words of a draw; its lower and upper 64 bits are `draw` and `server`."""
    count = words.shape[0]
    for k in range(0, count, 4):
        four = _block(key, k // 4, draw, server)
        for j in range(min(4, count - k)):
            words[k + j] = four[j]


@compiled
def chance(key: Key, draw: Any, server: Any) -> float:
    """A uniform number of a draw, in (0, 1), which none of its normal numbers knows of."""
    return (float(_block(key, FAR_BLOCK, draw, server)[0] >> TWELVE) + 0.5) * 2.0**-52


@compiled
def _ratio(over: Any, under: Any, r: float) -> float:
    above, below = over[7], under[7]
    for k in range(6, -1, -1):
        above, below = above * r + over[k], below * r + under[k]
    return above / below  # type: ignore[no-any-return]


@compiled_large
def normal(word: Any) -> float:
    """The standard normal number of a word."""
    u = (float(word >> TWELVE) + 0.5) * 2.0**-52
    q = u - 0.5
    if abs(q) <= 0.425:
        return q * _ratio(NEAR, NEAR_BELOW, 0.180625 - q * q)
    r = math.sqrt(-math.log(u if q < 0.0 else 1.0 - u))
    size = _ratio(TAIL, TAIL_BELOW, r - 1.6) if r <= 5.0 else _ratio(FAR, FAR_BELOW, r - 5.0)
    return -size if q < 0.0 else size


@compiled
def fill_normal(key: Key, draw: Any, server: Any, xi: Array) -> None:
    """The standard normal numbers of a draw."""
    k, count = 0, xi.shape[0]
    while k < count:
        for word in _block(key, k // 4, draw, server):
            if k < count:
                xi[k] = normal(word)
            k += 1
