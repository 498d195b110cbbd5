"""Strokes: changes that no signal handler can cut in two, even one that raises.

Python runs the handlers of signals in the main thread at three places only: where a function of
Python's begins, where a call has returned, and where a loop goes round. So assignments in a row,
with nothing called between them, happen together. A call of compiled code joins them when an
iterator makes it that is unpacked:

    calling = starmap(compiled, [given])  # nothing has happened yet
    [answer] = calling  # from here on nothing is called:
    self.known, self.count = answer, self.count + 1

What takes several strokes is done `to_the_end`.
"""

from collections.abc import Callable

__all__ = ["insist", "to_the_end"]

TRIES = 1000  # for what fails without a signal


def to_the_end(work: Callable[[], None], progress: Callable[[], object]) -> None:
    """Do work of several strokes that can be taken up again, all of it or nothing.

    What is raised after the first stroke is raised when the rest is done.
    """
    before = progress()
    try:
        work()
    except BaseException:
        if progress() != before:
            insist(work)
        raise


def insist(work: Callable[[], None]) -> None:
    """Do work that can be taken up again, although signal handlers raise."""
    for _ in range(TRIES):
        try:
            work()
            return
        except BaseException:  # to be raised by the caller, or nowhere
            continue
