"""Experiments: the same numbers anywhere, nothing lost, nothing done twice."""

import importlib
import json
import os
import re
import signal
import socket
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import polars
import pytest

import continuarm as ca
from continuarm.errors import SettingsError
from continuarm.lab.experiment import COLUMNS
from continuarm.lab.journal import Journal


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
        file.write(journal.read_text()[:200])  # cut off by a crash
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


def tiny() -> ca.Experiment:
    """A run for each horizon, and one that is read on the way."""
    return ca.Experiment(
        policies=["static-kwsa", "fixed"],
        problems=["two-communities"],
        horizons=[20, 60],
        replications=2,
    )


def test_a_damaged_byte_anywhere_changes_no_number(tmp_path: Path) -> None:
    journal = tmp_path / "runs.jsonl"
    whole = numbers(tiny().run(tmp_path, workers=1))
    assert numbers(tiny().run(workers=1)).equals(whole)
    sound = journal.read_bytes()
    assert sound.count(b"\n") == 6
    rng = np.random.default_rng(0)
    for _ in range(60):
        damaged = bytearray(sound)
        damaged[rng.integers(len(sound))] ^= int(rng.integers(1, 256))
        journal.write_bytes(damaged)
        assert numbers(tiny().run(tmp_path, workers=1)).equals(whole)
        after = journal.read_bytes()
        assert after.startswith(bytes(damaged))  # what is there is never rewritten
        assert len(after) > len(sound)  # the damaged run was done again
        assert numbers(tiny().run(tmp_path, workers=1)).equals(whole)
        assert journal.read_bytes() == after  # and the new line is found


