"""Plotted: the figures of a policy, and the numbers behind them."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from continuarm import plots
from continuarm.core.compiling import Array
from continuarm.live.cells import PARTS, Cell, cells_of
from continuarm.live.guarded import Guarded
from continuarm.live.inputs import Context, Contexts
from continuarm.plots.subject import Values
from continuarm.table import Table

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["Plotted"]

COLUMNS = ("whose", "from", "to", "payoffs", "mean", "standard error")


class Plotted(Guarded):
    """A policy that can be looked at; what draws is in `continuarm.plots`."""

    def expected(self, context: Context, values: Contexts) -> Array | None:
        """What decisions `(n, dy)` are expected to pay for a context, and the standard errors.

        An array `(n, 2)`; None where too little is known, or where the learner fits no payoff.
        """
        point, units = self.context.point(context), self.decision.points(values)
        own = self._life.incumbent.own
        limits = self._life.limits_within(None, None if own is None else own.at(point))
        ys = self.decision.to_unit(units)
        return self.gate.alone(self._life.model.expected, point, limits, ys)

    def cells(
        self,
        *,
        along: str | Sequence[str] | None = None,
        parts: int = PARTS,
        at: Values = None,
    ) -> list[Cell]:
        """What is known in equal parts of one or two contexts, each of which can be frozen.

        Parameters
        ----------
        along : the names of one or two contexts; default the two along which the best decision
            moves most.
        parts : of each, at most 64.
        at : where the others are held, by name for some or in order for all; default the middle.

        >>> import continuarm as ca
        >>> box = ca.Box([0], [24], names=["hour"])
        >>> policy = ca.Policy(box, box, partition=ca.Grid(1), learner=ca.SmoothSurface())
        >>> [cell.in_words(box) for cell in policy.cells(parts=3)]
        ['hour 0 to 8', 'hour 8 to 16', 'hour 16 to 24']
        """
        return list(cells_of(self, along, parts, at))

    def history(self) -> Table:
        """What was paid over time, ours and the incumbent's, in at most 64 rows each."""
        return self.gate.alone(self._history)

    def _history(self) -> Table:
        kept = self._life.history
        rows = [
            (whose, *bucket)
            for whose, theirs in (("ours", False), ("incumbent's", True))
            for bucket in kept.buckets(theirs=theirs)
        ]
        return Table.of(COLUMNS, rows)

    def plot_learned(
        self, along: str | None = None, at: Values = None, path: str | Path | None = None
    ) -> "Figure":
        """Draw the best decision known along a context, with its uncertainty.

        Parameters
        ----------
        along : the name of a context; default the first.
        at : where the others are held, by name for some or in order for all; default the middle.
        path : the file to write the figure to.
        """
        me: Any = self
        return plots.plot_learned(me, along, at, path)

    def plot_bins(
        self,
        dimensions: str | Sequence[str] | None = None,
        at: Values = None,
        colour: str | None = None,
        path: str | Path | None = None,
    ) -> "Figure":
        """Draw the bins: a strip along one context, a map along two.

        A policy that has only one bin is drawn by `plot_cells`, unless the colour is `"visits"`.

        Parameters
        ----------
        dimensions : the names of one or two contexts; default the first two.
        at : where the others are held, by name for some or in order for all; default the middle.
        colour : `"visits"`, the default where there are several bins; `"payoff"` (expected of a
            bin's best decision); or the name of a coordinate of the best decision.
        path : the file to write the figure to.
        """
        me: Any = self
        if self.has_one_bin and colour != plots.VISITS:
            return plots.plot_cells(me, dimensions, at, colour, path)
        return plots.plot_bins(me, dimensions, at, colour or plots.VISITS, path)

    def plot_cells(
        self,
        along: str | Sequence[str] | None = None,
        at: Values = None,
        colour: str | None = None,
        path: str | Path | None = None,
        *,
        parts: int = PARTS,
    ) -> "Figure":
        """Draw the cells: a strip along one context, a map along two.

        Parameters
        ----------
        along, at, parts : as in `cells`.
        colour : the name of a coordinate of the best decision, the first by default; `"payoff"`
            (expected of the best decision), or `"gain"` (how much more that is than today).
        path : the file to write the figure to.
        """
        me: Any = self
        return plots.plot_cells(me, along, at, colour, path, parts=parts)

    def plot_payoff(
        self,
        context: Context = (),
        over: str | Sequence[str] | None = None,
        at: Values = None,
        path: str | Path | None = None,
    ) -> "Figure":
        """Draw the payoff that is expected for a context over one or two coordinates.

        Parameters
        ----------
        over : the names of one or two coordinates of the decision; default the first two.
        at : where the others are held; default at the best decision known.
        path : the file to write the figure to.
        """
        me: Any = self
        return plots.plot_payoff(me, context, over, at, path)

    def plot_history(self, path: str | Path | None = None) -> "Figure":
        """Draw mean payoffs over time, ours against the incumbent's.

        Parameters
        ----------
        path : the file to write the figure to.
        """
        me: Any = self
        return plots.plot_history(me, path)
