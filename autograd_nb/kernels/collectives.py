"""Collectives of MPI inside of compiled programs: calls by address, with the waiting that lets a call be given up.

Every kernel writes ``order``, the one array of its group: so no two of them change places, and none is dropped or joined with another.
Its words say how far the group is, for the watching thread to read: see `order`.
"""

from __future__ import annotations

from ..codegen.calling import address, called, exchange
from ..codegen.jit import helper
from .order import (
    BEGUN,
    CALL,
    CLOSED,
    DONE,
    ENDED,
    FLAG,
    GIVEN_UP,
    HANDED,
    INSIDE,
    KIND,
    LANDED,
    LANDING,
    LOCK,
    LONGEST,
    MOST,
    PATIENT,
    REQUEST,
    REST,
    SLOTS,
    SLOWLY,
    SPIN,
    STATUS,
    WANTED,
    WIDTH,
)  # fmt: skip

#: looks that follow at once while the program computes, and the microseconds between those after them
EAGER, NAP = 200, 20


@helper
def _pause(looks, give_way, rest, order):
    """Let others run before the next look at what has not happened yet, for longer the more looks there were."""
    if looks > order[PATIENT]:
        called(rest, min(order[REST] + (looks - order[PATIENT]) // SLOWLY, LONGEST))
    elif looks > order[SPIN]:
        called(give_way)


@helper
def _lock(give_way, rest, order):
    """Wait until no other thread's program is in a call of this group; whether it is so, and nothing was given up."""
    looks = 0
    while exchange(order, LOCK, 1) != 0:
        if order[GIVEN_UP] != 0:
            return False
        looks += 1
        _pause(looks + order[SPIN], give_way, rest, order)
    return True


@helper
def _enter(kind, landed, give_way, rest, order):
    """Wait until Python's own calls are through, and ``landed`` of those that were handed over; whether the call may begin."""
    looks = 0
    while (order[BEGUN] != order[ENDED] or order[LANDED] < landed) and order[GIVEN_UP] == 0:
        looks += 1
        _pause(looks + order[SPIN], give_way, rest, order)
    if order[GIVEN_UP] != 0:
        return False
    order[KIND] = kind
    order[REQUEST] = 0
    order[INSIDE] = 1
    return True


@helper
def _leave(test, give_way, rest, order):
    """Wait until the call that has been posted is through; whether it is, and was not given up."""
    looks = 0
    order[FLAG] = 0
    called(test, address(order, REQUEST), address(order, FLAG), address(order, STATUS))
    while order[FLAG] == 0:
        if order[GIVEN_UP] != 0:
            return False
        looks += 1
        _pause(looks, give_way, rest, order)
        called(test, address(order, REQUEST), address(order, FLAG), address(order, STATUS))
    order[DONE] += 1
    order[INSIDE] = 0
    return True


@helper
def _alone(kind, give_way, rest, order):
    """Begin a call that no other thread's program is in, behind all that were handed over; whether it may begin."""
    if not _lock(give_way, rest, order):
        return False
    if _enter(kind, order[HANDED], give_way, rest, order):
        return True
    exchange(order, LOCK, 0)
    return False


@helper
def _through(test, give_way, rest, order):
    """End a call that has been posted, and let other threads' programs make theirs; whether it is through, and was not given up."""
    through = _leave(test, give_way, rest, order)
    exchange(order, LOCK, 0)
    return through


def all_reduce(kind, begin, test, give_way, rest, dtype, op, comm, divisor, x, order, out):
    """out = the ranks' x, reduced by MPI's ``op``, over ``divisor``; ``kind`` names the call for whoever asks what a rank does."""
    if _alone(kind, give_way, rest, order):
        called(begin, address(x, 0), address(out, 0), x.size, dtype, op, comm, address(order, REQUEST))
        if _through(test, give_way, rest, order) and divisor != 1:
            for i in range(out.size):
                out[i] = out[i] / divisor


def broadcast(kind, begin, test, give_way, rest, dtype, root, comm, x, order, out):
    """out = the x of rank ``root``."""
    if _alone(kind, give_way, rest, order):
        for i in range(x.size):
            out[i] = x[i]
        called(begin, address(out, 0), x.size, dtype, root, comm, address(order, REQUEST))
        _through(test, give_way, rest, order)


def all_gather(kind, begin, test, give_way, rest, dtype, comm, x, order, out):
    """out = the x of all ranks, one behind another."""
    if _alone(kind, give_way, rest, order):
        called(begin, address(x, 0), x.size, dtype, address(out, 0), x.size, dtype, comm, address(order, REQUEST))
        _through(test, give_way, rest, order)


def reduce_scatter(kind, begin, test, give_way, rest, dtype, op, comm, divisor, x, order, out):
    """out = this rank's part of the ranks' x, reduced by MPI's ``op``, over ``divisor``."""
    if _alone(kind, give_way, rest, order):
        called(begin, address(x, 0), address(out, 0), out.size, dtype, op, comm, address(order, REQUEST))
        if _through(test, give_way, rest, order) and divisor != 1:
            for i in range(out.size):
                out[i] = out[i] / divisor


def hand_over(kind, begin, post, give_way, rest, dtype, op, comm, x, ticket, order, out):
    """Begin ``out`` = the ranks' x, or this rank's part of it, reduced by MPI's ``op``, behind the calls before: the courier makes it meanwhile.

    ``ticket`` is for `take`. Who calls this says that it writes x too: then no pass lets anything else have its memory before `take`.
    """
    looks = 0
    locked = _lock(give_way, rest, order)
    while order[HANDED] - order[LANDED] >= MOST and order[GIVEN_UP] == 0:
        looks += 1
        _pause(looks + order[SPIN], give_way, rest, order)
    if order[GIVEN_UP] == 0:
        at = SLOTS + order[HANDED] % MOST * WIDTH
        order[at], order[at + 1], order[at + 2], order[at + 3] = kind, begin, address(x, 0), address(out, 0)
        order[at + 4], order[at + 5], order[at + 6], order[at + 7] = out.size, dtype, op, comm
        order[HANDED] += 1
        called(post, address(order, CALL))
    ticket[0] = order[HANDED]
    if locked:
        exchange(order, LOCK, 0)


def take(sleep, post, rest, divisor, ticket, x, order, out):
    """Wait until the call of this ticket has landed; its result, over ``divisor``, is in ``out``. Calls may be taken in any order, by several threads.

    There is one sign for each landing, and each take uses one: so whose call has landed finds one. Who waits for a later call gives back what it has woken by.
    """
    if order[LANDED] < ticket[0]:
        order[WANTED] = 1
    taken = False
    while not taken and order[GIVEN_UP] == 0:
        if called(sleep, address(order, LANDING)) == 0:  # (a signal may end it early)
            taken = order[LANDED] >= ticket[0]
            if not taken:
                called(post, address(order, LANDING))
                called(rest, NAP)
                order[WANTED] = 1
    order[WANTED] = 0
    if divisor != 1 and order[GIVEN_UP] == 0:
        for i in range(out.size):
            out[i] = out[i] / divisor


@helper
def _land(test, give_way, rest, order):
    """Wait until the call that has been posted is through, or given up; rest between looks while the program computes."""
    looks = 0
    order[FLAG] = 0
    called(test, address(order, REQUEST), address(order, FLAG), address(order, STATUS))
    while order[FLAG] == 0:
        if order[GIVEN_UP] != 0:
            return
        looks += 1
        if order[WANTED] == 0 and looks > EAGER:
            called(rest, NAP)
        else:
            _pause(looks, give_way, rest, order)
        called(test, address(order, REQUEST), address(order, FLAG), address(order, STATUS))
    order[DONE] += 1
    order[INSIDE] = 0


def serve(sleep, post, test, give_way, rest, order):
    """Make the calls that programs hand over, one after another, until the group ends."""
    while order[CLOSED] == 0:
        called(sleep, address(order, CALL))  # (a signal may end it early)
        while order[LANDED] < order[HANDED] and order[CLOSED] == 0:
            at = SLOTS + order[LANDED] % MOST * WIDTH
            if _enter(order[at], 0, give_way, rest, order):
                called(
                    order[at + 1], order[at + 2], order[at + 3], order[at + 4], order[at + 5], order[at + 6], order[at + 7], address(order, REQUEST)
                )
                _land(test, give_way, rest, order)
            order[LANDED] += 1
            called(post, address(order, LANDING))


def wait(test, give_way, rest, request, words, order):
    """Wait until the call that has been posted at the address ``request`` is through, or given up; rest where nobody waits for it."""
    looks = 0
    words[FLAG] = 0
    called(test, request, address(words, FLAG), address(words, STATUS))
    while words[FLAG] == 0 and order[GIVEN_UP] == 0:
        looks += 1
        if words[WANTED] == 0 and looks > EAGER:
            called(rest, NAP)
        else:
            _pause(looks, give_way, rest, order)
        called(test, request, address(words, FLAG), address(words, STATUS))


def divide(divisor, x):
    """Divide numbers by a whole one, in place."""
    for i in range(x.size):
        x[i] = x[i] / divisor


def divide_towards_zero(divisor, x):
    """Divide integers by a whole number, in place, and drop what is left."""
    for i in range(x.size):
        quotient = x[i] // divisor
        x[i] = quotient + 1 if quotient < 0 and quotient * divisor != x[i] else quotient
