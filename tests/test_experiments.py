"""Experiments: the same numbers anywhere, nothing lost, nothing done twice."""

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import polars
import pytest

import continuarm as ca
from continuarm.errors import SettingsError
from continuarm.experiments import COLUMNS
from continuarm.journal import Journal


def grid(horizon: int) -> dict[str, Any]:
    return {"arms": 3, "bins": round(horizon**0.2), "scale": 0.1}


def made() -> ca.Problem:
    return ca.problem("quadratic", dy=1)


def experiment(replications: int = 3, **changes: Any) -> ca.Experiment:
    settings: dict[str, Any] = {
        "policies": {"static": "static-kwsa", "grid": ("uniform-ucb", grid)},
        "problems": {"paper": ("two-communities", {"noise": 0.2}), "made": made},
        "horizons": [200, 1000],
        "replications": replications,
    }
    return ca.Experiment(**(settings | changes))


def numbers(table: polars.DataFrame) -> polars.DataFrame:
    return table.drop("seconds")


@pytest.fixture(scope="module")
def reference() -> polars.DataFrame:
    return experiment().run(workers=1)


def test_the_table_has_one_row_per_run(reference: polars.DataFrame) -> None:
    assert tuple(reference.columns) == COLUMNS
    assert reference.height == 2 * 2 * 2 * 3
    one = reference.filter(
        (polars.col("policy") == "grid")
        & (polars.col("problem") == "paper")
        & (polars.col("horizon") == 1000)
        & (polars.col("seed") == 1)
    )
    world = ca.problem("two-communities", noise=0.2)
    policy = ca.UniformUCB(world.context, world.decision, **grid(1000))
    run = ca.simulate(policy, world, horizon=1000, rng=1)
    assert one["regret"].to_list() == [run.regret[0, -1]]
    assert json.loads(one["policy_settings"][0]) == grid(1000)
    assert one["version"].to_list() == [ca.__version__]


def test_any_number_of_workers_gives_the_same_numbers(reference: polars.DataFrame) -> None:
    assert numbers(experiment().run(workers=2)).equals(numbers(reference))


def test_finished_runs_are_kept_and_only_missing_ones_done(
    tmp_path: Path, reference: polars.DataFrame
) -> None:
    stream = experiment().stream(tmp_path, workers=1)
    for _ in range(7):
        next(stream)
    stream.close()  # type: ignore[attr-defined]
    journal = tmp_path / "runs.jsonl"
    assert len(journal.read_text().splitlines()) == 7
    with journal.open("a") as file:
        file.write('{"key": "cut off by a cra')
    table = experiment().run(tmp_path, workers=1)
    assert numbers(table).equals(numbers(reference))
    lines = journal.read_text().splitlines()
    assert len(lines) == 25  # one of them cut off
    again = experiment().run(tmp_path, workers=1)
    assert again.equals(table)  # seconds, too: nothing was run
    longer = experiment(replications=4).run(tmp_path, workers=1)
    assert longer.height == 32
    assert len(journal.read_text().splitlines()) == 33


def test_a_damaged_line_costs_only_itself(tmp_path: Path, reference: polars.DataFrame) -> None:
    experiment().run(tmp_path, workers=1)
    journal = tmp_path / "runs.jsonl"
    lines = journal.read_bytes().splitlines()
    lines[4] = b"\xff\xfe\x00garbage{"
    journal.write_bytes(b"\r\n".join(lines) + b"\r\n")
    assert numbers(experiment().run(tmp_path, workers=1)).equals(numbers(reference))
    after = journal.read_bytes().splitlines()
    assert after[:24] == lines
    assert len(after) == 25


def test_changed_settings_are_new_runs(tmp_path: Path) -> None:
    def one(noise: float) -> ca.Experiment:
        return ca.Experiment(
            policies=["fixed"],
            problems={"paper": ("two-communities", {"noise": noise})},
            horizons=[100],
            replications=1,
        )

    one(0.1).run(tmp_path, workers=1)
    one(0.2).run(tmp_path, workers=1)
    assert len((tmp_path / "runs.jsonl").read_text().splitlines()) == 2


