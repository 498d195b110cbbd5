"""`continuarm check`: whether a whole store is as it was written."""

from typing import TYPE_CHECKING

import click

from continuarm.cli.moving import events, snapshots
from continuarm.cli.progress import Progress
from continuarm.cli.stores import opened, store_option

if TYPE_CHECKING:
    from continuarm.store import Experiment, Store

__all__ = ["check"]

LISTED = 20  # defects of one experiment


@click.command("check")
@click.option("--replay", "decide", is_flag=True, help="Make each decision again, too.")
@store_option
def check(decide: bool, store: str) -> None:
    """Verify a whole store: its database, every event and every snapshot.

    Checksums and digests must fit, positions have no gaps, times never go back, decisions are
    opened and closed once, and the ledger folded again gives the snapshots. There is one line for
    each experiment, and one for each defect. The exit code is 1 if there is one.
    """
    from continuarm.errors import StoreError

    try:
        with opened(store) as ledgers:
            defects = [f"the store: {defect}" for defect in ledgers.defects()]
            _say(defects)
            for experiment in ledgers.experiments():
                defects += _checked(ledgers, experiment, decide)
    except StoreError as error:  # it cannot even be opened, or listed
        defects = [f"the store: {' '.join(str(error).split())}"]
        _say(defects)
    if defects:
        raise SystemExit(1)


def _checked(ledgers: "Store", experiment: "Experiment", decide: bool) -> list[str]:
    """Say how an experiment is; what is wrong with it."""
    from continuarm.ledger.verification import verify

    name = experiment.name
    with Progress(name, 3 * experiment.head, hidden=False) as progress:
        found = verify(ledgers, name, progress, decide=decide)
    _say([f"{name}: {defect}" for defect in found.defects])
    if not found.defects:
        folded = "" if found.folded else "; nothing was folded"
        click.echo(
            f"{name}: {events(found.events)} and {snapshots(found.snapshots)} are whole{folded}"
        )
    return found.defects


def _say(defects: list[str]) -> None:
    for defect in defects[:LISTED]:
        click.echo(defect)
    if len(defects) > LISTED:
        click.echo(f"and {len(defects) - LISTED:,} more")
