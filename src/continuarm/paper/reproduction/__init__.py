"""The paper's experiment, what its title claims, and a report: `continuarm reproduce`."""

from continuarm.paper.reproduction.command import FIGURES, reproduce, total_decisions

__all__ = ["FIGURES", "reproduce", "total_decisions"]
