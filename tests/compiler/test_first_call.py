"""The first call of a compiled function in a process that finds its kernels on disk."""

import json
import subprocess
import sys

import autograd_nb as torch

STEP = """
import json, sys, threading
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

calls = {"library": 0, "all": 0, "compiled": 0}
def count(frame, event, argument):
    if event == "call":
        calls["all"] += 1
        calls["library"] += "/autograd_nb/" in frame.f_code.co_filename
        calls["compiled"] += frame.f_code.co_name == "_compile" and frame.f_code.co_filename.endswith("codegen/build/compilation.py")

threading.setprofile(count)
sys.setprofile(count)
step(x)
sys.setprofile(None)
print(json.dumps(calls))
assert step.programs
"""


def calls_of_the_first_step() -> dict[str, int]:
    return json.loads(subprocess.run([sys.executable, "-c", STEP], capture_output=True, text=True, check=True).stdout)


def test_a_second_process_compiles_nothing_and_calls_few_functions():
    """Counts do not depend on the machine. What watches Python steps aside where Numba loads kernels: it would be asked 100,000 times."""
    calls_of_the_first_step()  # whatever is not on disk yet
    second = calls_of_the_first_step()
    assert second["compiled"] == 0
    assert second["library"] < 50_000
    assert second["all"] < 127_000


def test_parameters_that_get_their_shape_by_the_first_call():
    module = torch.nn.Sequential(torch.nn.LazyLinear(4), torch.nn.ReLU(), torch.nn.LazyLinear(2))
    compiled = torch.compile(module)
    for k in range(3):
        x = torch.full((3, 5), float(k))
        assert compiled(x).tolist() == module(x).tolist()
    assert len(compiled.programs) == 1
