"""export: what a policy has learned, as a table for people and for `continuarm.live.reader`."""

import json
from typing import Any

from continuarm.box import Box
from continuarm.core.compiling import Array
from continuarm.core.model import Rule
from continuarm.live.as_it_was import distinct
from continuarm.live.deciding import Held, Rules
from continuarm.live.incumbent import Affine
from continuarm.live.reader import VERSION, WITH_SEGMENTS, WITH_SURFACES
from continuarm.live.segments import plain_where
from continuarm.sets import plain_allowed

__all__ = ["export", "segments_in"]


def export(name: str, rules: list[Rules], max_move: Array | None, segments: dict[str, Any]) -> str:
    """The table in JSON; boxes of bins are on the unit cube, `best` and `start` in units.

    segments : what `segments_in` says.
    """
    start, *_ = rules[0]
    table: dict[str, Any] = {
        "format": "continuarm table",
        "version": WITH_SEGMENTS if segments else VERSION,
        "policy": name,
        "context": _box(start.context),
        "decision": _box(start.decision),
        **_learned(*rules[0]),
    }
    allowed = plain_allowed(start.decision)
    if allowed["guarded"]:
        table["allowed"] = allowed
    if max_move is not None:
        table["max_move"] = max_move.tolist()
    if len(rules) > 1:
        table["reference"] = _learned(*rules[1])
    learned = [table, *([table["reference"]] if len(rules) > 1 else []), *segments.get("then", [])]
    if any("surface" in bin_ for part in learned for bin_ in part["bins"]):
        table["version"] = WITH_SURFACES
    return json.dumps(table | segments, allow_nan=False)


def segments_in(segments: tuple[Held, ...]) -> dict[str, Any]:
    """What is frozen, and what answers there: `known` of them, which stays near to `near`."""
    every = list(distinct(segments))
    if not every:
        return {}
    number = {id(one): k for k, one in enumerate(every)}
    then = []
    for one in every:
        near = None if one.reference is None else number[id(one.reference)]
        then.append(_learned(*one.rules()[0]) | {"near": near})
    listed = [
        {"where": plain_where(segment.where), "known": number[id(known)]}
        for segment, known in segments
    ]
    return {"segments": listed, "then": then}


def _learned(start: Affine, rules: list[Rule]) -> dict[str, Any]:
    bins = []
    for low, high, told, best, follows, frozen in rules:
        bin_: dict[str, Any] = {"low": low.tolist(), "high": high.tolist(), "payoffs": told}
        bin_["best"] = best.tolist()
        if follows is not None:
            bin_ |= {"dimensions": start.decision.dim} | follows
        if frozen:
            bin_["frozen"] = True
        bins.append(bin_)
    affine = {"constant": start.first.tolist(), "by_context": start.slopes.tolist()}
    return {"start": affine, "bins": bins}


def _box(box: Box) -> dict[str, Any]:
    return {"low": box.low.tolist(), "high": box.high.tolist(), "names": list(box.names)}
