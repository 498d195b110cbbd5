"""Result: what a simulation measured."""

import html
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from continuarm.core.compiling import Array
from continuarm.errors import SettingsError
from continuarm.lab.figures.plots import regret_curves
from continuarm.live.decision import Bin
from continuarm.table import Table

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["Result"]


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Result:
    """What a simulation measured.

    Attributes
    ----------
    checkpoints : decisions made so far at each column; the last is the horizon.
    regret : cumulative regret, `(replications, checkpoints)`.
    recommend_regret : mean regret of one decision of `recommend` at that moment, on 1,000 contexts
        of its own, same shape; NaN for a policy that cannot recommend.
    seconds : wall time of the runs, without import and compiling.
    policies : the policies as they ended, one per replication.
    feedback : how late payoffs came and how many were lost, in words; empty: at once, and none.
    """

    policy: str
    problem: str
    horizon: int
    replications: int
    checkpoints: NDArray[np.int64]
    regret: Array
    recommend_regret: Array
    seconds: float
    policies: list[Any]
    feedback: str = ""

    def __repr__(self) -> str:
        error = "" if self.replications < 2 else f" ± {self.standard_error[-1]:.4g}"
        return f"<{self.title}: regret {self.mean[-1]:.4g}{error}>"

    def _repr_html_(self) -> str:
        return f"<p>{html.escape(self.title)}</p>{self.table().html()}"

    @property
    def title(self) -> str:
        """Which policy, on which problem, how often and how long."""
        times = f"{self.replications} replication{'' if self.replications == 1 else 's'}"
        late = f" ({self.feedback})" if self.feedback else ""
        return f"{self.policy} on {self.problem}{late}, {times} of {self.horizon:,} decisions"

    @property
    def mean(self) -> Array:
        """Mean cumulative regret at each checkpoint."""
        return np.asarray(self.regret.mean(axis=0))

    @property
    def standard_error(self) -> Array:
        """Standard error of that mean; NaN for a single replication."""
        return _standard_error(self.regret)

    @property
    def decisions_per_second(self) -> float:
        """Decisions of all replications per second of wall time."""
        return self.horizon * self.replications / self.seconds

    def bins(self, replication: int = 0) -> list[Bin]:
        """The bins with which a replication ended."""
        policy = self.policies[replication]
        if not hasattr(policy, "bins"):
            raise SettingsError(f"a policy with bins is needed, but got {self.policy}")
        found: list[Bin] = policy.bins()
        return found

    def table(self) -> Table:
        """Regret at each checkpoint, with standard errors."""
        columns = ("decisions", "regret", "std error", "per decision", "of recommend")
        rows = zip(
            self.checkpoints.tolist(),
            self.mean.tolist(),
            _none_if_nan(self.standard_error),
            (self.mean / self.checkpoints).tolist(),
            _none_if_nan(self.recommend_regret.mean(axis=0)),
            strict=True,
        )
        return Table.of(columns, list(rows))

    def plot(self, path: str | None = None) -> "Figure":
        """Regret against decisions on a log-log plot, written to `path` if given."""
        return regret_curves([self], path)


def _standard_error(values: Array) -> Array:
    if len(values) < 2:
        return np.full(values.shape[1], np.nan)
    return np.asarray(values.std(axis=0, ddof=1) / np.sqrt(len(values)))


def _none_if_nan(values: Array) -> list[float | None]:
    return [None if np.isnan(value) else value for value in values.tolist()]
