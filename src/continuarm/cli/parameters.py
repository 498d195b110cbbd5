"""What options take: numbers as people write them, and sides of boxes."""

from typing import Any, NamedTuple

import click

__all__ = ["PORT", "Side", "SideOfBox", "WholeNumber"]


class WholeNumber(click.ParamType[int]):
    """A whole number; 1e6 and 100000.0 are accepted."""

    name = "number"

    def __init__(self, least: int, most: int = 2**53) -> None:
        self.least, self.most = least, most

    def convert(self, value: Any, param: Any, ctx: Any) -> int:
        """Parse the text."""
        try:
            number = float(value)
            if number == int(number) and self.least <= number <= self.most:
                return int(value) if str(value).isdigit() else int(number)
        except (ValueError, OverflowError):
            pass
        rule = f">= {self.least}" if self.most == 2**53 else f"from {self.least} to {self.most}"
        self.fail(f"a whole number {rule} is needed, but got {value!r}", param, ctx)


PORT = WholeNumber(0, 65535)


class Side(NamedTuple):
    """A named side of a box."""

    name: str
    low: float
    high: float


class SideOfBox(click.ParamType[Side]):
    """`name:low:high`, as in price:1:9."""

    name = "name:low:high"

    def convert(self, value: Any, param: Any, ctx: Any) -> Side:
        """Parse the text; names may have colons."""
        if isinstance(value, Side):
            return value
        try:
            name, low, high = str(value).rsplit(":", 2)
            return Side(name, float(low), float(high))
        except ValueError:
            self.fail(f"`name:low:high` is needed, but got {value!r}", param, ctx)
