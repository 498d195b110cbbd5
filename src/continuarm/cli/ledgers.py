"""`continuarm replay` and `upgrade`: a ledger folded again, or by another version."""

import click

from continuarm.cli.progress import Progress
from continuarm.cli.stores import opened, store_option

__all__ = ["replay", "upgrade"]


@click.command("replay")
@click.argument("name", metavar="NAME")
@store_option
def replay(name: str, store: str) -> None:
    """Fold a ledger again, make each decision again, and compare.

    NAME is that of the experiment. It begins with the newest beginning. Each snapshot is compared
    byte for byte. The first difference is an error, which says where it is.
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
        f"{found.decisions:,} decisions and {found.snapshots:,} snapshots are the same{earlier}"
    )


@click.command("upgrade")
@click.argument("name", metavar="NAME")
@store_option
def upgrade(name: str, store: str) -> None:
    """Let this version of the code fold an experiment from now on.

    NAME is that of the experiment. What came after the newest snapshot is folded by this version.
    The state that it comes to is the new beginning. Servers of the version before stop deciding.
    """
    from continuarm.ledger.upgrading import upgrade

    with opened(store) as ledgers:
        found = upgrade(ledgers, name)
    if found is None:
        click.echo(f"{name}: it is of this version already")
    else:
        click.echo(
            f"{name}: taken over from version {found.before} at position {found.position:,}; "
            f"{found.folded:,} events were folded by this version"
        )
