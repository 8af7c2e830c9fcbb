"""Two hosts, made of network namespaces with a link of 1 Gbit/s between them: where root is available."""

from __future__ import annotations

import json
import shlex
import subprocess
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


BY_SSH = """
import os, sys, time
import torch, torch.distributed as dist
dist.init_process_group("gloo")
t = torch.ones(3) * (dist.get_rank() + 1)
dist.all_reduce(t)
rank, words = dist.get_rank(), (os.environ[name] for name in ("LOCAL_RANK", "LOCAL_WORLD_SIZE", "AUTOGRAD_NB_NUM_THREADS"))
print("sum", t[0].item(), rank, os.uname().nodename, *words, *sys.argv[1:], flush=True)
if sys.argv[1] == "fail" and rank == 3:
    raise KeyError("there")
if sys.argv[1] == "fail":
    time.sleep(300)
dist.destroy_process_group()
"""

#: in the place of `ssh`, which it is told as ``ssh -x HOST COMMAND…``: it runs the command on a host that is known, with nothing of this environment
SSH = """#!/bin/sh
echo "$@" >> {log}
while [ "${{1#-}}" != "$1" ]; do shift; done
host=$1; shift
[ "$host" = {host} ] || exit 255
exec env -i HOME="$HOME" PATH=/usr/sbin:/usr/bin:/sbin:/bin {inside} sh -c "$*"
"""


def by_ssh(hosts, folder, how):
    """Run two ranks on each host by ``run --hosts a,b`` on the first: how that has ended, and the names of the hosts."""
    names, known, log = [host[-1] for host in hosts], folder / "hosts", folder / "log"
    known.write_text("".join(f"{address} {name}\n" for address, name in zip(link.ADDRESSES, names, strict=True)))
    inside = [[*host, "sh", "-c", f'mount --bind {shlex.quote(str(known))} /etc/hosts && exec "$@"', "sh"] for host in hosts]
    (folder / "ssh").write_text(SSH.format(log=shlex.quote(str(log)), host=names[1], inside=shlex.join(inside[1])))
    (folder / "ssh").chmod(0o755)
    (folder / "program.py").write_text(BY_SSH)
    told = environment(PYTHONPATH=str(ROOT))
    told["PATH"] = f"{folder}:{told['PATH']}"
    words = [sys.executable, "-m", "autograd_nb", "run", "-n", "2", "--hosts", ",".join(names), str(folder / "program.py"), how]
    ended = subprocess.run([*inside[0], *words], env=told, capture_output=True, text=True, timeout=300, check=False)
    assert f"-x {names[1]} " in log.read_text()
    return ended, names


def test_a_job_is_started_on_another_host_by_ssh(hosts, tmp_path):
    """The second host is another one by name, address and shared memory; files are the same. `ssh` is a script, so that keys and `sshd` are not tested."""
    ended, names = by_ssh(hosts, tmp_path, "well")
    assert ended.returncode == 0, ended.stderr
    lines = sorted(line for line in ended.stdout.splitlines() if "sum" in line)
    assert lines == [f"[{r}] sum 10.0 {r} {names[r // 2]} {r % 2} 2 1 well" for r in range(4)]
    assert "UCX  WARN" not in ended.stdout


def test_a_rank_that_fails_on_a_host_by_ssh_ends_all(hosts, tmp_path):
    ended, _ = by_ssh(hosts, tmp_path, "fail")
    assert ended.returncode != 0
    assert "KeyError: 'there'" in ended.stderr
