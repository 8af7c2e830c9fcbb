"""The first call of a compiled function in a process that finds its kernels on disk."""

import subprocess
import sys

STEP = """
import sys, threading, time
import autograd_nb as torch

model = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.Tanh(), torch.nn.Linear(8, 2))
optimizer, x = torch.optim.SGD(model.parameters(), lr=0.1), torch.ones(3, 4)

@torch.compile
def step(x):
    optimizer.zero_grad()
    loss = model(x).square().mean()
    loss.backward()
    optimizer.step()
    return loss.detach()

calls = 0
def count(frame, event, argument):
    global calls
    calls += event == "call" and "/autograd_nb/" in frame.f_code.co_filename

if "count" in sys.argv:
    threading.setprofile(count)
    sys.setprofile(count)
start = time.perf_counter()
step(x)
took = time.perf_counter() - start
sys.setprofile(None)
print(calls or took)
assert step.programs
"""


def first_call(*options: str) -> float:
    return float(subprocess.run([sys.executable, "-c", STEP, *options], capture_output=True, text=True, check=True).stdout)


def test_a_second_process_takes_at_most_a_second():
    first_call()  # whatever is not on disk yet
    assert min(first_call() for _ in range(2)) <= 1.0  # (of two: other processes of the machine may be in the way)


def test_few_functions_of_the_library_are_called():
    """Counts do not depend on the machine. What watches Python steps aside where Numba loads kernels: it would be asked 100,000 times."""
    first_call()
    assert first_call("count") < 50_000
