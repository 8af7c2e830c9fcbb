"""Threads that share the work of one launch: native code hands it over, so that a piece of some microseconds pays.

A launch is cut in parts, each a list of arguments for the same kernel. While the caller holds the interpreter's lock, the arguments of all parts
are read into blocks (`entry_point`); then it lets go of the lock, and the threads take parts, the caller among them. None of it runs
Python. Each thread has parts of its own, the same ones of every job that is cut alike: what the last kernel has left in its core's cache is
what it works on next. Having done them it takes over what others have not begun. A thread that finds nothing more to do looks out for
the next job for a while (`SPINS`) before it sleeps: between the launches of one training step it need not be woken, which takes the
system tens of microseconds.

All that threads share are words of 64 bits in one array, by lines of the cache: the number of the job, and in each thread's line a *ticket* (the
job's number, the end of its parts, and the next one), of which a part is taken by raising it, if it is still what was read; so nobody takes a
part of a job that is over. What a job is, is written before its tickets, these before its number, and it stays until all its parts are
done. An array serves one caller at a time; another one does its parts by itself.
"""

from __future__ import annotations

import ctypes
import platform
from collections.abc import Callable
from typing import Any

import numpy as np

from ...locks import lock
from . import linking, llvm_text

SPINS = 1 << 13  #: pauses, of 10 to 50 ns each, for which a thread looks out for work before it sleeps
PARTS = 256  #: of a job at most: their arguments stand on the caller's stack
MOST = 256  #: threads

_LINE = 8  #: words
_WOKEN, _TICKET = 4, 5  # of a thread's own line: how often it was woken; the ticket
_JOB, _DONE, _BUSY, _FAILED, _WORKERS = _LINE, 2 * _LINE, 3 * _LINE, 4 * _LINE, 5 * _LINE
_CALLER = _WORKERS - _LINE  # the caller's ticket stands beside why a job failed

# where CPython keeps, in bytes from the start of an object, what its public structs declare
_SIZE, _ITEMS = object.__basicsize__, tuple.__basicsize__
_BYTES = bytes.__basicsize__ - 1

_X86, _ARM = ("llvm.x86.sse2.pause", "", ""), ("llvm.aarch64.hint", "i32", "i32 1")
#: LLVM's name for the instruction that says to the processor that a thread only waits, the type of its argument, and it
_PAUSE = {"x86_64": _X86, "amd64": _X86, "aarch64": _ARM, "arm64": _ARM}.get(platform.machine().lower())