CHANGES: dict[str, Callable[[bytes], bytes]] = {
    "another number": lambda line: re.sub(rb'"regret": [^,]*', b'"regret": 5.0', line),
    "row for rows": lambda line: re.sub(rb'"rows": .*', b'"row": 5}', line),
    "no list": lambda line: re.sub(rb'"rows": .*', b'"rows": 5}', line),
    "no rows": lambda line: re.sub(rb'"rows": .*', b'"rows": []}', line),
    "no checksum": lambda line: line[17:],
    "another checksum": lambda line: b"0" * 16 + line[16:],
    "no space": lambda line: line[:16] + line[17:],
    "deep": lambda line: line[:17] + b"[" * 100_000,
    "a number": lambda line: line[:17] + b"5",
    "nothing": lambda line: b"",
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_a_line_that_was_written_over_is_passed_over(
    tmp_path: Path, change: Callable[[bytes], bytes]
) -> None:
    journal = tmp_path / "runs.jsonl"
    whole = numbers(tiny().run(tmp_path, workers=1))
    lines = journal.read_bytes().splitlines()
    for k, line in enumerate(lines):
        changed = [*lines[:k], change(line), *lines[k + 1 :]]
        assert changed != lines
        journal.write_bytes(b"\n".join(changed) + b"\n")
        assert numbers(tiny().run(tmp_path, workers=1)).equals(whole)
        assert len(journal.read_bytes().splitlines()) == 7


def test_a_policy_that_does_not_plan_runs_once_for_all_horizons(tmp_path: Path) -> None:
    """Its rows are those of simulations of their own, and stand on one line of the journal."""
    policies = {"tree": ("adaptive-kwsa", {"depth": 3}), "surface": "recommended"}
    experiment = ca.Experiment(
        policies=policies,
        problems=["two-communities"],
        horizons=[2000, 500],
        replications=lambda horizon: 3 if horizon == 500 else 2,
    )
    table = experiment.run(tmp_path, workers=1)
    assert table.height == 2 * (3 + 2)
    lines = (tmp_path / "runs.jsonl").read_bytes().splitlines()
    rows = [json.loads(line.partition(b" ")[2])["rows"] for line in lines]
    horizons = sorted((r[0]["policy"], [row["horizon"] for row in r]) for r in rows)
    assert horizons == [
        ("surface", [500]), ("surface", [500, 2000]), ("surface", [500, 2000]),
        ("tree", [500]), ("tree", [500]), ("tree", [500]), ("tree", [2000]), ("tree", [2000]),
    ]  # fmt: skip
    for row in table.iter_rows(named=True):
        alone = ca.simulate(
            policies[row["policy"]], "two-communities", horizon=row["horizon"], rng=row["seed"]
        )
        assert row["regret"] == alone.regret[0, -1]
        assert row["recommend_regret"] == alone.recommend_regret[0, -1]


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


def test_an_edited_file_of_a_policy_of_ones_own_is_a_new_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = """
        import numpy as np

        class Still:
            def __init__(self, context, decision, share=SHARE):
                self.value = decision.from_unit(np.full(decision.dim, share))
            def ask(self, context):
                return self.value
            def tell(self, decision, payoff):
                pass
    """
    monkeypatch.syspath_prepend(tmp_path)
    file = tmp_path / "still_policy.py"
    file.write_text(textwrap.dedent(source.replace("SHARE", "0.25")))
    still = importlib.import_module("still_policy")
    ca.register_policy("still", still.Still)
    for policy in ("still", still.Still):
        tried = ca.Experiment(
            policies={"mine": policy}, problems=["plane"], horizons=[10], replications=1
        )
        before = [task.key for task in tried.tasks()]
        assert [task.key for task in tried.tasks()] == before
        file.write_text(file.read_text() + "\n")
        assert not set(before) & {task.key for task in tried.tasks()}


class Middle:
    """Of a user, who registers it in this process only."""

    def __init__(self, context: ca.Box, decision: ca.Box, *, share: float = 0.5) -> None:
        self.value = decision.from_unit(np.full(decision.dim, share))

    def ask(self, context: Any) -> Any:
        return self.value

    def tell(self, decision: Any, payoff: float) -> None:
        pass


@pytest.mark.parametrize("cluster", [None, "local"])
def test_workers_find_what_a_user_has_registered(cluster: str | None) -> None:
    ca.register_policy("middle-of-mine", Middle)
    found = ca.Experiment(
        policies={"mine": ("middle-of-mine", {"share": 0.25})},
        problems=["plane"],
        horizons=[50],
        replications=2,
    ).run(workers=2, cluster=cluster)
    wanted = [
        ca.simulate(("middle-of-mine", {"share": 0.25}), "plane", horizon=50, rng=k).regret[0, -1]
        for k in (0, 1)
    ]
    assert found["regret"].to_list() == wanted


def own_world(*, top: float = 0.3) -> ca.Problem:
    return ca.Problem(
        context=ca.Box.unit(1),
        decision=ca.Box.unit(1),
        mean_payoff=lambda x, y: -((y[0] - top) ** 2),
        best_decision=lambda x: np.array([top]),
        noise=0.1,
    )


@pytest.mark.parametrize("cluster", [None, "local"])
def test_workers_find_a_world_that_a_user_has_registered(cluster: str | None) -> None:
    ca.register_problem("world-of-mine", own_world)
    found = ca.Experiment(
        policies=["fixed"],
        problems={"mine": ("world-of-mine", {"top": 0.25, "delay": 3})},
        horizons=[50],
        replications=2,
    ).run(workers=2, cluster=cluster)
    assert found["regret"].to_list() == pytest.approx([50 * 0.0625] * 2)


def test_an_own_file_runs_on_a_cluster(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text("""
import numpy as np
import continuarm as ca

class Middle:
    def __init__(self, context, decision):
        self.value = decision.centre
    def ask(self, context):
        return self.value
    def tell(self, decision, payoff):
        pass

def world():
    return ca.Problem(context=ca.Box.unit(1), decision=ca.Box.unit(1),
                      mean_payoff=lambda x, y: -(y[0] - 0.25) ** 2,
                      best_decision=lambda x: np.array([0.25]), noise=0.1)
""")
    command = [sys.executable, "-m", "continuarm", "compare", "--problem", "mine.py:world"]
    command += ["--policy", "mine.py:Middle", "--policy", "fixed", "--horizon", "200"]
    command += ["--replications", "2", "--cluster", "local", "--json"]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, timeout=120)
    assert done.returncode == 0, done.stderr
    scores = json.loads(done.stdout)["scores"]
    assert [score["regret"] for score in scores] == [pytest.approx([12.5, 12.5])] * 2


def test_two_cannot_write_one_journal(tmp_path: Path) -> None:
    with Journal(tmp_path), pytest.raises(SettingsError, match="another run writes it"):
        Journal(tmp_path)
    with Journal(tmp_path) as journal:
        assert journal.runs == {}
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
