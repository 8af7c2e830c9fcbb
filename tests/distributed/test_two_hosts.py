"""Two hosts, made of network namespaces with a link of 1 Gbit/s between them: where root is available."""

from __future__ import annotations

import json
import sys

import pytest

from bench.ranks import link

from .jobs import ROOT, environment, mpiexec, needs_mpi, open_mpi

pytestmark = [
    needs_mpi,
    pytest.mark.skipif(mpiexec() is not None and open_mpi(), reason="hosts without ssh find one another by MPICH's protocol"),
]

PROGRAM = """
import json, os, sys, time
import autograd_nb as torch, autograd_nb.distributed as dist, autograd_nb.nn as nn
dist.init_process_group()
rank = dist.get_rank()
torch.manual_seed(rank)
model = nn.parallel.DistributedDataParallel(nn.Linear(8, 4))
model(torch.ones(2, 8) * (rank + 1)).sum().backward()
assert model.module.weight.grad.tolist() == [[3.0] * 8] * 4
x = torch.ones(1 << 20) * (rank + 1)
times = []
for _ in range(3):
    dist.barrier()
    begin = time.perf_counter()
    dist.all_reduce(x)
    times.append(time.perf_counter() - begin)
assert x[-1].item() == 12.0
print(json.dumps([os.uname().nodename, int(os.environ["LOCAL_RANK"]), min(times)]), flush=True)
if len(sys.argv) > 1:
    if rank == 1:
        os._exit(3)
    dist.all_reduce(x)
dist.destroy_process_group()
"""


@pytest.fixture(scope="module")
def hosts():
    reason = link.missing()
    if reason:
        pytest.skip(f"two hosts on one machine: {reason}")
    with link.two_hosts("1gbit") as made:
        yield made


def outcome(hosts, port, *more):
    jobs = link.ranks(hosts, [sys.executable, "-c", PROGRAM, *more], environment(PYTHONPATH=str(ROOT)), port)
    said = [job.communicate(timeout=300)[0] for job in jobs]
    return [job.returncode for job in jobs], said


def test_ranks_on_two_hosts_train_over_the_link(hosts):
    codes, said = outcome(hosts, 29700)
    assert codes == [0, 0], said
    found = [json.loads(next(line for line in text.splitlines() if line.startswith("["))) for text in said]
    assert found[0][0] != found[1][0]
    assert [local for _, local, _ in found] == [0, 0]  # each is the first on its host
    assert all(seconds > 0.02 for _, _, seconds in found)  # 4 MB there and back take 33 ms at 1 Gbit/s, of which some wait in the link already


def test_a_rank_that_ends_on_one_host_ends_that_on_the_other(hosts):
    codes, said = outcome(hosts, 29701, "ends")
    assert codes[1] == 3
    assert codes[0] not in (0, None), said
    assert "rank 1 " in said[0]
