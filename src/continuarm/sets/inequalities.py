"""Linear inequalities as people write them: "small <= large - 0.5". Nothing is evaluated.

inequality:  sum ("<=" | ">=" | "==" | "=") sum
sum:         ["+" | "-"] term {("+" | "-") term}
term:        factor {("*" | "/") factor}
factor:      number | name | "(" sum ")"
"""

import re
from collections.abc import Sequence
from fractions import Fraction
from typing import NamedTuple, NoReturn

from continuarm.errors import SettingsError

__all__ = ["Row", "parse", "written"]

NUMBER = re.compile(r"([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]{1,3})?(?![\w.])")
RELATION = re.compile(r"<=|>=|==|=")
LONGEST, DEEPEST = 10_000, 50


class Row(NamedTuple):
    """`factors · value <= bound`, or `==`."""

    factors: list[float]
    bound: float
    is_equality: bool


class Linear(NamedTuple):
    """A constant and factors of coordinates, exact."""

    constant: Fraction
    factors: dict[str, Fraction]

    def plus(self, other: "Linear", times: Fraction) -> "Linear":
        """This and so many times the other."""
        factors = dict(self.factors)
        for name, factor in other.factors.items():
            factors[name] = factors.get(name, Fraction(0)) + times * factor
        return Linear(self.constant + times * other.constant, factors)


NOTHING = Linear(Fraction(0), {})


def parse(text: str, names: Sequence[str], number: int) -> Row:
    """The row of one inequality; `number` is the one that errors name."""
    return _Parser(text, names, number).row()


class _Parser:
    """Reads one inequality from left to right."""

    def __init__(self, text: str, names: Sequence[str], number: int) -> None:
        self.text, self.number, self.place = text, number, 0
        self.names = sorted(names, key=len, reverse=True)  # the longest first
        self.order = list(names)
        if len(text) > LONGEST:
            raise SettingsError(
                f"row {number} must have at most {LONGEST} characters, but got {len(text)}"
            )

    def row(self) -> Row:
        """The whole inequality."""
        left = self.sum(0)
        relation = self.relation()
        right = self.sum(0)
        if self.here():
            self.refuse("an inequality must end after its second side")
        if relation == ">=":
            left, right = right, left
        both = left.plus(right, Fraction(-1))
        if not any(both.factors.values()):
            raise SettingsError(f"row {self.number} must hold a coordinate, but got {self.text!r}")
        factors = [self.as_float(both.factors.get(name, Fraction(0))) for name in self.order]
        return Row(factors, self.as_float(-both.constant), relation in ("=", "=="))

    def relation(self) -> str:
        """What stands between the sides."""
        self.here()
        found = RELATION.match(self.text, self.place)
        if found is None:
            self.refuse("`<=`, `>=` or `==` must stand between the sides of an inequality")
        self.place = found.end()
        return found.group()

    def sum(self, depth: int) -> Linear:
        """Terms with signs between them."""
        total, sign = NOTHING, self.sign() or 1
        while sign:
            total = total.plus(self.term(depth), Fraction(sign))
            sign = self.sign()
        return total

    def sign(self) -> int:
        """1 or -1; 0: there is no sign here."""
        found = {"+": 1, "-": -1}.get(self.here(), 0)
        self.place += abs(found)
        return found

    def term(self, depth: int) -> Linear:
        """Factors, of which one may hold coordinates."""
        product = self.factor(depth)
        while self.here() in ("*", "/"):
            place, operator = self.place, self.here()
            self.place += 1
            other = self.factor(depth)
            if operator == "/":
                if other.factors or not other.constant:
                    self.refuse("a sum must be divided by a number that is not 0", place)
                product = NOTHING.plus(product, 1 / other.constant)
            elif product.factors and other.factors:
                self.refuse("coordinates must not be multiplied with one another", place)
            elif other.factors:
                product = NOTHING.plus(other, product.constant)
            else:
                product = NOTHING.plus(product, other.constant)
        return product

    def factor(self, depth: int) -> Linear:
        """A number, a coordinate or a sum in parentheses."""
        if self.here() == "(":
            return self.inside(depth + 1)
        for name in self.names:
            end = self.place + len(name)
            if self.text.startswith(name, self.place) and not _goes_on(self.text, name, end):
                self.place = end
                return Linear(Fraction(0), {name: Fraction(1)})
        found = NUMBER.match(self.text, self.place)
        if found is None:
            self.refuse(f"a number or one of {self.order} must stand here")
        self.place = found.end()
        return Linear(Fraction(found.group()), {})

    def inside(self, depth: int) -> Linear:
        """A sum in parentheses."""
        if depth > DEEPEST:
            self.refuse(f"parentheses must not be deeper than {DEEPEST}")
        self.place += 1
        total = self.sum(depth)
        if self.here() != ")":
            self.refuse("parentheses must be closed")
        self.place += 1
        return total

    def here(self) -> str:
        """The next character that is no space; "" at the end."""
        while self.text[self.place : self.place + 1].isspace():
            self.place += 1
        return self.text[self.place : self.place + 1]

    def refuse(self, rule: str, place: int | None = None) -> NoReturn:
        """Raise the error for what stands at a place."""
        place = self.place if place is None else place
        rest = self.text[place : place + 20]
        got = f"{rest!r} at place {place + 1}" if rest else "its end"
        raise SettingsError(f"{rule}, but got {got} in row {self.number}, {self.text[:200]!r}")

    def as_float(self, number: Fraction) -> float:
        """The nearest float, which must be finite, and 0 only for 0."""
        try:
            found = float(number)
        except OverflowError:
            found = float("inf")
        if abs(found) == float("inf") or (number and not found):
            raise SettingsError(
                f"the numbers of row {self.number} must be finite floats, but got "
                f"{self.text[:200]!r}"
            )
        return found


def _goes_on(text: str, name: str, end: int) -> bool:
    """Whether a longer word stands there than this name."""
    following = text[end : end + 1]
    return _is_of_word(name[-1:]) and _is_of_word(following)


def _is_of_word(character: str) -> bool:
    return character.isalnum() or character == "_"


def written(factors: Sequence[float], relation: str, bound: float, names: Sequence[str]) -> str:
    """A row as people write it."""
    text = ""
    for factor, name in zip(factors, names, strict=True):
        if factor:
            sign = "-" if factor < 0 else "+"
            size = "" if abs(factor) == 1 else f"{abs(factor)!r} * "
            text += f" {sign} {size}{name}" if text else f"{'-' * (factor < 0)}{size}{name}"
    return f"{text} {relation} {bound!r}"
