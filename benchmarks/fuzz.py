"""Crafted files: every one is refused, or is a policy that works.

    python -m benchmarks.fuzz [--files 10000] [--only POLICY ...] [--earlier FOLDER]
                              [--write docs/hardening.md]

Each file is a saved policy in which one to three things were changed before its checksum was
written (`benchmarks.damage`). It is opened in a process of its own kind, which may crash or hang.
What is accepted is used: asked, told, forgotten, recommended, explained, diagnosed, exported and
saved again.
"""

import argparse
import os
import signal
import tempfile
import warnings
from collections import Counter
from collections.abc import Iterator
from multiprocessing import get_context
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import numpy as np

import continuarm as ca
from benchmarks.damage import GUARDED, POLICIES, Parts, damaged, put_together, saved_parts
from benchmarks.pauses import compile_table, pause_table
from continuarm.core.state import ROWS_USED
from continuarm.errors import ContinuarmError, InputError, SavedFileError
from continuarm.live import saved_file
from continuarm.live.reader import Reader
from continuarm.table import Table

OUTCOMES = ("refused", "works", "crash", "hang", "raw exception", "bad decision", "NaN in a state")
FOUND = OUTCOMES[2:]
BEGINNINGS = 24
PATIENCE = 20.0  # seconds that one file may take
ROUNDS = 40


class Bad(Exception):
    """What a policy from an accepted file must not do."""


def outcome(path: Path) -> str:
    """What becomes of one file."""
    try:
        policy = ca.load(path)
    except SavedFileError:
        return "refused"
    except Exception as error:
        return f"raw exception: load: {type(error).__name__}: {error}"
    try:
        use(policy, path)
    except Bad as bad:
        return str(bad)
    except Exception as error:
        return f"raw exception: {type(error).__name__}: {error}"
    return "works"


def use(policy: ca.Policy, path: Path) -> None:
    """Everything that a policy can do, with decisions looked at."""
    rng = np.random.default_rng(0)
    slope = {"gradient": np.ones(policy.decision.dim)} if policy.uses_gradient else {}
    opened = list(policy.life.open.open)
    for k in range(ROUNDS):
        x = policy.context.from_unit(rng.random(policy.context.dim))
        decision = policy.ask(x)
        _look(policy, decision.value)
        _look(policy, policy.recommend(x))
        if k % 4 == 3:
            policy.forget(decision)
        else:
            policy.tell(decision, float(rng.normal()), **slope)
    for k, id_ in enumerate(opened):
        _close(policy, id_, k, slope)
    for edge in (policy.context.low, policy.context.high):
        _look(policy, policy.recommend(edge))
        _look(policy, policy.explain(edge)["centre"])
    middle = policy.decision.from_unit([[0.25], [0.75]] * np.ones(policy.decision.dim))
    within = ca.Box(*middle) if (middle[0] < middle[1]).all() else None
    _ask_within(policy, within)
    for bin_ in policy.bins():
        _look(policy, bin_.best)
    policy.stats()
    str(policy.diagnose())
    if policy.share > 0.0:
        str(policy.uplift())
    _look(policy, Reader(policy.export()).decide(policy.context.centre.tolist()))
    policy.save(path)
    again = ca.load(path)
    again.forget_all()
    _look(again, again.ask(again.context.centre).value)
    _walk(policy)
    _walk(again)


def _close(policy: ca.Policy, id_: int, k: int, slope: dict[str, Any]) -> None:
    try:
        if k % 3 == 2:
            policy.forget(id_)
        else:
            policy.tell(id_, 1.0, **slope)
    except ContinuarmError:  # expired by now, or held
        pass


def _ask_within(policy: ca.Policy, within: ca.Box | None) -> None:
    """Limits of a request; with those of the policy they may leave nothing."""
    try:
        _look(policy, policy.ask(policy.context.centre, within=within).value)
    except InputError:
        if not policy.life.is_guarded:
            raise


