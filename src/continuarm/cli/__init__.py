"""The command line: parse, call, print."""

import json
import re
import sys
import warnings
from pathlib import Path
from typing import Any

import click

from continuarm.cli.clock import clock
from continuarm.cli.demo import demo
from continuarm.cli.first_day import first_day
from continuarm.cli.inspect import inspect
from continuarm.cli.ledgers import replay, upgrade
from continuarm.cli.moving import experiments, export, import_
from continuarm.cli.parameters import WholeNumber
from continuarm.cli.progress import Progress
from continuarm.cli.purge import purge
from continuarm.cli.serve import serve, token
from continuarm.version import __version__

__all__ = ["main"]

# read where they are registered, because help does not wait for what compiles
_REGISTERED = Path(__file__).parent.parent.joinpath("live", "named", "__init__.py").read_text()
POLICY_NAMES = ", ".join(re.findall(r'^register_policy\("([^"]+)"', _REGISTERED, re.MULTILINE))
PROBLEM_NAMES = "two-communities, hard, quadratic, linear-demand, logit-demand, orange-juice"


LONGEST_LINE = 2000  # characters of an error


def _settings(context: Any, parameter: Any, values: tuple[str, ...]) -> dict[str, Any]:
    """`key=value`, with help for what is not."""
    from continuarm.cli import commands
    from continuarm.errors import SettingsError

    try:
        return commands.settings_of(values)
    except SettingsError as error:
        raise click.BadParameter(str(error)) from None


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="continuarm")
def cli() -> None:
    """Learn which continuous decision vector is best for each context."""


def _feedback(command: Any) -> Any:
    """The options of payoffs that come late or never."""
    lost = click.option(
        "--lost",
        type=float,
        default=0.0,
        show_default=True,
        help="The probability that a payoff never comes.",
    )
    delay = click.option(
        "--delay",
        type=WholeNumber(0),
        default="0",
        show_default=True,
        help="Decisions that are made between a decision and its payoff.",
    )
    return delay(lost(command))


def _workers(command: Any) -> Any:
    """The options of where to run."""
    workers = click.option(
        "--workers",
        type=WholeNumber(1),
        help="How many runs at once on this machine; one per core by default.",
    )
    cluster = click.option(
        "--cluster",
        metavar="tcp://HOST:PORT|local|ray",
        help="Run on a Dask scheduler, on a Dask cluster started here, or on Ray.",
    )
    return workers(cluster(command))


