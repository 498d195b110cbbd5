"""What maps of contexts share: areas with a colour, hatched by what holds there."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from continuarm.box import Box
from continuarm.plots.canvas import SET_BY, says_of
from continuarm.plots.subject import name_axis, wrapped

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["NOT_SHOWN", "Area", "draw_map", "frame_map"]

NOT_SHOWN = "payoffs do not show yet where it lies"
HATCHES = {guard: hatch for guard, (_, hatch) in SET_BY.items()} | {NOT_SHOWN: "\\\\"}


class Area(NamedTuple):
    """A part of a map.

    edges : from where to where along each axis: two numbers, four, or none.
    value : what its colour means; None: not known.
    text : what is written into it.
    marks : the guards that have set its decision, and whether payoffs show it.
    """

    edges: Sequence[float]
    value: float | None
    text: str
    marks: Sequence[str]


def frame_map(axes: Any, context: Box, shown: Sequence[int], without: str) -> None:
    """The axes of a strip or a map; `without`: what is said where there is no context."""
    if shown:
        axes.set_xlim(context.low[shown[0]], context.high[shown[0]])
        name_axis(axes.xaxis, context, shown[0], 60)
    else:
        axes.set_xlim(0.0, 1.0)
        axes.set_xticks([])
        axes.set_xlabel(without)
    if len(shown) < 2:
        axes.set_yticks([])
        axes.set_ylim(0.0, 1.0)
    else:
        axes.set_ylim(context.low[shown[1]], context.high[shown[1]])
        name_axis(axes.yaxis, context, shown[1], 40)


def draw_map(
    figure: "Figure", axes: Any, areas: Sequence[Area], meaning: str, few: int, size: float = 8.0
) -> None:
    """Draw areas and the bar of their colours; texts only where there are few."""
    from matplotlib import colormaps
    from matplotlib.collections import PolyCollection

    corners = [_corners(area.edges) for area in areas]
    values = [np.nan if area.value is None else float(area.value) for area in areas]
    colours = colormaps["viridis"].with_extremes(bad="0.8")  # grey: nobody knows
    boxes = PolyCollection(corners, array=np.array(values), cmap=colours, edgecolor="white")
    axes.add_collection(boxes)
    _hatch(figure, axes, corners, areas)
    if np.isfinite(values).any():
        if np.nanmin(values) == np.nanmax(values):  # one colour, and a scale around it
            half = 0.5 * abs(np.nanmin(values)) or 0.5
            boxes.set_clim(np.nanmin(values) - half, np.nanmin(values) + half)
        place = "right" if areas and len(areas[0].edges) > 2 else "bottom"
        bar = figure.colorbar(boxes, ax=axes, location=place)
        bar.set_label(wrapped(meaning, 40))
    if 0 < len(corners) <= few:
        middle, span = np.nanmean(boxes.get_clim()), np.ptp(boxes.get_clim()) or 1.0
        for box, area, value in zip(corners, areas, values, strict=True):
            (left, low), (right, high) = box[0], box[2]
            bright = value > middle + 0.1 * span or not np.isfinite(value)
            axes.text(
                0.5 * (left + right),
                0.5 * (low + high),
                area.text,
                ha="center",
                va="center",
                fontsize=size,
                color="black" if bright else "white",
                clip_on=True,
            )


def _corners(edges: Sequence[float]) -> list[tuple[float, float]]:
    left, right = edges[:2] if edges else (0.0, 1.0)
    low, high = edges[2:4] if len(edges) > 2 else (0.0, 1.0)
    return [(left, low), (right, low), (right, high), (left, high)]


def _hatch(figure: "Figure", axes: Any, corners: list[Any], areas: Sequence[Area]) -> None:
    """Hatch areas, for each mark in its own way."""
    from matplotlib.collections import PolyCollection
    from matplotlib.patches import Patch

    marks = []
    for mark, hatch in HATCHES.items():
        held = [box for box, area in zip(corners, areas, strict=True) if mark in area.marks]
        if held:
            look: dict[str, Any] = {"facecolor": "none", "edgecolor": "0.7", "hatch": hatch}
            axes.add_collection(PolyCollection(held, linewidth=0, **look))
            label = mark if mark == NOT_SHOWN else says_of(mark)
            marks.append(Patch(label=label, **look))
    if marks:
        figure.legend(handles=marks, loc="outside upper right", ncols=3, frameon=False, fontsize=9)
