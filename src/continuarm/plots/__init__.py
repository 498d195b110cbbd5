"""Figures of one policy: each has a function that computes its table, and one that draws it.

They ask a policy through its public methods alone. Matplotlib is the optional extra `plot`.
"""

from continuarm.plots.bins import VISITS, bins_table, plot_bins
from continuarm.plots.cells import cells_table, plot_cells
from continuarm.plots.explanation import explanation_table, plot_explanation
from continuarm.plots.history import history_table, plot_history
from continuarm.plots.learned import learned_table, plot_learned
from continuarm.plots.payoff import payoff_table, plot_payoff

__all__ = [
    "VISITS",
    "bins_table",
    "cells_table",
    "explanation_table",
    "history_table",
    "learned_table",
    "payoff_table",
    "plot_bins",
    "plot_cells",
    "plot_explanation",
    "plot_history",
    "plot_learned",
    "plot_payoff",
]
