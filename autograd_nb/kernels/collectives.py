"""Collectives of MPI inside of compiled programs: calls by address, with the waiting that lets a call be given up.

Every kernel writes ``order``, the one array of its group: so no two of them change places, and none is dropped or joined with another.
Its words say how far the group is, for the watching thread to read: see `order`.
"""

from __future__ import annotations

from ..codegen.calling import address, called
from ..codegen.jit import helper
from .order import BEGUN, DONE, ENDED, FLAG, GIVEN_UP, INSIDE, KIND, REQUEST, STATUS, WANTED

#: looks at a call that follow at once, and those after which it rests between two
SPIN, PATIENT, REST = 500, 20000, 50
#: looks that follow at once while the program computes, and the microseconds between those after them
EAGER, NAP = 200, 20


@helper
def _enter(kind, give_way, rest, order):
    """Wait until Python's own calls are through; whether the call may begin."""
    looks = 0
    while order[BEGUN] != order[ENDED] and order[GIVEN_UP] == 0:
        looks += 1
        if looks > PATIENT:
            called(rest, REST)
        else:
            called(give_way)
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
        if looks > PATIENT:
            called(rest, REST)
        elif looks > SPIN:
            called(give_way)
        called(test, address(order, REQUEST), address(order, FLAG), address(order, STATUS))
    order[DONE] += 1
    order[INSIDE] = 0
    return True


def all_reduce(kind, begin, test, give_way, rest, dtype, op, comm, divisor, x, order, out):
    """out = the ranks' x, reduced by MPI's ``op``, over ``divisor``; ``kind`` names the call for whoever asks what a rank does."""
    if _enter(kind, give_way, rest, order):
        called(begin, address(x, 0), address(out, 0), x.size, dtype, op, comm, address(order, REQUEST))
        if _leave(test, give_way, rest, order) and divisor != 1:
            for i in range(out.size):
                out[i] = out[i] / divisor


def broadcast(kind, begin, test, give_way, rest, dtype, root, comm, x, order, out):
    """out = the x of rank ``root``."""
    if _enter(kind, give_way, rest, order):
        for i in range(x.size):
            out[i] = x[i]
        called(begin, address(out, 0), x.size, dtype, root, comm, address(order, REQUEST))
        _leave(test, give_way, rest, order)


def all_gather(kind, begin, test, give_way, rest, dtype, comm, x, order, out):
    """out = the x of all ranks, one behind another."""
    if _enter(kind, give_way, rest, order):
        called(begin, address(x, 0), x.size, dtype, address(out, 0), x.size, dtype, comm, address(order, REQUEST))
        _leave(test, give_way, rest, order)


def reduce_scatter(kind, begin, test, give_way, rest, dtype, op, comm, divisor, x, order, out):
    """out = this rank's part of the ranks' x, reduced by MPI's ``op``, over ``divisor``."""
    if _enter(kind, give_way, rest, order):
        called(begin, address(x, 0), address(out, 0), out.size, dtype, op, comm, address(order, REQUEST))
        if _leave(test, give_way, rest, order) and divisor != 1:
            for i in range(out.size):
                out[i] = out[i] / divisor


def wait(test, give_way, rest, request, words, order):
    """Wait until the call that has been posted at the address ``request`` is through, or given up; rest where nobody waits for it."""
    looks = 0
    words[FLAG] = 0
    called(test, request, address(words, FLAG), address(words, STATUS))
    while words[FLAG] == 0 and order[GIVEN_UP] == 0:
        looks += 1
        if words[WANTED] == 0 and looks > EAGER:
            called(rest, NAP)
        elif looks > PATIENT:
            called(rest, REST)
        elif looks > SPIN:
            called(give_way)
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