@cli.command()
@click.option(
    "--problem",
    default="two-communities",
    show_default=True,
    metavar="NAME|FILE.py:OBJECT",
    help=f"What to decide about: {PROBLEM_NAMES}; or a Problem, or a function that makes one, "
    "in a file of yours.",
)
@click.option(
    "--policy",
    "policies",
    multiple=True,
    default=["recommended"],
    show_default=True,
    metavar="NAME|FILE.py:OBJECT",
    help=f"Who decides: {POLICY_NAMES}; or what makes a policy for two boxes, "
    "in a file of yours. Give it again to compare several.",
)
@click.option(
    "--horizon",
    type=WholeNumber(1),
    default="1e5",
    show_default=True,
    help="Decisions per replication.",
)
@click.option(
    "--replications",
    type=WholeNumber(1),
    default="8",
    show_default=True,
    help="Runs with random numbers of their own.",
)
@click.option(
    "--seed",
    type=WholeNumber(0),
    default="0",
    show_default=True,
    help="The same seed gives all policies the same contexts and noise.",
)
@click.option(
    "--noise", type=float, help="Standard deviation of the payoff's noise, where it is additive."
)
@_feedback
@click.option(
    "--set",
    "settings",
    multiple=True,
    callback=_settings,
    metavar="KEY=VALUE",
    help="An option of the policy, such as width=0.3 or probe=alternate; values are JSON, "
    "otherwise strings.",
)
@click.option(
    "--problem-set",
    "problem_settings",
    multiple=True,
    callback=_settings,
    metavar="KEY=VALUE",
    help="An option of the problem, such as dy=5 or condition=100.",
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object and nothing else.")
@click.option(
    "--plot", metavar="FILE", help="Write the regret curves to this file (.png, .svg, .pdf)."
)
def simulate(
    problem: str,
    policies: tuple[str, ...],
    horizon: int,
    replications: int,
    seed: int,
    noise: float | None,
    delay: int,
    lost: float,
    settings: dict[str, Any],
    problem_settings: dict[str, Any],
    as_json: bool,
    plot: str | None,
) -> None:
    """Run policies on a problem and print their regret."""
    from continuarm.cli import commands

    world, problem_settings = commands.load_problem(problem, problem_settings, noise)
    if delay > 0 or lost != 0.0:
        world = world.with_feedback(delay=delay, lost=lost)
        problem_settings = problem_settings | {"delay": delay, "lost": lost}
    players = [(name, commands.load_policy(name, world, horizon, settings)) for name in policies]
    if plot is not None:
        commands.check_plot(plot)
    runs = []
    for name, player in players:
        with Progress(name, horizon * replications, hidden=as_json) as progress:
            runs.append(commands.run(name, player, world, horizon, replications, seed, progress))
    if plot is not None:
        commands.draw(runs, plot)
    if as_json:
        reports = [commands.report(run, seed, settings, problem_settings) for run in runs]
        click.echo(json.dumps(reports[0] if len(reports) == 1 else {"runs": reports}, default=str))
    else:
        click.echo(commands.summary(runs))
        if plot is not None:
            click.echo(f"\nfigure: {plot}")


@cli.command()
@click.option(
    "--problem",
    "problems",
    multiple=True,
    default=["two-communities"],
    show_default=True,
    metavar="'NAME KEY=VALUE ...'|FILE.py:OBJECT|suite|unseen",
    help="A problem with its settings; or all with a tag: `suite`, or `unseen`, which were "
    "written when the policies were finished. Again for several.",
)
@click.option(
    "--policy",
    "policies",
    multiple=True,
    default=["recommended", "adaptive-kwsa"],
    show_default=True,
    metavar="'NAME KEY=VALUE|VALUE ...'|FILE.py:OBJECT",
    help="A policy with its settings. Several values of a setting are all tried, and the best in "
    "hindsight counts. Again for several.",
)
@click.option(
    "--horizon",
    "horizons",
    type=WholeNumber(1),
    multiple=True,
    default=["1e5"],
    show_default=True,
    help="Decisions per replication. Again for several.",
)
@click.option(
    "--replications",
    type=WholeNumber(1),
    default="8",
    show_default=True,
    help="Seeds; all policies meet the same ones.",
)
@click.option("--seed", type=WholeNumber(0), default="0", show_default=True, help="The first.")
@_feedback
@click.option(
    "--baseline",
    metavar="POLICY",
    help="The policy to which the others are compared, as it was given; the last by default.",
)
@click.option(
    "--output",
    "folder",
    metavar="FOLDER",
    help="Keep finished runs there; started again, only what is missing is done.",
)
@_workers
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object and nothing else.")
@click.option("--plot", metavar="FILE", help="Write the ratios to this file (.png, .svg, .pdf).")
def compare(
    problems: tuple[str, ...],
    policies: tuple[str, ...],
    horizons: tuple[int, ...],
    replications: int,
    seed: int,
    delay: int,
    lost: float,
    baseline: str | None,
    folder: str | None,
    workers: int | None,
    cluster: str | None,
    as_json: bool,
    plot: str | None,
) -> None:
    """Compare policies on problems, paired by seed, as ratios to a baseline."""
    from continuarm.cli import commands

    if plot is not None:
        commands.check_plot(plot)
    feedback = {"delay": delay, "lost": lost} if delay > 0 or lost != 0.0 else {}
    length, run = commands.comparison_of(
        policies,
        problems,
        horizons,
        replications,
        seed,
        feedback,
        baseline=baseline,
        folder=folder,
        workers=workers,
        cluster=cluster or "threads",
    )
    with Progress("comparing", length, hidden=as_json) as progress:
        comparison = run(progress)
    if plot is not None:
        comparison.draw(plot)
    if as_json:
        click.echo(json.dumps(comparison.report()))
    else:
        click.echo(str(comparison.table()))
        if plot is not None:
            click.echo(f"\nfigure: {plot}")


@cli.command()
@click.option(
    "--figure",
    "chosen",
    multiple=True,
    type=click.Choice(["regret", "noise", "dimension", "lower-bound", "contexts"]),
    help="Only this part; again for several. All by default.",
)
@click.option(
    "--output",
    default="reproduction",
    show_default=True,
    metavar="FOLDER",
    help="Where report.html, the figures and the runs go; finished runs there are not done again.",
)
@click.option("--quick", is_flag=True, help="Every curve, shorter and with fewer seeds.")
@_workers
def reproduce(
    chosen: tuple[str, ...],
    output: str,
    quick: bool,
    workers: int | None,
    cluster: str | None,
) -> None:
    """Reproduce the paper's experiment and what its title claims."""
    from continuarm.paper import reproduction

    figures = chosen or reproduction.FIGURES
    length = reproduction.total_decisions(figures, quick=quick)
    with Progress("running", length, hidden=False) as progress:
        claims = reproduction.reproduce(
            output,
            chosen=figures,
            quick=quick,
            workers=workers,
            cluster=cluster,
            progress=progress,
        )
    if claims is not None:
        click.echo(f"{claims}\n")
    click.echo(f"report: {output}/report.html")


cli.add_command(first_day)
cli.add_command(inspect)
cli.add_command(demo)
cli.add_command(serve)
cli.add_command(token)
for _command in (experiments, export, import_, replay, upgrade, purge, clock):
    cli.add_command(_command)


def main() -> None:
    """Run the command line: errors are one line, with exit code 2."""
    from continuarm.errors import ContinuarmError

    warnings.showwarning = _show_warning
    try:
        cli.main(sys.argv[1:] or ["--help"], standalone_mode=False)
    except click.ClickException as error:
        _fail(error.format_message())
    except ContinuarmError as error:
        _fail(str(error))
    except MemoryError as error:
        _fail(f"more memory is needed than there is: {error}")
    except (click.Abort, KeyboardInterrupt):
        again = " (what is done is kept: run it again to resume)" if _keeps() else ""
        click.echo(f"continuarm: interrupted{again}", err=True)
        sys.exit(130)


def _keeps() -> bool:
    """Whether the command keeps finished runs."""
    return "reproduce" in sys.argv[1:2] or "--output" in " ".join(sys.argv)


def _fail(message: str) -> None:
    click.echo(f"continuarm: {_one_line(message)}", err=True)
    sys.exit(2)


def _show_warning(message: Any, *_: Any, **__: Any) -> None:
    """A warning is one line, too."""
    click.echo(f"continuarm: warning: {_one_line(str(message))}", err=True)


def _one_line(message: str) -> str:
    line = " ".join(message.split())
    return line if len(line) <= LONGEST_LINE else f"{line[:LONGEST_LINE]} ..."