def _look(policy: ca.Policy, value: Any) -> None:
    if not policy.decision.allows(value):
        raise Bad(f"bad decision: {np.asarray(value).tolist()}")


def _walk(policy: ca.Policy) -> None:
    """No state may hold a NaN."""
    known = policy.life.model.state
    parts = {"counts": known.counts, "rows": known.rows[: int(known.counts[ROWS_USED])]}
    parts |= {"pool": known.pool[: int(known.pool[0, 1])], "notes": known.notes}
    kept = {"history": policy.life.history.numbers, "tally": policy.life.comparison.tally}
    parts |= {name: np.array(numbers) for name, numbers in kept.items()}
    for name, array in parts.items():
        if np.isnan(array).any():
            raise Bad(f"NaN in a state: {name}")


def write_case(name: str, number: int, beginnings: list[Parts], path: Path) -> None:
    """Write the file of this number."""
    rng = np.random.default_rng([number, *name.encode()])
    shell, state = damaged(beginnings[number % len(beginnings)], rng)
    saved_file.write(path, shell, state)


def _work(name: str, numbers: range, beginnings: list[Parts], folder: str, to: Connection) -> None:
    warnings.simplefilter("ignore")
    path = Path(folder) / f"{name}-{os.getpid()}"
    for number in numbers:
        to.send((number, None))
        write_case(name, number, beginnings, path)
        with np.errstate(all="ignore"):
            to.send((number, outcome(path)))


def outcomes(name: str, numbers: range, beginnings: list[Parts]) -> Iterator[tuple[int, str]]:
    """What becomes of each file; a process that dies or hangs is replaced."""
    os.environ["NUMBA_NUM_THREADS"] = "1"
    context = get_context("fork")
    with tempfile.TemporaryDirectory(dir=_memory()) as folder:
        while len(numbers):
            mine, its = context.Pipe(duplex=False)
            arguments = (name, numbers, beginnings, folder, its)
            worker = context.Process(target=_work, args=arguments, daemon=True)
            worker.start()
            its.close()
            done = numbers.start
            for done, found in _reports(worker, mine, numbers):
                yield done, found
            worker.join()
            numbers = range(done + 1, numbers.stop)


def _reports(worker: Any, mine: Connection, numbers: range) -> Iterator[tuple[int, str]]:
    number = numbers.start
    while number < numbers.stop:
        try:
            if not mine.poll(PATIENCE):
                worker.kill()
                yield number, "hang"
                return
            number, found = mine.recv()
        except EOFError:
            worker.join()
            code = -worker.exitcode
            died = signal.Signals(code).name if code > 0 else f"exit {worker.exitcode}"
            yield number, f"crash: {died}"
            return
        if found is not None:
            yield number, found
            number += 1


def _memory() -> str | None:
    return "/dev/shm" if os.access("/dev/shm", os.W_OK) else None


def fuzz(name: str, files: int) -> tuple[Counter[str], list[tuple[int, str]]]:
    """How many files came to what, and those that found something."""
    beginnings = [saved_parts(name, number) for number in range(BEGINNINGS)]
    _warm(name, beginnings)
    if name in GUARDED:  # a file may have lost its limits
        _warm(name, [saved_parts("recommended", number) for number in range(BEGINNINGS)])
    counts, found = Counter[str](), []
    for number, what in outcomes(name, range(files), beginnings):
        kind = what.partition(":")[0]
        counts[kind] += 1
        if kind in FOUND:
            found.append((number, what))
    return counts, found


def _warm(name: str, beginnings: list[Parts]) -> None:
    """Compile before forking, so that no file waits for it."""
    with tempfile.TemporaryDirectory() as folder:
        for shell, header, arrays in beginnings:
            path = Path(folder) / "policy"
            saved_file.write(path, shell, put_together(header, arrays))
            assert outcome(path) == "works", (name, outcome(path))


def page(files: int, crafted: Table, pauses: Table, compiling: Table | None) -> str:
    """The page of the docs."""
    compiled = "" if compiling is None else COMPILING.format(table=compiling.markdown())
    return (
        PAGE.format(files=files, crafted=crafted.markdown(), pauses=pauses.markdown()) + compiled
    )


