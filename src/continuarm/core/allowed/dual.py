"""The peak of a strictly concave quadratic between limits: the dual method of Goldfarb and Idnani.

From the peak without limits, the limit that is most violated is made active, and the others are
kept or let go so that all multipliers stay positive (eq. 3 and 4). It needs no feasible start, and
finds out where there is none.

Legend: minimise ½ xᵀGx + a·x, so that a is less the slope and G less the Hessian. Limits are
numbered: m rows, then d low edges, then d high edges. q of them are active, with normals N that
point inwards and multipliers u; [R; 0] = JᵀN with JJᵀ = G⁻¹.
"""

import math

from continuarm.core.allowed.bundles import Allowed, Numbers, Room, Table

__all__ = ["HELD", "NO_NUMBER", "NO_POINT", "find_peak", "reset_basis"]

A, U, D, Z, RATIO, ACTIVE, SIDE, ACROSS = range(8)  # rows of room.vectors
HELD = 3  # of room.found: a limit that is violated by less holds
NO_POINT, NO_NUMBER = -1, -2
DEPENDENT = 1e-11  # of a normal outside the span of the active ones: it is inside


def excess(rows: Table, bounds: Numbers, low: Numbers, high: Numbers, i: int, x: Numbers) -> float:
    """By how much limit i is violated."""
    m, d = len(bounds), len(low)
    if i < m:
        total = -bounds[i]
        for j in range(d):
            total += rows[i][j] * x[j]
        return total
    if i < m + d:
        return low[i - m] - x[i - m]
    return x[i - m - d] - high[i - m - d]


def turn_normal(
    rows: Table, m: int, d: int, i: int, side: float, basis: Table, turned: Numbers
) -> None:
    """Jᵀn, n the normal of limit i that points inwards."""
    for k in range(d):
        if i < m:
            total = 0.0
            for j in range(d):
                total -= rows[i][j] * basis[j][k]
            turned[k] = side * total
        elif i < m + d:
            turned[k] = basis[i - m][k]
        else:
            turned[k] = -basis[i - m - d][k]


def reset_basis(d: int, room: Room) -> None:
    """J = I, as for G = I."""
    for i in range(d):
        for j in range(d):
            room.basis[i][j] = 1.0 if i == j else 0.0
            room.shifted[i][j] = 1.0 if i == j else 0.0


def rotate_columns(basis: Table, d: int, k: int, cosine: float, sine: float) -> None:
    """Rotate columns k and k + 1."""
    for i in range(d):
        left, right = basis[i][k], basis[i][k + 1]
        basis[i][k] = cosine * left + sine * right
        basis[i][k + 1] = cosine * right - sine * left


def activate(room: Room, d: int, q: int, i: int, side: float, multiplier: float) -> None:
    """Limit i becomes the last active one; Jᵀn is in its vector."""
    turned = room.vectors[D]
    for k in range(d - 2, q - 1, -1):
        length = math.sqrt(turned[k] * turned[k] + turned[k + 1] * turned[k + 1])
        if length > 0.0:
            cosine, sine = turned[k] / length, turned[k + 1] / length
            turned[k], turned[k + 1] = length, 0.0
            rotate_columns(room.basis, d, k, cosine, sine)
    for k in range(q + 1):
        room.triangle[k][q] = turned[k]
    room.vectors[ACTIVE][q] = i
    room.vectors[SIDE][q] = side
    room.vectors[U][q] = multiplier


def release(room: Room, d: int, q: int, gone: int) -> None:
    """The active limit at this place is let go."""
    triangle = room.triangle
    for k in range(gone, q - 1):
        for v in (ACTIVE, SIDE, U):
            room.vectors[v][k] = room.vectors[v][k + 1]
        for i in range(k + 2):
            triangle[i][k] = triangle[i][k + 1]
    for k in range(gone, q - 1):
        length = math.sqrt(
            triangle[k][k] * triangle[k][k] + triangle[k + 1][k] * triangle[k + 1][k]
        )
        if length > 0.0:
            cosine, sine = triangle[k][k] / length, triangle[k + 1][k] / length
            triangle[k][k], triangle[k + 1][k] = length, 0.0
            for column in range(k + 1, q - 1):
                above, below = triangle[k][column], triangle[k + 1][column]
                triangle[k][column] = cosine * above + sine * below
                triangle[k + 1][column] = cosine * below - sine * above
            rotate_columns(room.basis, d, k, cosine, sine)


def fill_ways(room: Room, d: int, q: int) -> float:
    """Fill z = J₂J₂ᵀn, the way of x, and r = R⁻¹J₁ᵀn, that of the multipliers; z·n, or 0 where n
    depends on the active normals (eq. 3)."""
    turned, way, ratio = room.vectors[D], room.vectors[Z], room.vectors[RATIO]
    all_of_it, outside = 0.0, 0.0
    for k in range(d):
        all_of_it += turned[k] * turned[k]
        if k >= q:
            outside += turned[k] * turned[k]
    for i in range(d):
        way[i] = 0.0
        for k in range(q, d):
            way[i] += room.basis[i][k] * turned[k]
    for i in range(q - 1, -1, -1):
        total = turned[i]
        for k in range(i + 1, q):
            total -= room.triangle[i][k] * ratio[k]
        ratio[i] = total / room.triangle[i][i]
    return outside if outside > DEPENDENT * DEPENDENT * all_of_it else 0.0


