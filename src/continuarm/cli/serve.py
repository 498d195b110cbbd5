"""`continuarm serve` and `continuarm token`: the service, and who may use it."""

import os
from typing import Any

import click

from continuarm.cli.parameters import PORT, WholeNumber
from continuarm.cli.stores import opened, store_option
from continuarm.store.addresses import without_password

__all__ = ["serve", "token"]


@click.command("serve")
@store_option
@click.option("--host", default="127.0.0.1", show_default=True, help="The address to listen on.")
@click.option("--port", type=PORT, default="8080", show_default=True, help="Its port; 0: any.")
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
@click.option(
    "--max-lag-events",
    "max_behind",
    type=WholeNumber(0),
    default="20000",
    show_default=True,
    help="The same in events.",
)
@click.option(
    "--rate",
    type=float,
    default=10_000.0,
    show_default=True,
    help="Requests per second of one token, in one process.",
)
@click.option(
    "--cors-origin",
    "origins",
    multiple=True,
    metavar="https://…",
    help="An origin whose pages may ask and read answers; may be given several times.",
)
@click.option("--log-contexts", is_flag=True, help="Log what was asked for, contexts included.")
def serve(store: str, **options: Any) -> None:
    """Answer over HTTP: contexts in, decisions out, payoffs back.

    A store that is not there is made.
    """
    for name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ.setdefault(name, "1")  # NumPy's own threads would take cores from requests
    from continuarm.service.serving import serve

    def say(address: str) -> None:
        click.echo(f"{address}, store {without_password(store)}; Ctrl-C ends it", err=True)

    serve(store, say=say, **options)


@click.group("token")
def token() -> None:
    """Make, list and revoke the tokens of a store, or need none any more."""


@token.command("create")
@click.argument("name", metavar="NAME")
@click.option(
    "--scope",
    default="decide",
    show_default=True,
    metavar="read|decide|admin",
    help="What it may do; each may do what those before it may.",
)
@store_option
def create(name: str, scope: str, store: str) -> None:
    """Make a token and print it, once. NAME is whose it is."""
    from continuarm.service.tokens import issue

    with opened(store, make=True) as ledgers:
        click.echo(issue(ledgers, name, scope))


@token.command("list")
@store_option
def list_(store: str) -> None:
    """List the names and scopes of all tokens."""
    with opened(store) as ledgers:
        for found in ledgers.tokens():
            click.echo(f"{found.name}\t{found.scope}")


@token.command("revoke")
@click.argument("name", metavar="NAME")
@store_option
def revoke(name: str, store: str) -> None:
    """Revoke a token. NAME is whose it is."""
    with opened(store) as ledgers:
        ledgers.revoke_token(name)
        left = len(ledgers.tokens())
    last = "" if left else "; it was the last one: nobody is let in until one is made"
    click.echo(f"{name}: revoked{last}")


@token.command("disable")
@store_option
@click.option("--yes", is_flag=True, help="Do not ask whether that is meant.")
def disable(store: str, yes: bool) -> None:
    """Revoke all tokens, and let everybody in on loopback; other machines are never let in so."""
    meant = yes or click.confirm("Revoke all tokens, and let everybody on this machine in?")
    with opened(store) as ledgers:
        if not meant:
            click.echo("nothing was changed")
            raise SystemExit(1)
        ledgers.disable_tokens()
    click.echo("all tokens are revoked: everybody on this machine is let in")
