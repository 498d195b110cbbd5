"""Regret through three servers, against the policy in the shop's own process with the same delay.

    python -m benchmarks.servers [--seeds 4] [--decisions 100000] [--write]

A simulated shop asks for decisions in batches, each at the next server, and tells what a batch
paid after the next one was decided. In process it does the same with one policy. What differs is
that a server may not have folded yet what another one was told.
"""

import argparse
import json
import tempfile
from collections.abc import Callable
from contextlib import ExitStack, closing
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

import numpy as np

import continuarm as ca
from benchmarks.service import Server
from benchmarks.service_page import machine, put, verdict
from continuarm.core.compiling import Array
from continuarm.table import Table

WORLDS = ("two-communities", "purchase")
BATCH, SERVERS = 100, 3
MORE = 4  # runs in process for each seed
MOST = 1.05

Ask = Callable[[Array], tuple[list[Any], Array]]
Tell = Callable[[list[Any], Array], None]


def regret(world: ca.Problem, seed: int, decisions: int, ask: Ask, tell: Tell) -> float:
    """What a shop has lost against the best decisions; batches are told one batch late."""
    rng, lost, untold = np.random.default_rng(seed), 0.0, list[Any]()
    for _ in range(decisions // BATCH):
        contexts = world.draw_contexts(rng, BATCH)
        ids, values = ask(contexts)
        _, best = world.best_many(contexts)
        lost += float((best - world.mean_many(contexts, values)).sum())
        paid = [world.payoff(x, y, rng) for x, y in zip(contexts, values, strict=True)]
        if untold:
            tell(*untold.pop())
        untold.append((ids, np.array(paid)))
    return lost


def in_process(world: ca.Problem, seed: int, decisions: int) -> float:
    """The regret of a policy."""
    policy = ca.SurfaceSampling(world.context, world.decision, rng=seed)

    def ask(contexts: Array) -> tuple[list[Any], Array]:
        found = policy.ask_many(contexts)
        return list(found.ids), found.values

    return regret(world, seed, decisions, ask, policy.tell_many)


class Shop:
    """The same through several servers, one after the other."""

    def __init__(self, ports: list[int], world: ca.Problem, name: str) -> None:
        self._ports, self._here, self._turn = ports, f"/v1/experiments/{name}", 0
        edges = {"context": world.context, "decision": world.decision}
        made = {
            what: {"low": box.low.tolist(), "high": box.high.tolist()}
            for what, box in edges.items()
        }
        self._call("PUT", "", made)

    def _call(self, method: str, path: str, body: Any) -> Any:
        self._turn += 1
        port = self._ports[self._turn % len(self._ports)]
        with closing(HTTPConnection("127.0.0.1", port, timeout=600)) as server:
            headers = {"content-type": "application/json"}
            server.request(method, self._here + path, json.dumps(body), headers)
            answer = server.getresponse()
            content = answer.read()
        assert answer.status in (200, 201), content
        return json.loads(content)

    def ask(self, contexts: Array) -> tuple[list[Any], Array]:
        found = self._call("POST", "/decisions", {"contexts": contexts.tolist()})["decisions"]
        values = [list(one["decision"].values()) for one in found]
        return [one["id"] for one in found], np.array(values)

    def tell(self, ids: list[Any], payoffs: Array) -> None:
        told = [{"id": id_, "payoff": p} for id_, p in zip(ids, payoffs.tolist(), strict=True)]
        closed = self._call("POST", "/payoffs", {"payoffs": told})["closed"]
        assert all(one["done"] for one in closed)


def measured(seeds: int, decisions: int) -> Table:
    """Both, on each world."""
    rows = []
    with ExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory(dir="."))
        store = str(Path(folder) / "shop.db")
        ports = [stack.enter_context(Server(store)).port for _ in range(SERVERS)]
        for name in WORLDS:
            world, through = ca.problem(name), list[float]()
            for seed in range(seeds):
                shop = Shop(ports, world, f"{name}-{seed}")
                through.append(regret(world, seed, decisions, shop.ask, shop.tell))
                print(name, seed, through[-1], flush=True)
            alone = [in_process(world, seed, decisions) for seed in range(MORE * seeds)]
            rows.append(row(name, np.array(through), np.array(alone)))
            print(rows[-1], flush=True)
    columns = ("problem", "three servers", "±", "in process", "±", "ratio", "±", "at most", "")
    return Table.of(columns, rows)


def row(name: str, through: Array, alone: Array) -> tuple[Any, ...]:
    """Mean regrets with standard errors, and their ratio (delta method)."""
    means = [float(found.mean()) for found in (through, alone)]
    errors = [float(found.std(ddof=1)) / len(found) ** 0.5 for found in (through, alone)]
    ratio = means[0] / means[1]
    error = ratio * float(np.hypot(errors[0] / means[0], errors[1] / means[1]))
    shown = [round(value, 1) for pair in zip(means, errors, strict=True) for value in pair]
    said = verdict(ratio, MOST, at_most=True)
    return (name, *shown, round(ratio, 3), round(error, 3), MOST, said)


def main() -> None:
    """Measure, and print or write the section."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=4)
    parser.add_argument("--decisions", type=int, default=100_000)
    parser.add_argument("--write", action="store_true")
    options = parser.parse_args()
    table = measured(options.seeds, options.decisions)
    text = f"""
The regret of a simulated shop that asks {SERVERS} servers in turn, {options.decisions:,}
decisions in batches of {BATCH}, each told after the next one was decided; {options.seeds} shops.
*In process* one policy has the same delay; {MORE * options.seeds} shops. After ± are standard
errors.

{table.markdown()}

`python -m benchmarks.servers --seeds {options.seeds} --write` on {machine()}, with SQLite.
"""
    print(text)
    if options.write:
        put("Regret through three servers", text)


if __name__ == "__main__":
    main()
