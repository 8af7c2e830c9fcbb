"""pytest-benchmark of an epoch over 60,000 × 784 float32 in memory: this library's DataLoader and, where installed, PyTorch's.

`python -m bench.data.test_dataloader` prints the ratios.
"""

from __future__ import annotations

import importlib
import time

import pytest

CASES = {
    "shuffled, 64": {"batch_size": 64, "shuffle": True},
    "shuffled, 128": {"batch_size": 128, "shuffle": True},
    "in order, 128": {"batch_size": 128},
}


def epoch(library, options):
    """A function that reads all batches once, and gives the number of rows read."""
    lib = importlib.import_module(library)
    data = importlib.import_module(f"{library}.utils.data")
    loader = data.DataLoader(data.TensorDataset(lib.rand(60_000, 784), lib.zeros(60_000, dtype=lib.int64)), **options)

    def run():
        return sum(len(y) for _, y in loader)

    return run


@pytest.mark.parametrize("library", ["autograd_nb", "torch"])
@pytest.mark.parametrize("case", CASES)
def test_epoch(benchmark, case, library):
    lib = pytest.importorskip(library)
    if library == "torch":
        lib.set_num_threads(1)
    run = epoch(library, CASES[case])
    benchmark.group = f"DataLoader, {case}"
    assert benchmark(run) == 60_000


def main() -> None:
    for case, options in CASES.items():
        best = {}
        for library in ("autograd_nb", "torch"):
            importlib.import_module(library).set_num_threads(1)
            run = epoch(library, options)
            run()
            times = []
            for _ in range(5):
                start = time.perf_counter()
                run()
                times.append(time.perf_counter() - start)
            best[library] = min(times)
        ours, theirs = best["autograd_nb"], best["torch"]
        print(f"{case:15} {ours * 1e3:7.1f} ms, torch {theirs * 1e3:7.1f} ms: {theirs / ours:.1f} times faster")


if __name__ == "__main__":
    main()
