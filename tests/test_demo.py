"""The demonstration as a stranger starts it."""

import os
import re
import signal
import socket
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import httpx
import pytest

from continuarm.demo.chain import Chain
from continuarm.demo.ending import Ending
from continuarm.demo.serving import served
from continuarm.errors import SettingsError
from tests.service import free_port


def begun(folder: Path, *options: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "continuarm", "demo", "--speed", "20", *options]
    there = {**os.environ, "TMPDIR": str(folder)}

    pipe = subprocess.PIPE
    return subprocess.Popen(command, stdout=pipe, stderr=pipe, text=True, env=there)


def test_it_ends_after_its_decisions_with_a_summary_and_leaves_nothing(tmp_path: Path) -> None:
    running = begun(tmp_path, "--decisions", "300", "--port", str(free_port()))
    said, _ = running.communicate(timeout=300)
    assert running.returncode == 0
    counts = re.search(
        r"^300 decisions: (\d+) payoffs, (\d+) open, (\d+) late, (\d+) lost", said, re.M
    )
    assert counts is not None, said
    assert sum(int(n) for n in counts.groups()) == 300
    assert re.search(r"^profit per visitor: \d\d\.\d\d cents lately$", said, re.M)
    assert re.search(r"^against the incumbent: ", said, re.M)
    last = said.splitlines()[-1]
    best, today = map(float, re.findall(r"(\d+\.\d)%", last))
    assert 80.0 < today < best + 10.0 < 110.0
    assert list(tmp_path.iterdir()) == []


def test_ctrl_c_ends_it_with_a_summary_and_leaves_nothing(tmp_path: Path) -> None:
    port = free_port()
    running = begun(tmp_path, "--port", str(port))
    assert running.stdout is not None
    assert running.stdout.readline().startswith("compiling")
    address = running.stdout.readline().split()[0]
    assert httpx.get(address).text.startswith("<!doctype html>")
    assert len(list(tmp_path.iterdir())) == 1
    with httpx.stream("GET", f"{address}/v1/experiments/orange-juice/stream?after=0") as stream:
        lines = stream.iter_lines()
        assert next(lines)
        running.send_signal(signal.SIGINT)
        assert [*lines][-1] == "", "the stream is ended, not torn"
    said, wrong = running.communicate(timeout=60)
    assert (running.returncode, wrong) == (0, "")
    assert "payoffs" in said
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(httpx.ConnectError):
        httpx.get(address)


def test_a_ctrl_c_that_was_swallowed_ends_it_at_the_next_look() -> None:
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    hook, ending = sys.unraisablehook, Ending()
    ending.look()
    try:
        ending.listen()
        with suppress(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)
    finally:
        sys.unraisablehook = hook
        for number, handler in before.items():
            signal.signal(number, handler)
    with pytest.raises(KeyboardInterrupt):
        ending.look()


def test_what_cannot_be_is_said_in_one_line() -> None:
    command = [sys.executable, "-m", "continuarm", "demo", "--speed", "0"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 2
    assert done.stderr == "continuarm: `0 < speed` must hold, but got 0.0\n"
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with (
            pytest.raises(SettingsError, match=f"must be free, but {port} is taken"),
            served(port, Ending()),
        ):
            pass


def test_prices_are_in_steps_of_five_cents_and_days_are_worth_what_customers_pay() -> None:
    chain = Chain(seed=3)
    new = chain.experiment()
    assert new["decision"]["spacing"] == 0.05
    assert chain.box.allows(new["options"]["start"])
    assert len({tuple(store) for store in chain.stores(4000)}) == 80
    days = [chain.day(store, chain.today) for store in chain.stores(400)]
    paid = [day.paid - day.mean for day in days]
    # The spread of a visitor is near 27 cents, so that of a day of 1,000 is near 0.87; the mean of
    # 400 days strays by 0.043, and five of those are 0.22.
    assert abs(sum(paid) / len(paid)) < 0.22
    assert all(day.mean == day.today < day.best for day in days)
