"""`continuarm purge`: contexts erased for good."""

import datetime

import click

from continuarm.cli.moving import events, utc
from continuarm.cli.stores import opened, store_option

__all__ = ["purge"]


@click.command("purge")
@click.argument("name", metavar="NAME")
@click.option(
    "--before",
    required=True,
    type=click.DateTime(["%Y-%m-%d", "%Y-%m-%dT%H:%M:%S"]),
    help="What happened before this date, or time, in UTC, is erased.",
)
@store_option
def purge(name: str, before: datetime.datetime, store: str) -> None:
    """Erase events of an experiment for good, contexts included; what was learned stays.

    NAME is that of the experiment. A snapshot is its new beginning. Decisions that are still open
    keep their contexts, so that their payoffs can be learned: purge again when they are closed.
    """
    from continuarm.errors import SettingsError
    from continuarm.ledger.purging import purge

    date = before.replace(tzinfo=datetime.UTC)
    with opened(store) as ledgers:
        if date > datetime.datetime.now(datetime.UTC):
            raise SettingsError(
                f"`--before` must be a time that has passed, but got {utc(date.timestamp())}"
            )
        found = purge(ledgers, name, date.timestamp())
    left = f"; {found.open:,} decisions of before are open and stay" if found.open else ""
    verb = "is" if found.erased == 1 else "are"
    said = f"{events(found.erased)} up to position {found.until:,} {verb} erased{left}"
    click.echo(f"{name}: before {utc(date.timestamp())}: {said}")