_POOL = f"""
declare i32 @PyThread_acquire_lock(ptr, i32)
declare void @PyThread_release_lock(ptr)

{f"declare void @{_PAUSE[0]}({_PAUSE[1]})" if _PAUSE else ""}
define internal void @pause() {{
  {f"call void @{_PAUSE[0]}({_PAUSE[2]})" if _PAUSE else ""}
  ret void
}}

; take parts of the present job until none is left, first its own, as thread %me of those that work; return how many
define internal i64 @work(ptr %words, i64 %me) {{
entry:
  %excinfo = alloca ptr
  %allowed.at = getelementptr i64, ptr %words, i64 1
  %done.at = getelementptr i64, ptr %words, i64 {_DONE}
  %failed.at = getelementptr i64, ptr %words, i64 {_FAILED}
  %why.at = getelementptr i64, ptr %words, i64 {_FAILED + 1}
  %call.at = getelementptr i64, ptr %words, i64 {_JOB}
  %self.at = getelementptr i64, ptr %words, i64 {_JOB + 1}
  %blocks.at = getelementptr i64, ptr %words, i64 {_JOB + 2}
  %allowed = load atomic i64, ptr %allowed.at monotonic, align 8
  %may = icmp ult i64 %me, %allowed
  br i1 %may, label %whose, label %out
whose:
  %passed = phi i64 [ 0, %entry ], [ %passed1, %following ]
  %before = phi i64 [ 0, %entry ], [ %taken, %following ]
  %from_me = add i64 %me, %passed
  %back = sub i64 %from_me, %allowed
  %round = icmp uge i64 %from_me, %allowed
  %one = select i1 %round, i64 %back, i64 %from_me
  %one8 = mul i64 %one, {_LINE}
  %ticket.no = add i64 %one8, {_CALLER + _TICKET}
  %ticket.at = getelementptr i64, ptr %words, i64 %ticket.no
  br label %look
look:
  %taken = phi i64 [ %before, %whose ], [ %taken, %try ], [ %more, %finished ]
  %ticket = load atomic i64, ptr %ticket.at seq_cst, align 8
  %next = and i64 %ticket, 65535
  %shifted = lshr i64 %ticket, 16
  %end = and i64 %shifted, 65535
  %left = icmp ult i64 %next, %end
  br i1 %left, label %try, label %following
following:
  %passed1 = add i64 %passed, 1
  %others = icmp ult i64 %passed1, %allowed
  br i1 %others, label %whose, label %out
try:
  %raised = add i64 %ticket, 1
  %pair = cmpxchg ptr %ticket.at, i64 %ticket, i64 %raised seq_cst seq_cst
  %won = extractvalue {{ i64, i1 }} %pair, 1
  br i1 %won, label %run, label %look
run:
  %call = load ptr, ptr %call.at
  %self = load ptr, ptr %self.at
  %blocks = load ptr, ptr %blocks.at
  %block.at = getelementptr ptr, ptr %blocks, i64 %next
  %block = load ptr, ptr %block.at
  store ptr null, ptr %excinfo
  %status = call i32 %call(ptr %self, ptr %block, ptr %excinfo)
  switch i32 %status, label %failed [ i32 0, label %finished i32 -2, label %finished ]
failed:
  %wide = sext i32 %status to i64
  %first = cmpxchg ptr %failed.at, i64 0, i64 %wide seq_cst seq_cst
  %mine = extractvalue {{ i64, i1 }} %first, 1
  br i1 %mine, label %tell, label %finished
tell:
  %why = load ptr, ptr %excinfo
  store ptr %why, ptr %why.at
  br label %finished
finished:
  %more = add i64 %taken, 1
  %was = atomicrmw add ptr %done.at, i64 1 seq_cst
  br label %look
out:
  %all = phi i64 [ 0, %entry ], [ %taken, %following ]
  ret i64 %all
}}

; the life of a thread; %line: its own: whether it sleeps, the lock it sleeps at, all words, its number
define void @pool_serve(ptr %line) {{
entry:
  %lock.at = getelementptr i64, ptr %line, i64 1
  %lock = load ptr, ptr %lock.at
  %words.at = getelementptr i64, ptr %line, i64 2
  %words = load ptr, ptr %words.at
  %me.at = getelementptr i64, ptr %line, i64 3
  %me = load i64, ptr %me.at
  br label %fresh
fresh:
  %known = phi i64 [ 0, %entry ], [ %job, %go ], [ %known2, %sleep ], [ %job2, %up ]
  br label %look
look:
  %spun = phi i64 [ 0, %fresh ], [ %spun1, %spin ], [ %spun, %go ]
  %seen = phi i64 [ %known, %fresh ], [ %seen, %spin ], [ %job, %go ]
  %job = load atomic i64, ptr %words seq_cst, align 8
  %new = icmp ne i64 %job, %seen
  br i1 %new, label %go, label %spin
go:
  %taken = call i64 @work(ptr %words, i64 %me)
  %some = icmp ne i64 %taken, 0
  br i1 %some, label %fresh, label %look
spin:
  call void @pause()
  %spun1 = add i64 %spun, 1
  %patient = icmp ult i64 %spun1, {SPINS}
  br i1 %patient, label %look, label %tired
tired:
  %w1 = atomicrmw xchg ptr %line, i64 1 seq_cst
  %job2 = load atomic i64, ptr %words seq_cst, align 8
  %late = icmp ne i64 %job2, %seen
  br i1 %late, label %last, label %sleep
last:
  %found = call i64 @work(ptr %words, i64 %me)
  %before = atomicrmw xchg ptr %line, i64 0 seq_cst
  %unseen = icmp ne i64 %before, 0
  br i1 %unseen, label %up, label %sleep
up:
  br label %fresh
sleep:
  %known2 = phi i64 [ %seen, %tired ], [ %job2, %last ]
  %got = call i32 @PyThread_acquire_lock(ptr %lock, i32 1)
  br label %fresh
}}

; do the parts of a job; %call: of (self, block, where it leaves why it failed); return its status, and let %why say more
define i32 @pool_share(ptr %words, ptr %call, ptr %self, ptr %blocks, i64 %count, i64 %wanted, ptr %why) {{
entry:
  %too_many = icmp ugt i64 %wanted, {MOST}
  %at_most = select i1 %too_many, i64 {MOST}, i64 %wanted
  %fewer = icmp ult i64 %count, %at_most
  %each = select i1 %fewer, i64 %count, i64 %at_most
  %none = icmp eq i64 %each, 0
  %threads = select i1 %none, i64 1, i64 %each
  %busy.at = getelementptr i64, ptr %words, i64 {_BUSY}
  %busy = atomicrmw xchg ptr %busy.at, i64 1 seq_cst
  %other = icmp ne i64 %busy, 0
  br i1 %other, label %alone, label %publish
alone:
  %i = phi i64 [ 0, %entry ], [ %i1, %went ]
  %over = icmp eq i64 %i, %count
  br i1 %over, label %good, label %one
one:
  %b.at = getelementptr ptr, ptr %blocks, i64 %i
  %b = load ptr, ptr %b.at
  %s = call i32 %call(ptr %self, ptr %b, ptr %why)
  %i1 = add i64 %i, 1
  switch i32 %s, label %bad [ i32 0, label %went i32 -2, label %went ]
went:
  br label %alone
bad:
  ret i32 %s
good:
  ret i32 0
publish:
  %call.at = getelementptr i64, ptr %words, i64 {_JOB}
  %self.at = getelementptr i64, ptr %words, i64 {_JOB + 1}
  %blocks.at = getelementptr i64, ptr %words, i64 {_JOB + 2}
  %yield.at = getelementptr i64, ptr %words, i64 {_JOB + 3}
  %done.at = getelementptr i64, ptr %words, i64 {_DONE}
  %failed.at = getelementptr i64, ptr %words, i64 {_FAILED}
  %why.at = getelementptr i64, ptr %words, i64 {_FAILED + 1}
  %allowed.at = getelementptr i64, ptr %words, i64 1
  store ptr %call, ptr %call.at
  store ptr %self, ptr %self.at
  store ptr %blocks, ptr %blocks.at
  store i64 0, ptr %failed.at
  store ptr null, ptr %why.at
  store atomic i64 0, ptr %done.at monotonic, align 8
  store atomic i64 %threads, ptr %allowed.at monotonic, align 8
  %number = load atomic i64, ptr %words monotonic, align 8
  %number1 = add i64 %number, 1
  %high = shl i64 %number1, 32
  br label %hand_out
hand_out:
  %o = phi i64 [ 0, %publish ], [ %o1, %hand_out ]
  %first = phi i64 [ 0, %publish ], [ %last, %hand_out ]
  %o1 = add i64 %o, 1
  %parts = mul i64 %count, %o1
  %last = udiv i64 %parts, %threads
  %o8 = mul i64 %o, {_LINE}
  %ticket.no = add i64 %o8, {_CALLER + _TICKET}
  %ticket.at = getelementptr i64, ptr %words, i64 %ticket.no
  %middle = shl i64 %last, 16
  %upper = or i64 %high, %middle
  %ticket = or i64 %upper, %first
  store atomic i64 %ticket, ptr %ticket.at release, align 8
  %handed = icmp eq i64 %o1, %threads
  br i1 %handed, label %announce, label %hand_out
announce:
  %t = atomicrmw xchg ptr %words, i64 %number1 seq_cst
  br label %wake
wake:
  %k = phi i64 [ 1, %announce ], [ %k1, %awake ]
  %through = icmp uge i64 %k, %threads
  br i1 %through, label %begin, label %ask
ask:
  %k8 = mul i64 %k, {_LINE}
  %line.no = add i64 %k8, {_WORKERS - _LINE}
  %line = getelementptr i64, ptr %words, i64 %line.no
  %sleeps = load atomic i64, ptr %line seq_cst, align 8
  %asleep = icmp ne i64 %sleeps, 0
  br i1 %asleep, label %call_it, label %awake
call_it:
  %slept = atomicrmw xchg ptr %line, i64 0 seq_cst
  %really = icmp ne i64 %slept, 0
  br i1 %really, label %release, label %awake
release:
  %lock.at = getelementptr i64, ptr %line, i64 1
  %lock = load ptr, ptr %lock.at
  %woken.at = getelementptr i64, ptr %line, i64 {_WOKEN}
  %woken = load i64, ptr %woken.at
  %woken1 = add i64 %woken, 1
  store i64 %woken1, ptr %woken.at
  call void @PyThread_release_lock(ptr %lock)
  br label %awake
awake:
  %k1 = add i64 %k, 1
  br label %wake
begin:
  %mine = call i64 @work(ptr %words, i64 0)
  br label %wait
wait:
  %spun = phi i64 [ 0, %begin ], [ %spun1, %spin ], [ 0, %tired ], [ 0, %give ]
  %done = load atomic i64, ptr %done.at seq_cst, align 8
  %all = icmp eq i64 %done, %count
  br i1 %all, label %end, label %spin
spin:
  call void @pause()
  %spun1 = add i64 %spun, 1
  %patient = icmp ult i64 %spun1, 1024
  br i1 %patient, label %wait, label %tired
tired:
  %yield = load ptr, ptr %yield.at
  %can = icmp ne ptr %yield, null
  br i1 %can, label %give, label %wait
give:
  %given = call i32 %yield()
  br label %wait
end:
  %failed = load i64, ptr %failed.at
  %reason = load ptr, ptr %why.at
  store ptr %reason, ptr %why
  store atomic i64 0, ptr %busy.at seq_cst, align 8
  %status = trunc i64 %failed to i32
  ret i32 %status
}}
"""

