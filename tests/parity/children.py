"""Calls in a child with limits on memory and time, which may end there: PyTorch itself crashes on some bad arguments.

A group is an op or a module, its cases are ``(what, difference)`` with ``difference()`` the text of how the libraries differ, "" where they
agree. One child runs all groups; where it dies another goes on behind the case it died in.
"""

from __future__ import annotations

import contextlib
import json
import os
import resource
import select
import signal
import sys
from collections.abc import Callable, Iterator
from typing import Any

from .opdb import Unsupported

Case = tuple[str, Callable[[], str]]
Group = tuple[str, Callable[[], Iterator[Case]]]

MEMORY = 2 << 30  #: bytes that a child may map beyond what it begins with
PATIENCE = 8  #: seconds of computing without a word from a child: a call may take `verdicts.SECONDS`, where a signal can end it
SILENCE = 120  #: seconds without a word from a child that computes nothing
_pipe = -1  #: where a child tells what it does


def say(*words: Any) -> None:
    """Tell the parent, from a child: a group, a case, who computes it, its outcome."""
    if _pipe >= 0:
        os.write(_pipe, (json.dumps(words) + "\n").encode())


def _work(groups: list[Group], at: tuple[int, int], every: int) -> None:
    with open("/proc/self/statm") as f:
        mapped = int(f.read().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (mapped + MEMORY, resource.getrlimit(resource.RLIMIT_AS)[1]))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    for g in range(at[0], len(groups)):
        say("group", g)
        for i, (what, difference) in enumerate(groups[g][1]()):
            if (g, i) <= at or (g + i) % every:
                continue
            say("case", i, what)
            with contextlib.suppress(Unsupported):
                say("text", difference())
    say("done")


def _child(groups: list[Group], at: tuple[int, int], every: int) -> tuple[int, int]:
    """(process, the reading end of its pipe)"""
    global _pipe
    read, write = os.pipe()
    sys.stdout.flush()
    child = os.fork()
    if child:
        os.close(write)
        return child, read
    try:
        os.close(read)
        _pipe = write
        devnull = os.open(os.devnull, os.O_WRONLY)
        os.dup2(devnull, 2)
        _work(groups, at, every)
    except BaseException as error:
        say("text", f"raw: the walk itself: {error!r:.300}")
    finally:
        os._exit(0)


def _computed(child: int) -> float:
    """Seconds that a child has computed: a busy machine is no reason to end it."""
    with open(f"/proc/{child}/stat") as f:
        user, system = f.read().rsplit(")", 1)[1].split()[11:13]
    return (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")


def _words(child: int, read: int) -> Iterator[list]:
    """What a child says, until it ends or is silent for too long."""
    rest = b""
    while True:
        begun, waited = _computed(child), 0
        while not select.select([read], [], [], 1)[0]:
            waited += 1
            if _computed(child) - begun > PATIENCE or waited > SILENCE:
                os.kill(child, signal.SIGKILL)
                break
        part = os.read(read, 1 << 16)
        if not part:
            break
        *lines, rest = (rest + part).split(b"\n")
        yield from map(json.loads, lines)
    os.close(read)
    os.waitpid(child, 0)


def outcomes(groups: list[Group], every: int = 1) -> Iterator[tuple[str, str, str]]:
    """(group, case, how the libraries differ) of every ``every``-th case."""
    at, done = (0, -1), False
    while not done and at[0] < len(groups):
        what: str | None = None
        who = ""
        for word, *rest in _words(*_child(groups, at, every)):
            if word == "group":
                at, what = (rest[0], -1), None
            elif word == "case":
                at, what, who = (at[0], rest[0]), rest[1], ""
            elif word == "who":
                who = rest[0]
            elif word == "text":
                yield groups[at[0]][0], what or "", rest[0]
            done = word == "done"
        if not done:
            if who != "PyTorch":
                yield groups[at[0]][0], what or "", "crash: the process ended or hung" + " in the making of the case" * (not who)
            if what is None:
                at = (at[0] + 1, -1)
