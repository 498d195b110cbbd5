"""`continuarm replay` and `upgrade`: a ledger folded again, or by another version."""

from pathlib import Path

import click

from continuarm.cli.moving import snapshots
from continuarm.cli.progress import Progress
from continuarm.cli.stores import opened, store_option

__all__ = ["replay", "upgrade"]


@click.command("replay")
@click.argument("name", metavar="NAME")
@store_option
def replay(name: str, store: str) -> None:
    """Fold a ledger again, make each decision again, and compare.

    NAME is that of the experiment. It begins with the newest beginning. What differs by rounding,
    as on another processor, is said with its size and its place. The first larger difference is an
    error, which says where it is.
    """
    from continuarm.errors import StoreError
    from continuarm.ledger.replaying import replay

    with opened(store) as ledgers:
        with Progress(name, 2 * ledgers.experiment(name).head, hidden=False) as progress:
            found = replay(ledgers, name, progress)
    if found.difference is not None:
        raise StoreError(f"a replay must give what was, but in {name!r} at {found.difference}")
    earlier = f"; {found.earlier:,} decisions are of before" if found.earlier else ""
    click.echo(
        f"{name}: {found.events:,} events after position {found.begins:,}: "
        f"{found.decisions:,} decisions and {snapshots(found.snapshots)} are the same{earlier}; "
        f"the largest difference is {found.rounding}"
    )


@click.command("upgrade")
@click.argument("name", metavar="NAME")
@click.option(
    "--export",
    "table",
    type=click.Path(exists=True, dir_okay=False),
    help="What the version before recommends (its `export` for `Reader`), to begin with where a "
    "purge has cut the ledger and this version cannot read the state.",
)
@store_option
def upgrade(name: str, table: str | None, store: str) -> None:
    """Let this version of the code fold an experiment from now on.

    NAME is that of the experiment. Its whole ledger is folded by this version, decisions as they
    were made. The state that it comes to is the new beginning. Servers of the version before stop
    deciding.
    """
    from continuarm.ledger.upgrading import upgrade

    content = None if table is None else Path(table).read_bytes()
    with opened(store) as ledgers:
        experiment = ledgers.experiment(name)
        with Progress(name, experiment.head - experiment.begins, hidden=False) as progress:
            found = upgrade(ledgers, name, table=content, progress=progress)
    if found is None:
        click.echo(f"{name}: it is of this version already")
        return
    begun = "; it begins with what the export recommends" if found.from_export else ""
    left = f", {found.left_out:,} payoffs of erased decisions left out" if found.left_out else ""
    click.echo(
        f"{name}: taken over from version {found.before} at position {found.position:,}: "
        f"{found.folded:,} events were folded by this version{begun}{left}"
    )
