"""Signals, forks, threads that save to one path, files cut off: nothing hangs, nothing is lost."""

import json
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import continuarm as ca
from continuarm.errors import BusyError, SavedFileError, UnknownDecisionError
from continuarm.lab.journal import Journal, _checksum
from continuarm.lab.replication import SOON, _next_pace
from tests.test_policies import POLICIES

UNIT = ca.Box([0.0], [1.0])


def climber() -> ca.Policy:
    return ca.StaticKWSA(UNIT, UNIT, bins=2, step=1.0)


def run(code: str, *arguments: object, **options: Any) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", code, *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=400, **options)


def test_a_signal_handler_saves_or_is_refused_at_once(tmp_path: Path) -> None:
    """A signal half a millisecond after the last one while the main thread asks and tells."""
    code = """
import signal, sys
import continuarm as ca
from continuarm.errors import BusyError
unit = ca.Box([0.0], [1.0])
policy = ca.StaticKWSA(unit, unit, bins=2, step=1.0)
policy.warm_up()
counts = {"saved": 0, "refused": 0}
def save(*_):
    try:
        policy.save(sys.argv[1])
        assert ca.load(sys.argv[1]).snapshot() == policy.snapshot()
        counts["saved"] += 1
    except BusyError:
        counts["refused"] += 1
    if min(counts.values()) < 50:
        signal.setitimer(signal.ITIMER_REAL, 0.0005)
signal.signal(signal.SIGALRM, save)
signal.setitimer(signal.ITIMER_REAL, 0.0005)
n = 0
while min(counts.values()) < 50 or n < 1000:
    policy.tell(policy.ask([0.5]), 1.0)
    n += 1
stats = policy.stats()
assert stats.asked == stats.told == n, stats
print(counts["saved"] >= 50, counts["refused"] >= 50)
"""
    done = run(code, tmp_path / "policy")
    assert done.stdout == "True True\n", done.stderr


def test_a_listener_that_calls_its_policy_is_refused() -> None:
    policy, caught = climber(), list[BaseException]()

    def listener(event: Any) -> None:
        try:
            policy.recommend([0.5])
        except BusyError as error:
            caught.append(error)

    policy.listen(listener)
    policy.tell(policy.ask([0.5]), 1.0)
    assert len(caught) == 2
    assert "called from inside, by a signal handler or a listener" in str(caught[0])


def test_children_of_a_process_that_serves_in_threads(tmp_path: Path) -> None:
    """Fifty forks while four threads ask and tell; what a child hands out is none of ours."""
    code = """
import os, sys, threading, warnings
import continuarm as ca
warnings.simplefilter("ignore")
unit = ca.Box([0.0], [1.0])
policy = ca.SurfaceSampling(unit, unit, ttl=None, rng=0)
policy.warm_up()
before = policy.ask([0.5])
stop = threading.Event()
def serve():
    while not stop.is_set():
        policy.tell(policy.ask([0.5]), 1.0)
threads = [threading.Thread(target=serve, daemon=True) for _ in range(4)]
for thread in threads: thread.start()
refused = 0
for k in range(50):
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        status = 1
        try:
            policy.tell(before, 1.0)  # of both
            decision = policy.ask([0.5])
            os.write(write, decision.to_json().encode())
            policy.tell(decision, 2.0)
            ca.Policy.from_snapshot(policy.snapshot())
            status = 0
        finally:
            os._exit(status)
    os.close(write)
    text = os.read(read, 10_000)
    os.close(read)
    assert os.waitpid(child, 0)[1] == 0, "a child failed"
    try:
        policy.tell(ca.Decision.from_json(text), 3.0)
    except ca.errors.UnknownDecisionError as error:
        refused += "of another" in str(error)
stop.set()
for thread in threads: thread.join()
policy.tell(before, 1.0)
stats = policy.stats()
assert stats.asked == stats.told, stats
print(refused)
"""
    done = run(code)
    assert done.stdout == "50\n", done.stderr


def test_threads_that_save_to_one_path_leave_the_newest(tmp_path: Path) -> None:
    """Whatever a `save` that has returned had seen is in the file."""
    policy, path, failures = climber(), tmp_path / "policy", list[BaseException]()

    def work() -> None:
        try:
            for _ in range(150):
                policy.tell(policy.ask([0.5]), 1.0)
                asked = policy.stats().asked
                policy.save(path)
                assert ca.load(path).stats().asked >= asked
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    assert os.listdir(tmp_path) == ["policy"]


def test_what_a_killed_save_has_left_is_removed(tmp_path: Path) -> None:
    policy, path = climber(), tmp_path / "policy"
    gone = subprocess.Popen([sys.executable, "-c", ""])
    gone.wait()
    left = tmp_path / f".policy.{gone.pid}.abc.unfinished"
    others = [tmp_path / f".policy.{os.getpid()}.abc.unfinished", tmp_path / ".other.1.unfinished"]
    for file in (left, *others):
        file.write_text("half")
    policy.save(path)
    assert not left.exists()
    assert all(other.exists() for other in others)


