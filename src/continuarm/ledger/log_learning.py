"""Learning a log beside a state, which stays as it is meanwhile: others decide from it.

To learn a log takes seconds. A copy of the model learns it, in a thread that keeps nobody out.
Then the copy takes the model's place in one stroke, when the record of the log is folded.
"""

from contextlib import suppress

from continuarm.errors import ContinuarmError
from continuarm.ledger.entries import event_of
from continuarm.live import checked_events
from continuarm.live.events import NAMES, Event, LearnedFromLog
from continuarm.live.life import Life
from continuarm.live.warm_start import LearnedLog
from continuarm.store.records import Record

__all__ = ["LEARNED_FROM_LOG", "LogLearning"]

LEARNED_FROM_LOG = NAMES[LearnedFromLog]


class LogLearning:
    """A log, and the copy that learns it; it is made while nobody else has the life.

    event : what the record says, where that is known.
    learned : what it has taught the copy; None: nothing, or not yet.
    """

    def __init__(self, life: Life, record: Record, event: Event | None) -> None:
        self.life, self.record, self.event = life, record, event
        self._model = life.model.copy()
        self.learned: LearnedLog | None = None

    def learn(self) -> None:
        """Let the copy learn it; one that is refused is refused again when it is folded."""
        self.event = event_of(self.record, 0.0) if self.event is None else self.event
        assert isinstance(self.event, LearnedFromLog)
        with suppress(ContinuarmError):
            checked_events.check(self.life, self.event)
            self.learned = self.life.learned_from(self.event, self._model)
