"""The watching thread: it answers other ranks' questions, sees to the time limits of what this rank waits for, and knows who has left.

It has a communicator of its own and looks at it every few milliseconds, so that it answers also while the program computes or the
communication thread is inside of MPI. Only a rank that is stopped, or killed, or holds the interpreter does not answer.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable
from typing import Any

from .failures import DifferentCallsError, DistBackendError, seconds
from .thread import communication
from .trail import Trail, trails
from .work import Task

LOOK = 0.02  #: seconds between two looks
ANSWER = 1.5  #: seconds that the others have to answer
GRACE = 0.3  #: seconds that a call may still take after a rank left that had a part in it: its messages may be under way
TAG = 1
STEP = 5  #: looks from one comparison of the order of calls to the next
MOST = 4096  #: captured calls that are kept for ranks that come later


class _Inquiry:
    """A question to other ranks, because of a task that waits too long."""

    def __init__(self, number: int, task: Task, asked: list[int]):
        self.number, self.task, self.asked = number, task, asked
        self.began = time.monotonic()
        self.answers: dict[int, str] = {}

    def over(self) -> bool:
        return len(self.answers) == len(self.asked) or time.monotonic() - self.began > ANSWER


class Watch:
    """The watching thread and what it has heard."""

    MPI: Any
    comm: Any

    def __init__(self, MPI: Any, comm: Any):
        self.MPI, self.comm = MPI, comm
        self.rank: int = comm.Get_rank()
        self.left: dict[int, dict[str | None, tuple[float, int]]] = {}  # rank -> group, or None for all -> when, its last number there
        self._sent: list[Any] = []
        self._lock = threading.Lock()
        self._numbers = 0
        self._inquiries: dict[int, _Inquiry] = {}
        self._news: deque[tuple[int, tuple[Any, ...], Any, str, Any]] = deque()  # of what was captured: whose, its place, kind, text, task
        self._own: dict[tuple[Any, ...], Task] = {}  # by place, the tasks of this rank's
        self._captured: dict[tuple[Any, ...], dict[int, tuple[Any, str]]] = {}
        self._orders: dict[tuple[str, int], tuple[int, list[tuple[int, str]]]] = {}  # by group and rank, what it has told of its calls
        self._inside: dict[tuple[str, int], tuple[int, str, str]] = {}  # and where it waits: the call's place, its kind, its text
        self._waited: Task | None = None  # of which the others were told last
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._live, name="autograd_nb-watch", daemon=True)
        self._thread.start()

    def tell(self, what: tuple[Any, ...], ranks: list[int]) -> None:
        """Send something to the watching threads of other ranks."""
        with self._lock:
            self._sent = [request for request in self._sent if not request.test()[0]]
            self._sent += [self.comm.isend(what, dest=r, tag=TAG) for r in ranks if r != self.rank]

    def leave(self, group: str | None, ranks: list[int], numbers: dict[str, int]) -> None:
        """Tell the others that this rank makes no more calls in a group, or (None) in any; ``numbers``: its last in each."""
        for name in numbers:
            if (trail := trails.by_name.get(name)) is not None:
                self._tell_order(name, trail)
        self.tell(("left", group, numbers), ranks)

    def captured(self, task: Task, place: tuple[Any, ...], kind: Any, text: str) -> None:
        """Note what is being captured, and tell the other ranks of it: those that capture something else in its ``place`` are named.

        Place and kind are a call's name and number in its group and what it is, or those of a whole program's calls. Then no rank of the
        two makes a call any more: DifferentCallsError where it waits, or at its next one.
        """
        self._news.append((self.rank, place, kind, text, task))
        self.tell(("captured", place, kind, text), list(task.group.ranks))

    def goodbye(self) -> None:
        """Wait until all ranks are here, answering meanwhile, and stop."""
        request = self.comm.Ibarrier()
        while not request.Test():
            time.sleep(0.002)
        self._stop.set()
        self._thread.join()
        self._hear()  # what nobody has received, MPI complains of
        self._compare_orders()
        with self._lock:
            for sent in self._sent:
                sent.wait()

    # ---------------------------------------------------------------------------------------------- the thread
    def _live(self) -> None:
        looks = 0
        while not self._stop.wait(LOOK):
            self._hear()
            looks += 1
            if looks % STEP == 0:
                self._tell_orders()
            self._compare_orders()
            while self._news:
                self._compare(*self._news.popleft())
            for task in communication().waiting():
                if not task.done and task.started:
                    self._look_after(task)
            for inquiry in list(self._inquiries.values()):
                if inquiry.over():
                    self._conclude(inquiry)

    def _hear(self) -> None:
        status = self.MPI.Status()
        while self.comm.iprobe(source=self.MPI.ANY_SOURCE, tag=TAG, status=status):
            who = status.Get_source()
            kind, *rest = self.comm.recv(source=who, tag=TAG)
            if kind == "?":
                self.tell(("!", rest[0], self._state()), [who])
            elif kind == "!" and rest[0] in self._inquiries:
                self._inquiries[rest[0]].answers[who] = rest[1]
            elif kind == "captured":
                self._news.append((who, *rest, None))
            elif kind == "order":
                self._orders.setdefault((rest[0], who), (rest[1], rest[2]))  # the first until it is compared, as this rank may be behind
            elif kind == "inside":
                self._inside[rest[0], who] = rest[1], rest[2], rest[3]
            elif kind == "left":
                group, numbers = rest
                for name in [group] if group is not None else [None, *numbers]:
                    self.left.setdefault(who, {})[name] = (time.monotonic(), numbers.get(name, 0))

    def _tell_order(self, name: str, trail: Trail) -> None:
        """Tell the next rank of a group which calls were made, where there were more since it was told."""
        if trail.told != trail.last and not trail.closed:
            trail.told, calls = trail.said()
            self.tell(("order", name, trail.told, calls), [trail.next])

    def _tell_orders(self) -> None:
        """Tell other ranks which calls were made, and of the one that has been waited for since the look before."""
        for name, trail in list(trails.by_name.items()):
            self._tell_order(name, trail)
        task = communication().current
        if task is None or task is self._waited or task.group is None or task.kind is None or task.waited() < STEP * LOOK:
            return
        self._waited, ranks = task, task.group.ranks
        own = ranks.index(self.rank)
        beside = {ranks[own - 1], ranks[(own + 1) % len(ranks)]}
        self.tell(("inside", task.group.name, task.seq, repr(task.kind), str(task)), list(beside))

    def _compare_orders(self) -> None:
        """Compare this rank's calls with what others have told of theirs. Where they differ, no call is made any more."""
        self._compare_waiting()
        for (name, who), (last, calls) in list(self._orders.items()):
            trail = trails.by_name.get(name)
            if trail is not None and trail.last < last and not trail.closed:  # this rank is behind
                task = communication().current
                waits = task is not None and task.group is not None and task.group.name == name and task.waited() > GRACE
                if waits and (met := trail.other_than(task.seq, task.kind or (task.name, task.text), last, calls)):  # type: ignore[union-attr]
                    self._differ(f"rank {who}: {met}; rank {self.rank}: {task}")
                continue
            del self._orders[name, who]
            found = trail.difference(self.rank, who, last, calls) if trail is not None and trail.number(last) is not None else ""
            if found:
                self._differ(f"{found}. Both were sent, so that results since then are not to be trusted")

    def _compare_waiting(self) -> None:
        """Compare the call that this rank waits for with those that others wait for in the same place."""
        task = communication().current
        if task is None or task.group is None or task.kind is None or not self._inside:
            return
        for who in task.group.ranks:
            told = self._inside.get((task.group.name, who))
            if told is not None and told[0] == task.seq and told[1] != repr(task.kind) and task.waited() > GRACE:
                self._differ(f"rank {who}: {told[2]}; rank {self.rank}: {task}. Both wait for each other")
                return

    def _differ(self, found: str) -> None:
        """Let no call be made any more."""
        thread = communication()
        for trail in trails.by_name.values():
            trail.closed = True  # what fails from here on is no call of the others
        error = DifferentCallsError(f"Detected mismatch between collectives on ranks. {found}: all ranks of a group make the same calls in the same order")
        for each in thread.waiting():
            thread.give_up(each, error)
        thread.broken = thread.broken or error

    def _compare(self, rank: int, place: tuple[Any, ...], kind: Any, text: str, task: Task | None) -> None:
        """Compare what ranks have captured in one place; some may run it eagerly."""
        known = self._captured.setdefault(place, {})
        known[rank] = (kind, text)
        if task is not None:
            self._own[place] = task
        if self.rank in known and any(k != kind for k, _ in known.values()):
            found = "; ".join(f"rank {r}: {said}" for r, (_, said) in sorted(known.items()))
            error = DifferentCallsError(f"Ranks captured different {place[0]}. {found}. All ranks of a group make the same calls in the same order")
            for each in [*communication().waiting(), self._own[place]]:
                communication().give_up(each, error)
        while len(self._captured) > MOST:
            oldest = next(iter(self._captured))
            del self._captured[oldest]
            self._own.pop(oldest, None)

    def _state(self) -> str:
        """Return what this rank is doing, as an answer to the others."""
        thread = communication()
        if thread.broken is not None:
            return "has failed in an earlier call"
        for task in thread.waiting():
            return f"is in {task}"
        return f"is in no collective (its last was {thread.last})" if thread.last is not None else "has made no call yet"

    def _look_after(self, task: Task) -> None:
        gone = self._gone(task)
        if gone:
            communication().give_up(task, DistBackendError(f"rank {self.rank}: {task} cannot end: {gone}"))
        elif task.waited() > task.timeout and not any(i.task is task for i in self._inquiries.values()):
            self._numbers += 1
            asked = [r for r in (task.group.ranks if task.peers is None else task.peers) if r != self.rank]
            self._inquiries[self._numbers] = _Inquiry(self._numbers, task, asked)
            self.tell(("?", self._numbers), asked)

    def _gone(self, task: Task) -> str:
        """Return which ranks have left that have a part in a task and did not do it, as a text."""
        found = []
        for r in task.group.ranks if task.peers is None else task.peers:
            known = self.left.get(r, {})
            when, number = known.get(task.group.name) or known.get(None) or (0.0, 0)
            late = when and min(task.waited(), time.monotonic() - when) > GRACE
            if late and (task.peers is not None or number < task.seq):
                found.append(f"rank {r} has ended its part" + (f" after #{number}" if task.peers is None else ""))
        return "; ".join(found)

    def _conclude(self, inquiry: _Inquiry) -> None:
        del self._inquiries[inquiry.number]
        task = inquiry.task
        if task.done:
            return
        states = "".join(f"; rank {r} {inquiry.answers.get(r, 'does not answer')}" for r in inquiry.asked)
        text = f"Timed out after {seconds(task.timeout)}: rank {self.rank}: {task} waited {seconds(task.waited())}{states}"
        communication().give_up(task, DistBackendError(text))


class Holder:
    """The one watch of the process, when there is one."""

    watch: Watch | None = None
    ending: Callable[[], None] | None = None


holder: Holder = Holder()