def test_only_files_are_saved_to(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path / "pipe", tmp_path, Path("/dev/null")):
        before = path.stat()
        with pytest.raises(SavedFileError, match="a policy is saved to a file, but"):
            climber().save(path)
        assert (path.stat().st_mode, path.stat().st_ino) == (before.st_mode, before.st_ino)


def test_format_0_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "policy"
    climber().save(path)
    path.write_bytes(path.read_bytes().replace(b"format 2", b"format 0", 1))
    with pytest.raises(SavedFileError, match=r"format must be 2, .* but got 0"):
        ca.load(path)


@pytest.mark.parametrize("damage", ["empty", "half", "other"])
@pytest.mark.parametrize("suffix", ["nbi", "nbc"])
def test_a_broken_file_of_compiled_code_is_compiled_again(
    tmp_path: Path, suffix: str, damage: str
) -> None:
    (tmp_path / "mine.py").write_text("""
from numba import types
from continuarm.core.compiling import compile_entry
def entry(x):
    return 2.0 * x
print(compile_entry(entry, types.float64(types.float64))(21.0))
""")
    folder = tmp_path / "cache"
    settings = {"env": os.environ | {"NUMBA_CACHE_DIR": str(folder)}, "cwd": tmp_path}
    assert run("import mine", **settings).stdout == "42.0\n"
    (path,) = folder.rglob(f"*.{suffix}")
    whole = path.read_bytes()
    broken = {"empty": b"", "half": whole[: len(whole) // 2], "other": b"\x80\x04K\x01."}
    path.write_bytes(broken[damage])
    done = run("import mine", **settings)
    assert done.stdout == "42.0\n", done.stderr
    (path,) = folder.rglob(f"*.{suffix}")
    assert len(path.read_bytes()) == len(whole)


@pytest.mark.parametrize("name", POLICIES)
def test_after_warming_up_nothing_is_compiled(name: str) -> None:
    """Also while arrays grow and bins split; in a process that has compiled nothing before."""
    code = """
import sys
import numpy as np
from numba.core import event
import continuarm as ca
from tests.test_policies import contexts, learn, make
policy = make(sys.argv[1])
before = policy.snapshot()
policy.warm_up()
assert policy.snapshot() == before
with event.install_recorder("numba:compile") as compiled:
    learn(policy, 2000)
    policy.forget(policy.ask(contexts(1)[0]))
    policy.recommend(contexts(1)[0])
    policy.explain(contexts(1)[0])
print(len(compiled.buffer))
"""
    done = run(code, name)
    assert done.stdout == "0\n", done.stdout + done.stderr


def test_ticks_come_soon_whatever_a_decision_takes() -> None:
    for seconds in (1e-7, 1e-3, 2.0):
        pace = 64
        for _ in range(10):
            pace = _next_pace(2**14, pace, seconds * pace)
        assert pace == max(1, min(2**14, int(SOON / seconds)))


def test_the_numbers_do_not_depend_on_the_ticks(monkeypatch: pytest.MonkeyPatch) -> None:
    runs = []
    for pace in (1, 77, 2**14):
        monkeypatch.setattr("continuarm.lab.replication._next_pace", lambda *_, p=pace: p)
        runs.append(ca.simulate("recommended", "plane", horizon=600, rng=0))
    for one in runs[1:]:
        np.testing.assert_array_equal(one.regret, runs[0].regret)
        assert one.policies[0].snapshot() == runs[0].policies[0].snapshot()


def test_sigterm_ends_the_workers_of_an_experiment(tmp_path: Path) -> None:
    code = """
import sys
import continuarm as ca
tried = ca.Experiment(policies=["static-kwsa"], problems=["two-communities"], horizons=[3_000_000],
                      replications=40)
for row in tried.stream(sys.argv[1], workers=2):
    print("done", flush=True)
"""
    command = [sys.executable, "-c", code, str(tmp_path)]
    pipes: Any = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    with subprocess.Popen(command, **pipes) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "done\n"
        children = _descendants(process.pid)
        assert len(children) >= 2
        process.send_signal(signal.SIGTERM)
        _, errors = process.communicate(timeout=60)
    assert process.returncode == 128 + signal.SIGTERM
    assert "Warning" not in errors
    _wait_for_the_end_of(children)


def _wait_for_the_end_of(children: list[int]) -> None:
    deadline = time.monotonic() + 20
    while any(_is_alive(child) for child in children):
        assert time.monotonic() < deadline, "workers are left"
        time.sleep(0.1)


def _descendants(pid: int) -> list[int]:
    try:
        text = Path(f"/proc/{pid}/task/{pid}/children").read_text()
    except FileNotFoundError:
        return []
    own = [int(child) for child in text.split()]
    return own + [below for child in own for below in _descendants(child)]


def _is_alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


def test_lines_of_a_journal_that_are_no_runs_are_passed_over(tmp_path: Path) -> None:
    """With a checksum that is right."""
    wrong: list[Any] = [5, [], {"key": 5, "rows": []}, {"key": "a", "rows": 5}]
    wrong += [{"key": "a", "rows": [5]}, {"rows": []}, None]
    texts = [json.dumps(one).encode() for one in wrong] + [b"[" * 100_000]
    lines = [_checksum(text) + b" " + text + b"\n" for text in texts]
    (tmp_path / "runs.jsonl").write_bytes(b"".join(lines))
    with Journal(tmp_path) as journal:
        assert journal.runs == {}


def test_damaged_journals_tell_nothing_that_was_not_written(tmp_path: Path) -> None:
    """Bytes of 300 journals changed, cut out or doubled: a run is as written, or not there."""
    written: dict[str, list[Any]] = {}
    written |= {f"key {k}": [{"row": k, "regret": k / 3}, {"row": 5}] for k in range(9)}
    with Journal(tmp_path) as journal:
        for key, rows in written.items():
            journal.write(key, rows)
    path, rng, lost = tmp_path / "runs.jsonl", np.random.default_rng(0), 0
    sound = path.read_bytes()
    for _ in range(300):
        a, b = sorted(rng.integers(len(sound), size=2).tolist())
        noise = bytes(rng.integers(256, size=3).tolist())
        path.write_bytes(
            [
                sound[:a] + noise + sound[a + 3 :],
                sound[:a] + sound[b:],
                sound[:b] + sound[a:],
                sound[:a] + b"[" * 50_000 + sound[a:],
            ][rng.integers(4)]
        )
        with Journal(tmp_path) as journal:
            assert journal.runs.items() <= written.items()
            lost += len(journal.runs) < len(written)
    assert lost > 150


def test_ctrl_c_says_how_to_resume_and_leaves_nobody_behind(tmp_path: Path) -> None:
    """To the whole group, as a terminal sends it; joblib's warning is no answer."""
    command = [sys.executable, "-m", "continuarm", "compare", "--policy", "static-kwsa"]
    command += ["--policy", "fixed", "--problem", "two-communities", "--horizon", "3e6"]
    command += ["--replications", "40", "--output", str(tmp_path), "--workers", "2"]
    pipes: Any = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    with subprocess.Popen(command, start_new_session=True, **pipes) as process:
        journal = tmp_path / "runs.jsonl"
        while not journal.exists() or not journal.read_bytes():
            assert process.poll() is None, process.stderr and process.stderr.read()
            time.sleep(0.05)
        children = _descendants(process.pid)
        os.killpg(process.pid, signal.SIGINT)
        _, errors = process.communicate(timeout=60)
    assert process.returncode == 130, errors
    assert "interrupted (what is done is kept: run it again to resume)" in errors
    assert "Warning" not in errors
    assert "Traceback" not in errors
    _wait_for_the_end_of(children)


def test_a_decision_of_a_policy_that_was_copied_is_unknown() -> None:
    policy = climber()
    with pytest.raises(UnknownDecisionError, match="of another"):
        policy.copy().tell(policy.ask([0.5]), 1.0)


def test_a_child_saves_where_a_thread_of_its_parent_was_saving(tmp_path: Path) -> None:
    done = run(
        """
import os, signal, sys, threading, time
import continuarm as ca
policy = ca.SurfaceSampling(ca.Box.unit(1), ca.Box.unit(1), rng=1)
policy.tell(policy.ask([0.5]), 1.0)
def save():
    while True:
        policy.save(sys.argv[1])
threading.Thread(target=save, daemon=True).start()
ended = []
for _ in range(20):
    time.sleep(0.01)
    child = os.fork()
    if child == 0:
        signal.alarm(20)
        policy.save(sys.argv[1])
        os._exit(0)
    ended.append(os.waitpid(child, 0)[1])
print(ended == [0] * 20)
os._exit(0)
""",
        str(tmp_path / "policy"),
    )
    assert "True" in done.stdout, done.stdout + done.stderr


def test_a_fork_while_a_listener_feeds_a_replica() -> None:
    done = run(
        """
import os, signal, threading
import continuarm as ca
signal.alarm(100)
policy = ca.SurfaceSampling(ca.Box.unit(1), ca.Box.unit(1), rng=1)
replicas = [ca.Policy.from_snapshot(policy.snapshot()) for _ in range(8)]
for replica in replicas:
    policy.listen(replica.apply)
def serve():
    while True:
        policy.tell(policy.ask([0.5]), 1.0)
threading.Thread(target=serve, daemon=True).start()
for _ in range(50):
    child = os.fork()
    if child == 0:
        os._exit(0)
    os.waitpid(child, 0)
print("forked", flush=True)
os._exit(0)
"""
    )
    assert "forked" in done.stdout, done.stdout + done.stderr
