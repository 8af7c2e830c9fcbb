"""The first call of a compiled function in a process that finds its kernels on disk."""

import subprocess
import sys

STEP = """
import time
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

start = time.perf_counter()
step(x)
print(time.perf_counter() - start)
assert step.programs
"""


def first_call() -> float:
    return float(subprocess.run([sys.executable, "-c", STEP], capture_output=True, text=True, check=True).stdout)


def test_a_second_process_takes_at_most_a_second():
    first_call()  # whatever is not on disk yet
    assert min(first_call() for _ in range(2)) <= 1.0  # (of two: other processes of the machine may be in the way)
