"""The words of an ``order``, the array that every collective of a group writes (see `kernels.collectives`).

`DONE` calls are through; `INSIDE`: whether one is under way, of which `KIND`; `GIVEN_UP`: whether none is to be waited for any more; `BEGUN` and
`ENDED`: the calls that Python has made; `REQUEST`, `FLAG` and `STATUS` are MPI's; `WANTED`: whether the program waits, and `SPIN`, `PATIENT` and
`REST`: how (see `distributed.waiting`).
What programs hand to the group's courier (see `distributed.courier`): `HANDED` calls so far, of which `LANDED` are through, or given up; the
semaphores `CALL`, on which the courier waits, and `LANDING`, on which a program does; `CLOSED`: whether the courier is to end. The calls lie from
`SLOTS` on, `MOST` of `WIDTH` words each, which are taken in turn: kind, MPI's function, and its arguments but the request.
`LOCK`: 1 while a program makes a call or hands one over, as several threads may run programs of one group.
There are `WORDS`, so many that an entry point lets other threads run meanwhile.
"""

from __future__ import annotations

DONE, INSIDE, KIND, GIVEN_UP, BEGUN, ENDED, WANTED, REQUEST, FLAG, STATUS, WORDS = 0, 1, 2, 3, 4, 5, 6, 8, 10, 16, 2048
SPIN, PATIENT, REST = 24, 25, 26
#: a rest grows by a microsecond with so many looks, up to so many microseconds: little beside how long the wait has been
SLOWLY, LONGEST = 16, 500
LOCK = 27
HANDED, LANDED, CLOSED, CALL, LANDING, SLOTS, WIDTH, MOST = 32, 33, 34, 40, 56, 128, 8, 64
