"""How the figures of a policy are laid out."""

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from continuarm.drawing import COLOURS, check_path, figure_class, write

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = [
    "LEARNED",
    "MUTED",
    "SET_BY",
    "TODAY",
    "begun",
    "finished",
    "frame",
    "legend_below",
    "say",
    "says_of",
]

LEARNED, TODAY, MUTED = COLOURS[0], COLOURS[1], "0.45"
# How a figure marks what a guard has set: a colour, and a hatching.
SET_BY = {
    "max_move": (COLOURS[4], ".."),
    "coupled limits": (COLOURS[3], "xx"),
    "freeze": (COLOURS[5], "//"),
}


def begun(path: str | Path | None, width: float, height: float) -> "Figure":
    """An empty figure; what it is to be written to is checked first."""
    if path is not None:
        check_path(path)
    figure: Figure = figure_class()(figsize=(width, height), layout="constrained")
    return figure


def finished(figure: "Figure", path: str | Path | None) -> "Figure":
    """The figure, written to its file if there is one."""
    if path is not None:
        write(figure, path)
    return figure


def frame(axes: Any) -> None:
    """A quiet frame."""
    axes.grid(True, color="0.92")
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)


def legend_below(figure: "Figure", panels: Iterable[Any]) -> None:
    """One legend for all panels, below them."""
    named: dict[str, Any] = {}
    for axes in panels:
        handles, labels = axes.get_legend_handles_labels()
        named |= dict(zip(labels, handles, strict=True))
    figure.legend(
        named.values(),
        named.keys(),
        loc="outside lower center",
        ncols=3 if len(named) <= 3 else 2,
        frameon=False,
        fontsize=9,
    )


def says_of(guard: str) -> str:
    """What a legend says of a guard that has set a decision."""
    return "frozen" if guard == "freeze" else f"set by {guard}"


def say(axes: Any, text: str) -> None:
    """Say in the middle of an empty panel why it is empty."""
    axes.set_yticks([])
    axes.text(0.5, 0.5, text, transform=axes.transAxes, ha="center", va="center", color=MUTED)