_DECLARED = f"""
declare i64 @PyLong_AsLongLong(ptr)
declare i64 @PyList_Size(ptr)
declare ptr @PyList_GetItem(ptr, i64)
declare ptr @PyCFunction_GetSelf(ptr)
declare ptr @PyEval_SaveThread()
declare void @PyEval_RestoreThread(ptr)
declare void @Py_IncRef(ptr)
declare i32 @pool_share(ptr, ptr, ptr, ptr, i64, i64, ptr)
@_Py_NoneStruct = external global i8

define internal i64 @number(ptr %args, i64 %i) {{
  %at = getelementptr ptr, ptr %args, i64 %i
  %object = load ptr, ptr %at
  %found = call i64 @PyLong_AsLongLong(ptr %object)
  ret i64 %found
}}

; what parses the arguments in a tuple: into a block, or without one, how many words that takes; -1 where they are wrong
define internal i64 @parsed(ptr %kernel, ptr %tuple, ptr %block) {{
  %parse.at = getelementptr i8, ptr %kernel, i64 {_BYTES + 16}
  %parse = load ptr, ptr %parse.at
  %size.at = getelementptr i8, ptr %tuple, i64 {_SIZE}
  %size = load i64, ptr %size.at
  %items = getelementptr i8, ptr %tuple, i64 {_ITEMS}
  %found = call i64 %parse(ptr %kernel, ptr %items, i64 %size, ptr %block)
  ret i64 %found
}}

; share the work of a kernel's blocks, and return None, or raise what it raises
define internal ptr @shared(ptr %self, ptr %kernel, ptr %blocks, i64 %count, i64 %threads) {{
  %words.word = call i64 @PyLong_AsLongLong(ptr %self)
  %words = inttoptr i64 %words.word to ptr
  %call.at = getelementptr i8, ptr %kernel, i64 {_BYTES + 24}
  %call = load ptr, ptr %call.at
  %throw.at = getelementptr i8, ptr %kernel, i64 {_BYTES + 32}
  %throw = load ptr, ptr %throw.at
  %why = alloca ptr
  store ptr null, ptr %why
  %state = call ptr @PyEval_SaveThread()
  %status = call i32 @pool_share(ptr %words, ptr %call, ptr %kernel, ptr %blocks, i64 %count, i64 %threads, ptr %why)
  call void @PyEval_RestoreThread(ptr %state)
  switch i32 %status, label %raises [ i32 0, label %good i32 -2, label %good ]
raises:
  %reason = load ptr, ptr %why
  %error = call ptr %throw(i32 %status, ptr %reason)
  ret ptr %error
good:
  call void @Py_IncRef(ptr @_Py_NoneStruct)
  ret ptr @_Py_NoneStruct
}}
"""