def with_rows(text: str, crafted: Table) -> str:
    """A page with the rows of some policies written again, or added; all else is as it was."""
    names = [str(row[0]) for row in crafted.rows]
    new = dict(zip(names, crafted.markdown().splitlines()[2:], strict=True))
    head, mark, rest = text.partition(f"| --- |{' --- |' * len(OUTCOMES)} --- |\n")
    table, _, rest = rest.partition("\n\n")
    rows = {row.split(" | ")[0].removeprefix("| "): row for row in table.splitlines()} | new
    return f"{head}{mark}{chr(10).join(rows.values())}\n\n{_later(names)}{_without_later(rest)}"


def _later(names: list[str]) -> str:
    return f"{LATER} {', '.join(names)}.\n\n"


def _without_later(text: str) -> str:
    return text.partition("\n\n")[2] if text.startswith(LATER) else text


LATER = """Measured later than the other rows, when there were more ways to change and to use a
file:"""
PAGE = """# Hardening, measured

This page is written by
`python -m benchmarks.fuzz --files {files} --earlier FOLDER --write docs/hardening.md`, where the
folder has the source of version 0.1.0.

## Crafted files

A saved policy is edited in one to three places, and its checksum is made right again:

- numbers of every array: other indices, links that are swapped or form cycles, huge numbers, NaN,
  rows cut off or doubled;
- the header: boxes of up to 100,000 dimensions, kinds, options, times to live, counters, shapes;
- what is allowed: edges, steps, rows and bounds of coupled limits;
- sums over a whole life, for diagnoses, figures and the uplift;
- open decisions, the name, the tokens, and what became of closed decisions.

Each file is opened in a process that may crash or hang. What is accepted is used: asked, told,
forgotten, recommended, explained, diagnosed, exported, saved and opened again.

{crafted}

*Terms that enter* is a `ResponseSurface(degree=5)` whose terms enter on little evidence. *Spaced*
and *coupled* are recommended policies with allowed values, or with coupled limits. *Refused* is a
`SavedFileError`. *Works* is a policy whose decisions are allowed, in a state without NaN. The
other columns are defects, and must be 0.

## Pauses and memory

`tell` of the recommended policy, 3,000 decisions after `warm_up`, on one core. Milliseconds are of
the thread's own time, so that other processes do not count. Memory is the largest of the process,
Python and Numba included.

{pauses}

"""
COMPILING = """## Compiling

The first calls of a recommended policy in a fresh installation: seconds of the process, with an
empty cache; medians of three rounds in which both versions take turns.

{table}
"""


def main() -> None:
    """Run, print, and write the page if asked to."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--files", type=int, default=10_000, help="per policy")
    parser.add_argument("--only", choices=POLICIES, action="append", help="these rows alone")
    parser.add_argument("--show", type=int, default=20, help="files that found something")
    parser.add_argument("--earlier", type=Path, help="the source folder of an earlier version")
    parser.add_argument("--write", type=Path, help="a page of Markdown to write the tables to")
    options, rows, failed = parser.parse_args(), [], False
    for name in options.only or POLICIES:
        counts, found = fuzz(name, options.files)
        rows.append((name, options.files, *(counts[outcome] for outcome in OUTCOMES)))
        for number, what in found[: options.show]:
            print(name, number, what[:200], flush=True)
        failed = failed or bool(found)
    crafted = Table.of(("policy", "files", *OUTCOMES), rows)
    print(crafted)
    if options.write is not None and options.only:
        options.write.write_text(with_rows(options.write.read_text(), crafted))
    elif options.write is not None:
        compiling = None if options.earlier is None else compile_table(options.earlier)
        text = page(options.files, crafted, pause_table(), compiling)
        options.write.write_text(text.rstrip() + "\n")
    if failed:
        raise SystemExit(1)


if __name__ == "__main__":
    main()
