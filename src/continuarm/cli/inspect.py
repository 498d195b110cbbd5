"""`continuarm inspect`: what a saved policy has learned, as tables and text."""

import json

import click

__all__ = ["inspect"]

MOST = 20  # bins that are shown unless all are asked for
PARTS = 4


@click.command("inspect")
@click.argument("file", metavar="FILE")
@click.option(
    "--context",
    "contexts",
    multiple=True,
    metavar="NAME=VALUE",
    help="Explain the decision for a context, such as --context age=37 --context income=52000.",
)
@click.option(
    "--plot",
    metavar="FILE",
    help="Draw figures beside FILE, which ends in .png or the like, as FILE-bins.png and so on: "
    "what was learned along each context (of the first six), the bins or cells, payoffs over "
    "time; with --context also the expected payoff and the explanation.",
)
@click.option("--all", "whole", is_flag=True, help=f"All bins, instead of the {MOST} largest.")
@click.option(
    "--along",
    multiple=True,
    metavar="NAME",
    help="The cells of a policy with one bin, along one or two contexts, such as --along hour "
    "--along income; by default the two along which its decisions move most. Others are held at "
    "--context, or in the middle.",
)
@click.option("--parts", default=PARTS, show_default=True, help="Cells along each of them.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object instead.")
def inspect(
    file: str,
    contexts: tuple[str, ...],
    plot: str | None,
    whole: bool,
    along: tuple[str, ...],
    parts: int,
    as_json: bool,
) -> None:
    """Print what a saved policy has learned.

    FILE is what `policy.save` wrote.
    """
    from continuarm.cli.inspecting import inspected

    found = inspected(file, contexts, None if whole else MOST, plot, along or None, parts)
    click.echo(json.dumps(found.plain) if as_json else found.text)