#: from Python: (a kernel's entry point, a list of tuples of its arguments, threads)
_SPREAD = f"""{_DECLARED}
define ptr @pool_spread(ptr %self, ptr %args, i64 %none) {{
entry:
  %function = load ptr, ptr %args
  %parts.at = getelementptr ptr, ptr %args, i64 1
  %parts = load ptr, ptr %parts.at
  %threads = call i64 @number(ptr %args, i64 2)
  %kernel = call ptr @PyCFunction_GetSelf(ptr %function)
  %count = call i64 @PyList_Size(ptr %parts)
  %blocks = alloca ptr, i64 %count
  br label %next
next:
  %i = phi i64 [ 0, %entry ], [ %i1, %keep ]
  %more = icmp slt i64 %i, %count
  br i1 %more, label %ask, label %share
ask:
  %part = call ptr @PyList_GetItem(ptr %parts, i64 %i)
  %room = call i64 @parsed(ptr %kernel, ptr %part, ptr null)
  %right = icmp sge i64 %room, 0
  br i1 %right, label %read, label %failed
read:
  %block = alloca i64, i64 %room
  %total = call i64 @parsed(ptr %kernel, ptr %part, ptr %block)
  %read_all = icmp sge i64 %total, 0
  br i1 %read_all, label %keep, label %failed
keep:
  %block.at = getelementptr ptr, ptr %blocks, i64 %i
  store ptr %block, ptr %block.at
  %i1 = add i64 %i, 1
  br label %next
share:
  %done = call ptr @shared(ptr %self, ptr %kernel, ptr %blocks, i64 %count, i64 %threads)
  ret ptr %done
failed:
  ret ptr null
}}
"""

