"""Client: a policy that lives in a service."""

import time
from collections.abc import Sequence
from contextlib import suppress
from queue import Empty, SimpleQueue
from threading import Event, Lock, Thread
from typing import Any, Self, overload

from continuarm.client.core import Call, Talk
from continuarm.client.incumbent import incumbent_of, is_own
from continuarm.client.plain import plain_of, rows_of
from continuarm.client.trying import Servers, Tries, answer_of, headers_of, httpx
from continuarm.core.compiling import Array
from continuarm.errors import ContinuarmError, SegmentConflictError, UnavailableError
from continuarm.live.cells import PARTS, Cell
from continuarm.live.decision import Bin, Decision, Decisions
from continuarm.live.segments import Segment, Where

__all__ = ["Client"]

SOON = 0.2  # seconds until a decision that was not waited for is forgotten


class Client:
    """An experiment of a service, with the verbs of a policy.

    Parameters
    ----------
    address : of the service, such as `http://127.0.0.1:8080`; or those of several servers on one
        store. Where one does not answer, the next one is tried at once.
    experiment : its name.
    token : if the service needs one.
    timeout : seconds that one try may take.
    incumbent : what is done today, by name, in order, or a function of the context. Where the
        service does not answer in time, `ask` answers this itself. Its payoff is learned by
        nobody: `tell` does nothing with it. What the service may have decided meanwhile is
        forgotten later, in the background. One that is no decision of the experiment is refused
        when the service has first answered one.
    patience : seconds that a request is tried again for, all its tries together; default 30, or
        one `timeout` if that is longer. With an `incumbent` it is how long `ask` waits before it
        answers that, by default 0.2; other verbs have nothing to fall back on, and try for 30.

    Every `ask` has a key, the caller's or one of its own. So a try that was cut off is made again
    without harm. What the service refuses is raised as a policy would.
    """

    def __init__(
        self,
        address: str | Sequence[str],
        experiment: str,
        *,
        token: str | None = None,
        timeout: float = 10.0,
        incumbent: Any = None,
        patience: float | None = None,
    ) -> None:
        self._talk, self._incumbent = Talk(experiment), incumbent_of(incumbent, patience)
        self._servers = Servers(address, timeout, None if incumbent is not None else patience)
        self._http = httpx.Client(timeout=timeout, headers=headers_of(token))
        self._unwanted = _Unwanted(self)

    def call(self, call: Call, tries: Tries | None = None) -> dict[str, Any]:
        """Make a request, as often as it takes."""
        tries = self._servers.tries() if tries is None else tries
        for address, timeout in tries.each():
            try:
                return answer_of(self._http.request(**call.options(address, timeout)))
            except (httpx.TransportError, UnavailableError) as error:
                time.sleep(tries.pause(address, error))
        raise AssertionError

    def _know(self, tries: Tries | None = None) -> None:
        """Learn the names of the boxes, once."""
        if not self._talk.is_known:
            self._talk.know(self.call(self._talk.experiment(), tries))

    def ask(self, context: Any = (), *, within: Any = None, key: str | None = None) -> Decision:
        """A decision for this context, when it is durable."""
        plain, today, call = plain_of(context, "context"), self._incumbent, None
        if today is not None:
            today.check()
            if today.answered(key):
                return today.decision(context, plain, key)
        tries = self._servers.tries(None if today is None else today.patience)
        try:
            if self._talk.has_no_names(within):
                self._know(tries)
            call = self._talk.ask(plain, within, key)
            answer = self.call(call, tries)
        except UnavailableError:
            if today is None:
                raise
            if call is not None:
                self._unwanted.add(call)
            return today.decision(context, plain, key)
        decision = self._talk.decision(plain, answer)
        if today is not None:
            try:
                today.check_first(context, decision.names)
            except Exception:
                self.call(self._talk.forget_answer(answer))  # nobody gets it
                raise
        return decision

    def ask_many(self, contexts: Any) -> Decisions:
        """Decisions for contexts of shape `(n, dx)`; if one is refused, there is none."""
        rows = rows_of(contexts, "contexts")
        answers, is_whole = list[dict[str, Any]](), False
        try:
            for call in self._talk.ask_many(rows):
                answers.append(self.call(call))
            decisions = self._talk.decisions(rows, answers)
            is_whole = True
            return decisions
        finally:
            if not is_whole:
                for forgotten in self._talk.forget_answers(answers):
                    with suppress(ContinuarmError):
                        self.call(forgotten, self._servers.few_tries())

    def tell(self, decision: Decision | int | str, payoff: float, *, value: Any = None) -> None:
        """Learn the payoff of a decision; the same again changes nothing."""
        if not is_own(decision):
            self.call(self._talk.tell(decision, payoff, value))

    def tell_many(
        self, decisions: Decisions | Sequence[Any], payoffs: Any, *, values: Any = None
    ) -> None:
        """Learn many payoffs, each by itself; then raise why the first one was refused, if so."""
        calls = self._talk.tell_many(decisions, payoffs, values)
        self._talk.all_closed([self.call(call) for call in calls])

    def forget(self, decision: Decision | int | str) -> None:
        """A payoff will never come."""
        if not is_own(decision):
            self.call(self._talk.forget(decision))

    def recommend(self, context: Any = ()) -> Array:
        """The best decision known now."""
        plain = plain_of(context, "context")
        if self._talk.has_no_names(plain):
            self._know()
        answer = self.call(self._talk.recommend(plain))
        if self._incumbent is not None:
            self._incumbent.check_first(context, tuple(answer["decision"]))
        return self._talk.best(answer)

    def explain(self, what: Any = ()) -> dict[str, Any]:
        """Why a decision was made, or what is best for a context."""
        if isinstance(what, Decision):
            return self.call(self._talk.explain_decision(what))
        plain = plain_of(what, "context")
        if self._talk.has_no_names(plain):
            self._know()
        return self.call(self._talk.explain(plain))

    def cells(
        self, *, along: str | Sequence[str] | None = None, parts: int = PARTS, at: Any = None
    ) -> list[Cell]:
        """What is known in equal parts of one or two contexts, each of which can be frozen.

        Parameters
        ----------
        along : the names of one or two contexts; default the two along which the best decision
            moves most.
        parts : of each, at most 32.
        at : where the others are held, by name for some or in order for all; default the middle.
        """
        plain = None if at is None else plain_of(at, "context")
        if self._talk.has_no_names(plain):
            self._know()
        return self._talk.all_cells(self.call(self._talk.cells(along, parts, plain)))

    def pause(self) -> None:
        """Let every decision be the incumbent's, for everybody, until `resume`."""
        self.call(self._talk.steer("pause"))

    def resume(self) -> None:
        """Decide again."""
        self.call(self._talk.steer("resume"))

    @overload
    def freeze(self, what: Bin | int) -> None: ...

    @overload
    def freeze(self, what: Where | Segment) -> Segment: ...

    def freeze(self, what: Bin | int | Where | Segment) -> Segment | None:
        """Let a segment of contexts, or a bin, answer as now and learn nothing, for everybody.

        Parameters
        ----------
        what : from where to where for some contexts by name, such as `{"hour": (18, 24)}`, both
            included; or the number of a bin.
        """
        return self._freeze("freeze", what)

    def unfreeze(self, what: Bin | int | Where | Segment) -> None:
        """Let it decide and learn again."""
        self._freeze("unfreeze", what)

    def _freeze(self, verb: str, what: Any) -> Segment | None:
        call, tries, answer = self._talk.freeze(verb, what), self._servers.tries(), {}
        try:
            answer = self.call(call, tries)
        except SegmentConflictError:
            if not tries.again:  # or else a try before it was not heard of, and has done it
                raise
        return self._talk.segment(call, answer)

    @property
    def frozen(self) -> list[Segment | int]:
        """What is frozen: segments, the one that answers first before others, numbers of bins."""
        return self._talk.frozen(self.call(self._talk.experiment()))

    def close(self) -> None:
        """Forget what is left to forget, if the service answers, and let go of the connection."""
        self._unwanted.close()
        self._http.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def forget_unwanted(self, call: Call) -> None:
        """Forget the decision of a request that was not waited for, made by now or not."""
        answer = self.call(call, self._servers.few_tries())
        self.call(self._talk.forget_answer(answer), self._servers.few_tries())


class _Unwanted:
    """Requests that were not waited for, whose decisions a thread forgets when it can."""

    def __init__(self, client: Client) -> None:
        self._client, self._calls = client, SimpleQueue[Call]()
        self._thread: Thread | None = None
        self._starting, self._ending = Lock(), Event()

    def add(self, call: Call) -> None:
        """One more."""
        self._calls.put(call)
        with self._starting:
            if self._thread is None:
                self._thread = Thread(target=self._forget_all, daemon=True)
                self._thread.start()

    def _forget_all(self) -> None:
        while not self._ending.wait(SOON):
            self._forget_some()
        self._forget_some()

    def _forget_some(self) -> None:
        """Forget until there are no more, or the service is away."""
        while True:
            try:
                call = self._calls.get_nowait()
            except Empty:
                return
            try:
                self._client.forget_unwanted(call)
            except UnavailableError:
                self._calls.put(call)
                return
            except ContinuarmError:
                continue  # refused: there is no decision, or it is closed

    def close(self) -> None:
        """Try once more."""
        self._ending.set()
        if self._thread is not None:
            self._thread.join()
