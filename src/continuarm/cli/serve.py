"""`continuarm serve` and `continuarm token`: the service, and who may use it."""

from typing import Any

import click

from continuarm.cli.parameters import WholeNumber

__all__ = ["serve", "token"]

STORE = "shop.db"


def _store(command: Any) -> Any:
    return click.option(
        "--store",
        default=STORE,
        show_default=True,
        metavar="FILE|postgresql://…",
        help="Where the ledgers are: a file, which is made if it is not there, or a database.",
    )(command)


@click.command("serve")
@_store
@click.option("--host", default="127.0.0.1", show_default=True, help="The address to listen on.")
@click.option("--port", type=WholeNumber(1), default="8080", show_default=True, help="Its port.")
@click.option(
    "--workers",
    type=WholeNumber(1),
    default="1",
    show_default=True,
    help="Processes that share the store.",
)
@click.option(
    "--max-lag",
    type=float,
    default=5.0,
    show_default=True,
    help="Seconds that a process may be behind the ledger and still decide.",
)
def serve(store: str, host: str, port: int, workers: int, max_lag: float) -> None:
    """Answer over HTTP: contexts in, decisions out, payoffs back."""
    from continuarm.service.serving import serve

    click.echo(f"http://{host}:{port}, store {store}; Ctrl-C ends it", err=True)
    serve(store, host=host, port=port, workers=workers, max_lag=max_lag)


@click.group("token")
def token() -> None:
    """Make, list and revoke the tokens of a store."""


@token.command("create")
@click.argument("name", metavar="NAME")
@click.option(
    "--scope",
    default="decide",
    show_default=True,
    metavar="read|decide|admin",
    help="What it may do; each may do what those before it may.",
)
@_store
def create(name: str, scope: str, store: str) -> None:
    """Make a token and print it, once. NAME is whose it is."""
    from contextlib import closing

    from continuarm.service.tokens import issue
    from continuarm.store import open_store

    with closing(open_store(store)) as opened:
        click.echo(issue(opened, name, scope))


@token.command("list")
@_store
def list_(store: str) -> None:
    """List the names and scopes of all tokens."""
    from contextlib import closing

    from continuarm.store import open_store

    with closing(open_store(store)) as opened:
        for found in opened.tokens():
            click.echo(f"{found.name}\t{found.scope}")


@token.command("revoke")
@click.argument("name", metavar="NAME")
@_store
def revoke(name: str, store: str) -> None:
    """Revoke a token. NAME is whose it is."""
    from contextlib import closing

    from continuarm.store import open_store

    with closing(open_store(store)) as opened:
        opened.revoke_token(name)
