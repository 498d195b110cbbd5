"""Numbers of arrays, read and written in few words.

Numba writes the same code for every kind of array and index. Most of ours are rows and tables of
floats, indexed by whole numbers: less code is written for these, so there is less to compile.
"""

import operator
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cpu

__all__ = ["items_in_few_words"]

kinds: Any = types
context: Any = cpu.CPUContext
constant: Any = ir.Constant
implementation_of = context.get_function  # noted before it is changed, as in `machine_code.py`

ROW, TABLE = kinds.Array(kinds.float64, 1, "C"), kinds.Array(kinds.float64, 2, "C")
ITEMS = {(ROW, kinds.intp), (TABLE, kinds.UniTuple(kinds.intp, 2))}
GETS, SETS = operator.getitem, operator.setitem

Writer = Callable[..., Any]


@contextmanager
def items_in_few_words() -> Iterator[None]:
    """Write little for `row[i]` and `table[i, j]`, while something is compiled."""

    def found(self: Any, function: Any, signature: Any, *more: Any, **named: Any) -> Any:
        arguments = tuple(signature.args)
        if arguments[:2] in ITEMS and not self.enable_boundscheck:
            verb = getattr(function, "typing_key", None)
            if verb is GETS:
                return _getter(self, arguments[0])
            if verb is SETS and arguments[2] == kinds.float64:
                return _setter(self, arguments[0])
        return implementation_of(self, function, signature, *more, **named)

    context.get_function = found
    try:
        yield
    finally:
        context.get_function = implementation_of


def _getter(target: Any, kind: Any) -> Writer:
    def write(builder: Any, values: Any, loc: Any = None) -> Any:
        return builder.load(_address(target, builder, kind, values[0], values[1]))

    return write


def _setter(target: Any, kind: Any) -> Writer:
    def write(builder: Any, values: Any, loc: Any = None) -> Any:
        builder.store(values[2], _address(target, builder, kind, values[0], values[1]))
        return target.get_dummy_value()

    return write


def _address(target: Any, builder: Any, kind: Any, array: Any, index: Any) -> Any:
    """Where an item lies; indices below 0 count from the end."""
    model = target.data_model_manager[kind]
    data = builder.extract_value(array, model.get_field_position("data"))
    shape = builder.extract_value(array, model.get_field_position("shape"))
    place = None
    for axis in range(kind.ndim):
        length = builder.extract_value(shape, axis)
        one = index if kind.ndim == 1 else builder.extract_value(index, axis)
        from_end = builder.icmp_signed("<", one, constant(one.type, 0))
        one = builder.select(from_end, builder.add(one, length), one)
        place = one if place is None else builder.add(builder.mul(place, length), one)
    return builder.gep(data, [place])