#: from Python: (a kernel's entry point, its arguments, a loop's length, multiples at which it may be cut, pieces, threads, loops, which of
#: them). Where there are loops, the first argument is their table (sizes, then the strides of each array); else all arrays are of that length
_CUT = f"""{_DECLARED}
define ptr @pool_cut(ptr %self, ptr %args, i64 %none) {{
entry:
  %function = load ptr, ptr %args
  %given.at = getelementptr ptr, ptr %args, i64 1
  %given = load ptr, ptr %given.at
  %length = call i64 @number(ptr %args, i64 2)
  %step = call i64 @number(ptr %args, i64 3)
  %wanted = call i64 @number(ptr %args, i64 4)
  %threads = call i64 @number(ptr %args, i64 5)
  %loops = call i64 @number(ptr %args, i64 6)
  %axis = call i64 @number(ptr %args, i64 7)
  %kernel = call ptr @PyCFunction_GetSelf(ptr %function)
  %room = call i64 @parsed(ptr %kernel, ptr %given, ptr null)
  %right = icmp sge i64 %room, 0
  br i1 %right, label %read, label %failed
read:
  %first = alloca i64, i64 %room
  %total = call i64 @parsed(ptr %kernel, ptr %given, ptr %first)
  %read_all = icmp sge i64 %total, 0
  br i1 %read_all, label %sizes, label %failed
sizes:
  %widths = getelementptr i8, ptr %kernel, i64 {_BYTES + 40}
  %above = add i64 %length, %step
  %above1 = sub i64 %above, 1
  %units = sdiv i64 %above1, %step
  %less = icmp slt i64 %units, %wanted
  %count = select i1 %less, i64 %units, i64 %wanted
  %blocks = alloca ptr, i64 %count
  %walks = icmp ne i64 %loops, 0
  %table.at = getelementptr i64, ptr %first, i64 1
  br label %next
next:
  %i = phi i64 [ 0, %sizes ], [ %i1, %cut ]
  %begin = phi i64 [ 0, %sizes ], [ %end, %cut ]
  %more = icmp slt i64 %i, %count
  br i1 %more, label %piece, label %share
piece:
  %i1 = add i64 %i, 1
  %many = mul i64 %units, %i1
  %unit = sdiv i64 %many, %count
  %far = mul i64 %unit, %step
  %over = icmp sgt i64 %far, %length
  %end = select i1 %over, i64 %length, i64 %far
  %extent = sub i64 %end, %begin
  %block = alloca i64, i64 %room
  %block.at = getelementptr ptr, ptr %blocks, i64 %i
  store ptr %block, ptr %block.at
  br i1 %walks, label %copy, label %words
copy:
  %numbers = load i64, ptr %first
  %own = alloca i64, i64 %numbers
  %table = load ptr, ptr %table.at
  br label %copy_test
copy_test:
  %c = phi i64 [ 0, %copy ], [ %c1, %copy_one ]
  %c_more = icmp slt i64 %c, %numbers
  br i1 %c_more, label %copy_one, label %copied
copy_one:
  %from = getelementptr i64, ptr %table, i64 %c
  %into = getelementptr i64, ptr %own, i64 %c
  %number = load i64, ptr %from
  store i64 %number, ptr %into
  %c1 = add i64 %c, 1
  br label %copy_test
copied:
  %axis.at = getelementptr i64, ptr %own, i64 %axis
  store i64 %extent, ptr %axis.at
  store i64 %numbers, ptr %block
  %own.at = getelementptr i64, ptr %block, i64 1
  store ptr %own, ptr %own.at
  %column = add i64 %loops, %axis
  br label %words
words:
  %w0 = phi i64 [ 0, %piece ], [ 2, %copied ]
  %stride.no0 = phi i64 [ 0, %piece ], [ %column, %copied ]
  br label %word
word:
  %w = phi i64 [ %w0, %words ], [ %w1, %plain ], [ %w2, %array ]
  %stride.no = phi i64 [ %stride.no0, %words ], [ %stride.no, %plain ], [ %stride.next, %array ]
  %w_more = icmp slt i64 %w, %room
  br i1 %w_more, label %look, label %cut
look:
  %width.at = getelementptr i8, ptr %widths, i64 %w
  %width.byte = load i8, ptr %width.at
  %width = zext i8 %width.byte to i64
  %source = getelementptr i64, ptr %first, i64 %w
  %target = getelementptr i64, ptr %block, i64 %w
  %value = load i64, ptr %source
  %is_array = icmp ne i64 %width, 0
  br i1 %is_array, label %strided, label %plain
plain:
  store i64 %value, ptr %target
  %w1 = add i64 %w, 1
  br label %word
strided:
  br i1 %walks, label %of_table, label %array
of_table:
  %whole = load ptr, ptr %table.at
  %stride.at = getelementptr i64, ptr %whole, i64 %stride.no
  %stride.found = load i64, ptr %stride.at
  %gone = mul i64 %begin, %stride.found
  %rest = sub i64 %value, %gone
  br label %array
array:
  %moved = phi i64 [ %begin, %strided ], [ %gone, %of_table ]
  %size = phi i64 [ %extent, %strided ], [ %rest, %of_table ]
  %stride.next = add i64 %stride.no, %loops
  store i64 %size, ptr %target
  %data.at = getelementptr i64, ptr %source, i64 1
  %data = load i64, ptr %data.at
  %bytes = mul i64 %moved, %width
  %begins = add i64 %data, %bytes
  %begins.at = getelementptr i64, ptr %target, i64 1
  store i64 %begins, ptr %begins.at
  %w2 = add i64 %w, 2
  br label %word
cut:
  br label %next
share:
  %done = call ptr @shared(ptr %self, ptr %kernel, ptr %blocks, i64 %count, i64 %threads)
  ret ptr %done
failed:
  ret ptr null
}}
"""