def make_active(
    allowed: Allowed, room: Room, low: Numbers, high: Numbers, q: int, i: int, x: Numbers
) -> int:
    """Go along until limit i holds (eq. 4); how many are active then, or NO_POINT."""
    rows, bounds, d = allowed.rows, room.bounds, len(low)
    m, u, ratio = len(bounds), room.vectors[U], room.vectors[RATIO]
    violated = excess(rows, bounds, low, high, i, x)
    side = -1.0 if i < allowed.equal and violated < 0.0 else 1.0
    multiplier = 0.0
    for _ in range(q + d + 2):
        violated = side * excess(rows, bounds, low, high, i, x)
        turn_normal(rows, m, d, i, side, room.basis, room.vectors[D])
        slant = fill_ways(room, d, q)
        if slant == 0.0 and i < allowed.equal and violated <= 10.0 * room.found[HELD]:
            return q  # an equality that follows from the others
        step, gone = math.inf, -1
        for k in range(q):
            is_equality = room.vectors[ACTIVE][k] < allowed.equal
            if not is_equality and ratio[k] > 1e-14 and u[k] < step * ratio[k]:
                step, gone = u[k] / ratio[k], k
        whole = violated / slant if slant > 0.0 else math.inf
        if whole == math.inf and gone < 0:
            return NO_POINT
        partial = step < whole
        step = step if partial else whole
        if slant > 0.0:
            for j in range(d):
                x[j] += step * room.vectors[Z][j]
        for k in range(q):
            u[k] -= step * ratio[k]
        multiplier += step
        if not partial:
            activate(room, d, q, i, side, multiplier)
            return q + 1
        release(room, d, q, gone)
        q -= 1
    return NO_NUMBER


def most_violated(
    allowed: Allowed, room: Room, low: Numbers, high: Numbers, q: int, x: Numbers
) -> int:
    """The limit that is violated most and not active; -1: all hold."""
    m, d, worst, found = len(room.bounds), len(low), room.found[HELD], -1
    for i in range(allowed.equal, m + 2 * d):
        if excess(allowed.rows, room.bounds, low, high, i, x) > worst:
            is_active = False
            for k in range(q):
                if room.vectors[ACTIVE][k] == i:
                    is_active = True
            if not is_active:
                worst, found = excess(allowed.rows, room.bounds, low, high, i, x), i
    return found


def polish(allowed: Allowed, room: Room, low: Numbers, high: Numbers, q: int, x: Numbers) -> None:
    """Take rounding out of x: the gradient along the active limits, then their violations."""
    d, push, across = len(low), room.vectors[Z], room.vectors[ACROSS]
    for i in range(d):
        push[i] = room.vectors[A][i]
        for j in range(d):
            push[i] += room.shifted[i][j] * x[j]
    for k in range(q, d):
        along = 0.0
        for i in range(d):
            along += room.basis[i][k] * push[i]
        for i in range(d):
            x[i] -= along * room.basis[i][k]
    for k in range(q):
        i = int(room.vectors[ACTIVE][k])
        total = room.vectors[SIDE][k] * excess(allowed.rows, room.bounds, low, high, i, x)
        for before in range(k):
            total -= room.triangle[before][k] * across[before]
        across[k] = total / room.triangle[k][k]
    for k in range(q):
        for i in range(d):
            x[i] += room.basis[i][k] * across[k]


def find_peak(allowed: Allowed, low: Numbers, high: Numbers, room: Room, x: Numbers) -> int:
    """Fill x with the peak; how many limits are active, or NO_POINT.

    G is `room.shifted`, J with JJᵀ = G⁻¹ is `room.basis`, a is a vector of the room, the bounds of
    the rows are the room's.
    """
    d, q = len(low), 0
    first, turned = room.vectors[A], room.vectors[D]
    for k in range(d):
        turned[k] = 0.0
        for i in range(d):
            turned[k] -= room.basis[i][k] * first[i]
    for i in range(d):
        x[i] = 0.0
        for k in range(d):
            x[i] += room.basis[i][k] * turned[k]
    for i in range(allowed.equal):
        q = make_active(allowed, room, low, high, q, i, x)
        if q < 0:
            return q
    done = False
    for _ in range(10 * (len(room.bounds) + 2 * d) + 50):
        polish(allowed, room, low, high, q, x)
        i = most_violated(allowed, room, low, high, q, x)
        done = i < 0
        if done:
            break
        q = make_active(allowed, room, low, high, q, i, x)
        if q < 0:
            return q
    for j in range(d):
        done = done and x[j] == x[j]
        x[j] = min(max(x[j], low[j]), high[j])
    return q if done else NO_NUMBER
