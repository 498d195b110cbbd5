"""export: what a policy has learned, as a table for people and for `continuarm.live.reader`."""

import json
from typing import Any

from continuarm.box import Box
from continuarm.core.compiling import Array
from continuarm.core.model import Rule
from continuarm.live.reader import VERSION

__all__ = ["export"]


def export(name: str, context: Box, decision: Box, start: Array, rules: list[Rule]) -> str:
    """The table in JSON; boxes of bins are on the unit cube, `best` in units of the decision."""
    bins = []
    for low, high, told, best, follows in rules:
        bin_: dict[str, Any] = {"low": low.tolist(), "high": high.tolist(), "payoffs": told}
        bin_["best"] = best.tolist()
        bins.append(bin_ if follows is None else bin_ | {"dimensions": decision.dim} | follows)
    table = {
        "format": "continuarm table",
        "version": VERSION,
        "policy": name,
        "context": _box(context),
        "decision": _box(decision),
        "start": start.tolist(),  # on the unit cube
        "bins": bins,
    }
    return json.dumps(table, allow_nan=False)


def _box(box: Box) -> dict[str, Any]:
    return {"low": box.low.tolist(), "high": box.high.tolist(), "names": list(box.names)}