def _address(function: Any) -> int:
    return int(ctypes.cast(function, ctypes.c_void_p).value or 0)


_kept: list[np.ndarray] = []  # threads, and compiled programs, look at it as long as the process lives


class Pool:
    """Threads that work for one caller at a time; they begin when they are first wanted."""

    def __init__(self) -> None:
        room = np.zeros(_WORKERS + _LINE * MOST, np.int64)
        at = -room.ctypes.data % (8 * _LINE) // 8
        self.words: np.ndarray[Any, np.dtype[np.int64]] = room[at:]
        _kept.append(room)
        self.address: int = int(self.words.ctypes.data)
        self.begun: int = 0  # of the threads beside the caller
        self._beginning = lock()
        give_way = getattr(ctypes.pythonapi, "sched_yield", None)
        self.words[_JOB + 3] = 0 if give_way is None else _address(give_way)
        self._serve = llvm_text.linked(_POOL, "pool_serve")
        self.spread: Callable[..., Any] = llvm_text.bound_to(self.address, "pool_spread", _SPREAD, linking.FASTCALL)
        self._cut = llvm_text.bound_to(self.address, "pool_cut", _CUT, linking.FASTCALL)

    def run(self, entry: Callable[..., Any], parts: list[tuple[Any, ...]], threads: int) -> None:
        """Call a kernel's entry point for all argument lists, on so many threads."""
        threads = min(threads, len(parts))
        if self.begun < threads - 1:
            self.begin(threads)
        if len(parts) <= PARTS:
            self.spread(entry, parts, threads)
        else:
            for i in range(0, len(parts), PARTS):
                self.spread(entry, parts[i : i + PARTS], threads)

    def cut(self, entry: Callable[..., Any], args: tuple[Any, ...], length: int, step: int, pieces: int, threads: int, loops: int, axis: int) -> None:
        """Call a kernel's entry point for pieces of a loop, which are cut at multiples of ``step``, on so many threads.

        All arrays are of the loop's ``length``; or the loop is number ``axis`` of the ``loops`` whose sizes and strides the first argument holds.
        """
        if self.begun < threads - 1:
            self.begin(threads)
        self._cut(entry, args, length, step, min(pieces, PARTS), threads, loops, axis)

    def begin(self, threads: int) -> None:
        """Let so many threads, the caller among them, be there, or as many as the system gives. Python does not know of them."""
        with self._beginning:
            while self.begun < min(threads, MOST) - 1:
                number = self.begun + 1
                line = self.words[_WORKERS + _LINE * self.begun :]
                if not line[1]:
                    line[1], line[2], line[3] = _new_lock(), self.address, number
                if _start(self._serve, int(line.ctypes.data)) == _NONE:
                    return  # the system has no thread to give
                self.begun = number


def _new_lock() -> int:
    """Return a lock of the interpreter's, taken: threads that do not run Python may sleep at it."""
    made = int(_allocate())
    _acquire(made, 1)
    return made


_NONE = ctypes.c_ulong(-1).value
_start = ctypes.PYFUNCTYPE(ctypes.c_ulong, ctypes.c_void_p, ctypes.c_void_p)(("PyThread_start_new_thread", ctypes.pythonapi))
_allocate = ctypes.PYFUNCTYPE(ctypes.c_void_p)(("PyThread_allocate_lock", ctypes.pythonapi))
_acquire = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_int)(("PyThread_acquire_lock", ctypes.pythonapi))
