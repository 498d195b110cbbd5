"""export: what a policy has learned, as a table for people and for `continuarm.reader`."""

import json
from typing import Any

from continuarm.box import Box
from continuarm.engine import Engine
from continuarm.reader import VERSION

__all__ = ["export"]


def export(name: str, context: Box, decision: Box, engine: Engine) -> str:
    """The table in JSON; boxes of bins are on the unit cube, `best` in units of the decision."""
    bins = []
    for low, high, told, best, rule in engine.rules():
        bin_: dict[str, Any] = {"low": low.tolist(), "high": high.tolist(), "payoffs": told}
        bin_["best"] = decision.from_unit(best).tolist()
        bin_ |= {"constant": best.tolist()} if rule is None else {"dimensions": decision.dim}
        bins.append(bin_ | (rule or {}))
    table = {
        "format": "continuarm table",
        "version": VERSION,
        "policy": name,
        "context": _box(context),
        "decision": _box(decision),
        "bins": bins,
    }
    return json.dumps(table, allow_nan=False)


def _box(box: Box) -> dict[str, Any]:
    return {"low": box.low.tolist(), "high": box.high.tolist(), "names": list(box.names)}
