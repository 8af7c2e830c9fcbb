"""What a program says while it compiles: a line on a terminal that goes away, and else nothing."""

from __future__ import annotations

import os
import subprocess
import sys
import time

import pytest

from autograd_nb.codegen.build import notice

pytestmark = pytest.mark.skipif(os.name != "posix", reason="terminals are POSIX's")

PROGRAM = """
import time
from autograd_nb.codegen.build import notice
notice.PATIENCE = 0.1
for k, took in enumerate((0.05, 0.4, 0.05)):
    with notice.of(f"op{k}"), notice.compiling("kernel", str(k)):
        time.sleep(took)
    print("done", k, flush=True)
"""


def on_terminal(program: str, **environment: str) -> str:
    """What a program writes to a terminal, its standard error."""
    import pty

    ours, theirs = pty.openpty()
    child = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, stderr=theirs, env={**os.environ, **environment})
    os.close(theirs)
    written = b""
    try:
        while part := os.read(ours, 1000):
            written += part
    except OSError:  # the end of a terminal
        pass
    os.close(ours)
    assert child.communicate()[0] == b"done 0\ndone 1\ndone 2\n" and child.returncode == 0
    return written.decode()


def test_a_line_that_goes_away():
    written = on_terminal(PROGRAM)
    assert "compiling op0" not in written  # quick, and the first
    assert written.count("compiling op1") == 1  # in its midst
    assert written.count("compiling op2") == 1  # at once
    assert "\n" not in written
    lines = [line for line in written.split("\r") if line]
    assert [bool(line.strip()) for line in lines] == [True, False, True, False]
    assert len(lines[0]) == len(lines[1]) < 80 and "cache warm" in notice.TEXT and "pack" in notice.TEXT


def test_nothing_where_nobody_reads_it():
    assert on_terminal(PROGRAM, AUTOGRAD_NB_QUIET="1") == ""
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True)
    assert done.stderr == ""


@pytest.mark.parametrize("stream", [None, object()])
def test_programs_without_a_standard_error(monkeypatch, stream):
    monkeypatch.setattr(sys, "stderr", stream)
    monkeypatch.setattr(notice, "PATIENCE", 0.0)
    before = notice.count()
    with notice.compiling("kernel", "none"):
        time.sleep(0.001)
    assert notice.count() == before + 1 and notice.last() == "kernel" and notice.compiled["none"].seconds > 0
    del notice.compiled["none"]
