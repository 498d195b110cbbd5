"""`continuarm first-day`: parse, call, print."""

import json
from collections.abc import Sequence
from typing import Any

import click

from continuarm.cli.parameters import SideOfBox, WholeNumber

__all__ = ["FROM_LOG", "WITH_LOG", "first_day"]

FROM_LOG = ("noise", "mean", "dimensions", "contexts")
WITH_LOG = ("payoff", "context", "decision")
UNSET: tuple[Any, ...] = (None, ())


@click.command("first-day")
@click.option(
    "--decisions",
    type=WholeNumber(1),
    default="5000",
    show_default=True,
    help="Decisions of the day.",
)
@click.option("--noise", type=float, help="Standard deviation of a payoff around its mean.")
@click.option(
    "--range",
    type=float,
    help="How much the mean payoff differs between the best and the worst decision of the box.",
)
@click.option("--mean", type=float, help="Mean payoff of the present rule.")
@click.option("--dimensions", type=WholeNumber(1), help="Of the decision; 1 by default.")
@click.option("--contexts", type=WholeNumber(0), help="Dimensions of the context; 0 by default.")
@click.option(
    "--improvement",
    type=float,
    default=5.0,
    show_default=True,
    help="What should be seen, in percent of the mean payoff; of the range, if there is no mean.",
)
@click.option(
    "--reach",
    type=float,
    default=0.1,
    show_default=True,
    help="How far from the start it may decide, as a part of each side of the box.",
)
@click.option("--budget", type=float, help="What the day may cost, in percent of the mean payoff.")
@click.option(
    "--log",
    metavar="FILE.csv",
    help="A log of the present rule, from which noise, mean and curvature are estimated.",
)
@click.option("--payoff", metavar="COLUMN", help="The column of the log with the payoffs.")
@click.option(
    "--context",
    type=SideOfBox(),
    multiple=True,
    help="A column of the log with a context, and its box: age:18:90. Again for several.",
)
@click.option(
    "--decision",
    type=SideOfBox(),
    multiple=True,
    help="A column of the log with a decision, and its box: price:1:9. Again for several.",
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object and nothing else.")
@click.option(
    "--plot",
    metavar="FILE",
    help="Draw the cost so far against decisions to this file (.png, .svg, .pdf).",
)
def first_day(log: str | None, as_json: bool, plot: str | None, **given: Any) -> None:
    """Say what the first day can cost, and what it can show."""
    from continuarm.cli import planning

    _check_given(log, given)
    day = planning.of_numbers(given) if log is None else planning.of_log(log, given)
    if plot is not None:
        planning.draw(day, plot)
    if as_json:
        click.echo(json.dumps(day.to_dict(), allow_nan=False))
    else:
        click.echo(str(day))
        if plot is not None:
            click.echo(f"\nfigure: {plot}")


def _check_given(log: str | None, given: dict[str, Any]) -> None:
    """Numbers or a log, with what belongs to it."""
    if log is None:
        _check("without `--log`", given, needed=("noise", "range"), refused=WITH_LOG)
    else:
        _check("with `--log`", given, needed=("payoff", "decision"), refused=FROM_LOG)


def _check(
    when: str, given: dict[str, Any], *, needed: Sequence[str], refused: Sequence[str]
) -> None:
    for name in needed:
        if given[name] in UNSET:
            raise click.UsageError(f"`--{name}` is needed {when}, but was not given")
    for name in refused:
        if given[name] not in UNSET:
            raise click.UsageError(f"`--{name}` means nothing {when}, but was given")
