"""One rank of `bench.distributed`: the same program for this library and for PyTorch, whichever ``torch`` is. Rank 0 prints a line of JSON.

``python program.py LIBRARY CASE ROUNDS``
"""

import importlib
import json
import os
import statistics
import sys
import time

LIBRARY, CASE, ROUNDS = sys.argv[1], sys.argv[2], int(sys.argv[3])
torch = importlib.import_module(LIBRARY)
dist = importlib.import_module(f"{LIBRARY}.distributed")
nn = importlib.import_module(f"{LIBRARY}.nn")
F = importlib.import_module(f"{LIBRARY}.nn.functional")


def once(run):
    """Return the seconds of a call that all ranks begin together."""
    dist.barrier()
    begin = time.perf_counter()
    run()
    return time.perf_counter() - begin


def timed(run, rounds, warm=10):
    """Return the median seconds of a call, all ranks beginning together."""
    for _ in range(warm):
        run()
    return statistics.median([once(run) for _ in range(rounds)])


def reduction(elements):
    x = torch.ones(elements)
    return timed(lambda: dist.all_reduce(x), ROUNDS)


def bare(elements):
    import numpy as np
    from mpi4py import MPI

    memory = np.ones(elements, np.float32)
    return timed(lambda: MPI.COMM_WORLD.Allreduce(MPI.IN_PLACE, memory), ROUNDS)


class Branches(nn.Module):
    """Two branches of layers of one input, joined for the output."""

    def __init__(self):
        super().__init__()
        self.left = nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 64))
        self.right = nn.Sequential(nn.Linear(64, 128), nn.Tanh(), nn.Linear(128, 64))
        self.head = nn.Linear(128, 10)

    def forward(self, x):
        return self.head(torch.cat([self.left(x), self.right(x)], 1))


def network(name):
    torch.manual_seed(0)
    if name == "branches":
        return Branches()
    return nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 128), nn.ReLU(), nn.Linear(128, 10))


LAYERS, DELAY, WIDE = 6, 0.004, 1024


def wide():
    """Return layers whose gradients of 4 MB fill a bucket each, of which the backward pass hides most."""
    torch.manual_seed(0)
    return nn.Sequential(*[nn.Linear(WIDE, WIDE, bias=False) for _ in range(LAYERS)])


def wide_step(wrapped=True, compiled=False):
    model = wide()
    if wrapped:
        model = nn.parallel.DistributedDataParallel(model, bucket_cap_mb=4)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-9)
    x = torch.randn(128, WIDE)

    def step():
        optimizer.zero_grad()
        loss = model(x).sum()
        loss.backward()
        optimizer.step()
        return loss

    return timed(torch.compile(step) if compiled else step, max(ROUNDS // 10, 10))


def training(name, wrapped=True, compiled=False, batch=64):
    model = network(name)
    if wrapped:
        model = nn.parallel.DistributedDataParallel(model)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    torch.manual_seed(dist.get_rank())
    x, y = torch.randn(batch, 64), torch.randint(0, 10, (batch,))

    def step():
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        return loss

    return timed(torch.compile(step) if compiled else step, ROUNDS)


def overlapping(state, hook):
    """Return a pass of a model with one bucket for each layer, each reduced by a hook."""
    model = nn.parallel.DistributedDataParallel(wide(), bucket_cap_mb=4)
    model.register_comm_hook(state, hook)
    x = torch.randn(256, WIDE)  # 128 take less time backward than the delays, which follow one another: no engine could hide half of them
    return lambda: model(x).sum().backward()


def hidden():
    """Return the share of an artificial delay of 4 ms per bucket, in the background, that the backward pass hides.

    Passes with it and without it alternate; what they differ by is not hidden.
    """

    def delayed(seconds, bucket):
        def late(future):
            time.sleep(seconds)
            return future.value()[0]

        return dist.all_reduce(bucket.buffer(), async_op=True).get_future().then(late)

    passes = [(overlapping(seconds, delayed), []) for seconds in (0.0, DELAY)]
    for turn in range(3 + max(ROUNDS // 5, 20)):
        for run, times in passes:
            took = once(run)
            if turn >= 3:
                times.append(took)
    plain, late = (statistics.median(times) for _, times in passes)
    return 1 - (late - plain) / (LAYERS * DELAY)


CASES = {
    "all-reduce 1 KB": lambda: reduction(256), "all-reduce 4 MB": lambda: reduction(1 << 20), "bare 1 KB": lambda: bare(256),
    "bare 4 MB": lambda: bare(1 << 20), "mlp": lambda: training("mlp"), "branches": lambda: training("branches"),
    "mlp alone": lambda: training("mlp", wrapped=False), "mlp compiled": lambda: training("mlp", compiled=True),
    "mlp large": lambda: training("mlp", batch=1024), "hidden": hidden, "wide": wide_step, "wide compiled": lambda: wide_step(compiled=True),
    "wide alone": lambda: wide_step(wrapped=False),
}  # fmt: skip

if __name__ == "__main__":
    if LIBRARY == "torch":
        torch.set_num_threads(int(os.environ["AUTOGRAD_NB_NUM_THREADS"]))
    dist.init_process_group("gloo")
    found = {case: reduction(int(case[7:]) // 4) if case.startswith("reduce ") else CASES[case]() for case in CASE.split(",")}
    if dist.get_rank() == 0:
        print("RESULT " + json.dumps(found), flush=True)
    dist.destroy_process_group()
