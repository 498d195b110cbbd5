"""export: what a policy has learned, as a table for people and for `continuarm.live.reader`."""

import json
from typing import Any

from continuarm.box import Box
from continuarm.core.model import Rule
from continuarm.live.incumbent import Affine
from continuarm.live.reader import VERSION

__all__ = ["export"]


def export(name: str, start: Affine, rules: list[Rule]) -> str:
    """The table in JSON; boxes of bins are on the unit cube, `best` and `start` in units."""
    bins = []
    for low, high, told, best, follows, frozen in rules:
        bin_: dict[str, Any] = {"low": low.tolist(), "high": high.tolist(), "payoffs": told}
        bin_["best"] = best.tolist()
        if follows is not None:
            bin_ |= {"dimensions": start.decision.dim} | follows
        if frozen:
            bin_["frozen"] = True
        bins.append(bin_)
    table = {
        "format": "continuarm table",
        "version": VERSION,
        "policy": name,
        "context": _box(start.context),
        "decision": _box(start.decision),
        "start": {"constant": start.first.tolist(), "by_context": start.slopes.tolist()},
        "bins": bins,
    }
    return json.dumps(table, allow_nan=False)


def _box(box: Box) -> dict[str, Any]:
    return {"low": box.low.tolist(), "high": box.high.tolist(), "names": list(box.names)}