def test_two_cannot_write_one_journal(tmp_path: Path) -> None:
    with Journal(tmp_path), pytest.raises(SettingsError, match="another run writes it"):
        Journal(tmp_path)
    with Journal(tmp_path) as journal:
        assert journal.rows == {}
    (tmp_path / "file").write_text("")
    with pytest.raises(SettingsError, match="must be writable"):
        Journal(tmp_path / "file" / "folder")


def test_an_interrupt_keeps_finished_runs(tmp_path: Path) -> None:
    """Ctrl-C in the middle of `continuarm reproduce`, then a second start in the same folder."""
    folder = tmp_path / "out"
    command = [
        sys.executable, "-m", "continuarm", "reproduce", "--quick", "--figure", "lower-bound",
        "--output", str(folder),
    ]  # fmt: skip
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    )
    journal = folder / "runs.jsonl"
    deadline = time.time() + 120
    while time.time() < deadline and not (journal.is_file() and journal.stat().st_size > 2000):
        time.sleep(0.05)
    os.killpg(process.pid, signal.SIGINT)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 130, errors
    kept = journal.read_text().splitlines()
    assert 3 <= len(kept) < 54
    assert not (folder / "report.html").exists()
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    lines = journal.read_text().splitlines()
    assert lines[: len(kept)] == kept
    assert len(lines) == len(set(lines)) == 54
    assert "report" in done.stdout
    assert (folder / "report.html").is_file()


@pytest.mark.parametrize(
    "bad",
    [
        {"policies": []},
        {"policies": "static-kwsa"},
        {"policies": ["best"]},
        {"problems": {"x": ("nowhere", {})}},
        {"horizons": [0]},
        {"horizons": []},
        {"horizons": 5},
        {"policies": [made]},
        {"policies": {"x": (made, {"bins": 3})}},
        {"problems": {"x": (made, {"dy": 7})}},
        {"problems": {"x": ("quadratic", [1])}},
        {"replications": 0},
        {"seed": -1},
    ],
)
def test_bad_settings_are_refused(bad: dict[str, Any]) -> None:
    with pytest.raises(SettingsError, match="but got"):
        experiment(**bad)


def test_bad_clusters_are_refused() -> None:
    with pytest.raises(SettingsError, match='must be "local", "ray"'):
        experiment().run(cluster="slurm")
    with pytest.raises(SettingsError, match="a Dask scheduler must answer at"):
        experiment().run(cluster=f"tcp://127.0.0.1:{free_port()}")


def free_port() -> int:
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        return int(sock.getsockname()[1])


def start(kind: str, *arguments: str) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", f"distributed.cli.dask_{kind}", *arguments]
    return subprocess.Popen(
        [*command, "--host", "127.0.0.1", "--no-dashboard"],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )


@pytest.fixture
def cluster() -> Iterator[tuple[str, list[subprocess.Popen[bytes]]]]:
    """A real Dask scheduler and two worker processes on loopback."""
    port = free_port()
    address = f"tcp://127.0.0.1:{port}"
    scheduler = start("scheduler", "--port", str(port))
    workers = [start("worker", address, "--nthreads", "1", "--no-nanny") for _ in range(2)]
    from distributed import Client

    with Client(address, timeout="60s") as client:  # type: ignore[no-untyped-call]
        client.wait_for_workers(2, timeout=60)
    yield address, workers
    for process in [*workers, scheduler]:
        process.kill()
        process.wait()


def test_a_cluster_gives_the_same_numbers_and_a_killed_worker_loses_nothing(
    cluster: tuple[str, list[subprocess.Popen[bytes]]],
    reference: polars.DataFrame,
    tmp_path: Path,
) -> None:
    address, workers = cluster
    assert numbers(experiment().run(cluster=address)).equals(numbers(reference))
    rows = []
    for row in experiment(replications=12).stream(tmp_path, cluster=address):
        rows.append(row)
        if len(rows) == 5:
            workers[0].kill()
    assert len(rows) == 96
    assert workers[1].poll() is None
    table = experiment(replications=12).run(tmp_path, workers=1)
    alone = experiment(replications=12).run(workers=2)
    assert numbers(table).equals(numbers(alone))
