"""What `continuarm first-day` calls: a log's file, the library, the figure."""

import csv
from collections.abc import Sequence
from typing import Any

from continuarm.box import Box
from continuarm.cli.first_day import FROM_LOG, WITH_LOG
from continuarm.cli.parameters import Side
from continuarm.errors import InputError
from continuarm.lab.figures.first_day import cost_curve
from continuarm.planning.first_day import FirstDay, first_day
from continuarm.planning.old_log import first_day_of_log

__all__ = ["draw", "of_log", "of_numbers", "read_columns"]

draw = cost_curve
PERCENTS = ("improvement", "budget")


def of_numbers(given: dict[str, Any]) -> FirstDay:
    """The day of numbers that were given."""
    return first_day(**_options(given, without=WITH_LOG))


def of_log(path: str, given: dict[str, Any]) -> FirstDay:
    """The day of a log in a file."""
    context, decision = _box(given["context"]), _box(given["decision"])
    columns = read_columns(path, (*context.names, *decision.names, given["payoff"]))
    options = _options(given, without=(*FROM_LOG, *WITH_LOG))
    return first_day_of_log(
        columns, payoff=given["payoff"], context=context, decision=decision, **options
    )


def _options(given: dict[str, Any], without: Sequence[str]) -> dict[str, Any]:
    """What was given, with percents as parts."""
    return {
        name: value / 100.0 if name in PERCENTS else value
        for name, value in given.items()
        if name not in without and value is not None
    }


def _box(sides: Sequence[Side]) -> Box:
    names = [side.name for side in sides]
    return Box([side.low for side in sides], [side.high for side in sides], names=names)


def read_columns(path: str, names: Sequence[str]) -> dict[str, list[float]]:
    """These columns of a CSV file with a head, as numbers; those that it lacks are left out."""
    try:
        with open(path, newline="", encoding="utf-8-sig") as file:
            rows = csv.DictReader(file)
            known = [name for name in names if name in (rows.fieldnames or ())]
            columns: dict[str, list[float]] = {name: [] for name in known}
            _check_head(rows.fieldnames or ())
            for row in rows:
                if None in row:
                    raise InputError(
                        f"line {rows.line_num} of the log has more cells than its head"
                    )
                for name in known:
                    columns[name].append(_number(row[name], name, rows.line_num))
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise InputError(f"a log must be a CSV file that can be read, but got {error}") from None
    return columns


def _check_head(names: Sequence[str]) -> None:
    twice = sorted({name for name in names if list(names).count(name) > 1})
    if twice:
        raise InputError(f"the columns of a log must have different names, but got {twice} twice")


def _number(text: str | None, name: str, line: int) -> float:
    try:
        return float(text or "")
    except ValueError:
        raise InputError(
            f"the column {name!r} of the log must hold numbers, but line {line} has {text!r}"
        ) from None
