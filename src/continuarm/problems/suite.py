"""The suite: all worlds on which policies are compared, and which of them are unseen."""

from continuarm.problems.further_worlds import FURTHER_WORLDS
from continuarm.problems.unseen_worlds import UNSEEN_WORLDS
from continuarm.problems.worlds import WORLDS

__all__ = ["SUITE", "UNSEEN"]

UNSEEN = UNSEEN_WORLDS  # written, and first run, when the policies were finished
SUITE = WORLDS | FURTHER_WORLDS | UNSEEN
