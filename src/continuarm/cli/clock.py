"""`continuarm clock`: a ledger whose clock was wrong for a moment."""

import click

from continuarm.cli.moving import utc
from continuarm.cli.stores import opened, store_option

__all__ = ["clock"]


@click.command("clock")
@click.argument("name", metavar="NAME")
@click.option("--set", "sets", is_flag=True, help="Let ages be counted by the clock of now.")
@store_option
def clock(name: str, sets: bool, store: str) -> None:
    """Compare the time of an experiment's ledger with the clock of its store.

    NAME is that of the experiment. Times of a ledger never go back. After a clock that was far
    ahead for a moment they stand still, and nothing expires. `--set` writes an event from which
    ages and dates go on with the clock as it is now. Make sure first that it is right.
    """
    from continuarm.ledger.clock import ahead, set_clock

    with opened(store) as ledgers:
        experiment, now = ledgers.experiment(name), ledgers.clock()
        seconds = set_clock(ledgers, name) if sets else ahead(experiment, now)
    newest = utc(experiment.time - experiment.clock_offset)
    if seconds <= 0.0:
        nothing = "; nothing was written" if sets else ""
        click.echo(f"{name}: the clock, {utc(now)}, is not behind the newest event{nothing}")
    elif sets:
        click.echo(f"{name}: ages are counted from {utc(now)} on; it was {seconds:,.0f} s ahead")
    else:
        click.echo(
            f"{name}: the newest event, {newest}, is {seconds:,.0f} s ahead of the clock, "
            f"{utc(now)}: if the clock is right, run this again with --set"
        )
