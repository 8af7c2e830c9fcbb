"""``python -m autograd_nb run -n …``: the command lines it makes, and jobs that it starts."""

from __future__ import annotations

import argparse
import re
import signal
import socket
import subprocess
import sys
import time

import pytest

from autograd_nb.distributed import launcher, rendezvous
from autograd_nb.distributed.mpi import launched

from .jobs import ROOT, environment, mpiexec, needs_mpi, open_mpi, started

RUN = [sys.executable, "-m", "autograd_nb", "run"]


def options(*words):
    parser = argparse.ArgumentParser()
    launcher.add_to(parser)
    return parser.parse_args(words)


@pytest.mark.parametrize(
    ("words", "found"),
    [
        (["-n", "4"], (4, [])),
        (["--nproc_per_node=3", "--standalone"], (3, [])),
        (["--nproc-per-node", "2", "--nnodes=1", "--rdzv_backend=c10d", "--rdzv-endpoint", "localhost:0"], (2, [])),
        (["-n", "2", "--hosts", "a,b", "--nnodes", "1:2"], (2, ["a", "b"])),
        (["--standalone"], (1, [])),
    ],
)
def test_torchruns_spellings(words, found):
    given = options(*words)
    assert launcher.wants_ranks(given)
    assert launcher.count(given) == found


@pytest.mark.parametrize(("words", "text"), [(["-n", "0"], "whole number"), (["-n", "two"], "whole number"), (["--nnodes", "2"], "--hosts a,b")])
def test_numbers_that_are_none_are_refused(words, text):
    with pytest.raises(ValueError, match=text):
        launcher.count(options(*words))


def test_command_lines():
    assert launcher.command("mpiexec", False, 4, [], ["A"]) == ["mpiexec", "-n", "4", "-prepend-rank"]
    assert launcher.command("mpiexec", False, 2, ["a", "b"], []) == ["mpiexec", "-n", "4", "-prepend-rank", "-hosts", "a,b", "-ppn", "2"]
    words = launcher.command("mpiexec", True, 2, ["a", "b"], ["A"])
    assert words[:4] == ["mpiexec", "-n", "4", "--tag-output"]
    assert words[-4:] == ["--host", "a:2,b:2", "-x", "A"]


def test_who_started_this_process():
    assert launched({}) is None
    assert launched({"PMI_RANK": "3", "PMI_SIZE": "8", "MPI_LOCALRANKID": "1"}) == (3, 8, 1)
    names = {"OMPI_COMM_WORLD_RANK": "3", "OMPI_COMM_WORLD_SIZE": "8", "OMPI_COMM_WORLD_LOCAL_RANK": "1"}
    assert launched(names) == (3, 8, 1)
    assert launched(names | {"OMPI_COMM_WORLD_LOCAL_SIZE": "4"}) == (3, 8, 1)
    assert launched(names | {"OMPI_COMM_WORLD_LOCAL_SIZE": "8"}) == (3, 8, 3)  # all on one machine, where Open MPI counts by cores
    batch = {"SLURM_PROCID": "0", "SLURM_NTASKS": "8", "SLURM_LOCALID": "0"}
    assert launched(batch) is None  # a batch script, which is no rank
    assert launched(batch | {"SLURM_STEP_ID": "0"}) == (0, 8, 0)


def test_without_mpiexec_an_error_names_the_extra(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(sys, "executable", str(tmp_path / "python"))
    given = options("-n", "2")
    assert launcher.launch(given) == 2
    assert 'pip install "autograd_nb[mpi]"' in capsys.readouterr().err


PROGRAM = """
import os, sys
import torch, torch.distributed as dist
assert os.environ["LOCAL_WORLD_SIZE"] == os.environ["WORLD_SIZE"]
before = os.environ["RANK"], os.environ["LOCAL_RANK"]
dist.init_process_group(backend="gloo", init_method="env://")
t = torch.tensor([float(dist.get_rank() + 1)])
dist.all_reduce(t)
print("sum", t.item(), before, sys.argv[1:], dist.is_torchelastic_launched())
if sys.argv[1] == "fail" and os.environ["TORCHELASTIC_RESTART_COUNT"] != "2":
    sys.exit(5 * dist.get_rank())
"""


@needs_mpi
@pytest.mark.parametrize("spelling", [["-n", "3"], ["--nproc_per_node=3", "--nnodes=1", "--standalone"]])
def test_a_pytorch_program_on_several_ranks(tmp_path, spelling):
    (tmp_path / "program.py").write_text(PROGRAM)
    ended = started([*RUN, *spelling, str(tmp_path / "program.py"), "-n", "--x"])
    assert ended.code == 0, ended.out
    lines = sorted(line for line in ended.out.splitlines() if "sum" in line)
    head = "[1,{}]<stdout>:" if open_mpi() else "[{}]"
    assert lines == [f"{head.format(r)} sum 6.0 ('{r}', '{r}') ['-n', '--x'] True" for r in range(3)]


ON_GPUS = """
import os, torch, torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP
rank = int(os.environ["LOCAL_RANK"])
torch.cuda.set_device(rank)
dist.init_process_group("nccl")
model = DDP(torch.nn.Linear(2, 1, bias=False).to(rank), device_ids=[rank], output_device=rank)
torch.nn.init.ones_(model.module.weight)
model(torch.full((1, 2), float(rank)).cuda()).sum().backward()
print("mean", model.module.weight.grad.tolist(), torch.cuda.device_count())
dist.destroy_process_group()
"""


@needs_mpi
def test_a_program_for_gpus_on_several_ranks(tmp_path):
    (tmp_path / "program.py").write_text(ON_GPUS)
    ended = started([*RUN, "--as-gpus", "2", "--nproc_per_node=2", str(tmp_path / "program.py")])
    assert ended.code == 0, ended.out
    assert ended.out.count("mean [[0.5, 0.5]] 2") == 2


@needs_mpi
def test_a_job_that_fails_is_started_again(tmp_path):
    (tmp_path / "program.py").write_text(PROGRAM)
    ended = started([*RUN, "-n", "2", "--max-restarts", "3", str(tmp_path / "program.py"), "fail"])
    assert ended.code == 0, ended.out
    assert ended.out.count("starting all ranks again") == 2
    assert ended.out.count("sum 3.0") == 6
    ended = started([*RUN, "-n", "2", "--max_restarts=1", str(tmp_path / "program.py"), "fail"])
    assert ended.code != 0
    assert ended.out.count("sum 3.0") == 4


@needs_mpi
def test_a_signal_ends_all_ranks(tmp_path):
    (tmp_path / "program.py").write_text("import time\nprint('here')\ntime.sleep(600)")
    process = subprocess.Popen(
        [*RUN, "-n", "2", str(tmp_path / "program.py")], stdout=subprocess.PIPE, text=True, cwd=ROOT, env=environment(), start_new_session=True
    )
    for _ in range(2):
        assert "here" in process.stdout.readline()
    begin = time.monotonic()
    process.send_signal(signal.SIGTERM)
    assert process.wait(300) != 0
    assert time.monotonic() - begin < 200
    process.stdout.close()


BEGINNING = """
import os
import torch
import torch.distributed as dist
from torch.multiprocessing import Process

def run(rank, size):
    tensor = torch.zeros(1)
    if rank == 0:
        tensor += 1
        dist.isend(tensor=tensor, dst=1).wait()
    else:
        dist.irecv(tensor=tensor, src=0).wait()
    dist.all_reduce(tensor, op=dist.ReduceOp.SUM, group=dist.new_group([0, 1]))
    print(f"sum {tensor[0]} {rank}\\n", end="", flush=True)

def init_process(rank, size, fn, backend="gloo"):
    os.environ["MASTER_ADDR"], os.environ["MASTER_PORT"] = "127.0.0.1", "@"
    dist.init_process_group(backend, rank=rank, world_size=size)
    fn(rank, size)

if __name__ == "__main__":
    processes = [Process(target=init_process, args=(rank, 2, run)) for rank in range(2)]
    for p in processes:
        p.start()
    for p in processes:
        p.join()
    print("codes", [p.exitcode for p in processes])
"""
ALONE = """
import sys, time
from datetime import timedelta
import autograd_nb as torch, autograd_nb.distributed as dist
dist.init_process_group(init_method=sys.argv[2] if len(sys.argv) > 2 else None, timeout=timedelta(seconds=30))
t = torch.ones(3) * dist.get_rank()
dist.all_reduce(t)
print("sum", t.tolist(), dist.get_rank(), flush=True)
if sys.argv[1] == "raise":  # once all have said so: a sum that one rank has may be on its way to another
    if dist.get_rank() == 1:
        for rank in (0, 2):
            dist.recv(t, rank)
        raise KeyError("in the middle")
    dist.send(t, 1)
if sys.argv[1] == "exit" and dist.get_rank() == 1:
    import os
    os._exit(3)
if sys.argv[1] != "well":
    time.sleep(600)
"""
only_mpich = pytest.mark.skipif(mpiexec() is not None and open_mpi(), reason="ranks that nobody started together find one another by MPICH's protocol")


def port():
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return str(found.getsockname()[1])


@needs_mpi
@only_mpich
def test_a_program_that_begins_its_processes_itself(tmp_path):
    (tmp_path / "program.py").write_text(BEGINNING.replace("@", port()))
    ended = started([*RUN, str(tmp_path / "program.py")])
    assert sorted(line for line in ended.out.splitlines() if "sum" in line) == ["sum 2.0 0", "sum 2.0 1"], ended.out
    assert "codes [0, 0]" in ended.out


@needs_mpi
@only_mpich
@pytest.mark.parametrize(("how", "method"), [("well", None), ("well", "tcp"), ("raise", None), ("exit", None)])
def test_ranks_that_are_started_one_by_one(how, method):
    """As PyTorch's are: by their variables alone. When one fails, all end."""
    at, ranks = port(), 3
    more = {"WORLD_SIZE": str(ranks)} | ({} if method else {"MASTER_ADDR": "localhost", "MASTER_PORT": at})
    words = [sys.executable, "-c", ALONE, how, *([f"tcp://127.0.0.1:{at}"] if method else [])]
    jobs = [
        subprocess.Popen(words, env=environment(RANK=str(r), **more), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, cwd=ROOT)
        for r in reversed(range(ranks))
    ]
    said = [job.communicate(timeout=300)[0] for job in jobs]
    assert "sum [3.0, 3.0, 3.0]" in said[1], said
    assert how == "exit" or all("sum [3.0, 3.0, 3.0]" in text for text in said), said
    assert [job.returncode == 0 for job in jobs] == [how == "well"] * ranks, said
    assert how != "raise" or any("KeyError: 'in the middle'" in text for text in said)
    assert how == "well" or any("rank 1 " in text for text in said[::2])


def test_where_ranks_are():
    assert rendezvous.mapping(["a", "a", "a"]) == "(vector,(0,1,3))"
    assert rendezvous.mapping(["a", "b", "b", "a"]) == "(vector,(0,1,1),(1,1,2),(0,1,1))"


def test_ranks_that_cannot_meet_are_told_where():
    with pytest.raises(RuntimeError, match=r"MASTER_ADDR=127\.0\.0\.1, MASTER_PORT=\d+: rank 1 cannot reach rank 0 there"):
        rendezvous.join(1, 2, "127.0.0.1", int(port()), 0.2)
    with socket.create_server(("127.0.0.1", 0)) as other, pytest.raises(RuntimeError, match=r"rank 0 cannot wait for the others there"):
        rendezvous.join(0, 2, "127.0.0.1", other.getsockname()[1], 1.0)


SPAWNING = """
import os, sys
import TORCH as torch, TORCH.distributed as dist, TORCH.multiprocessing as mp

def work(rank, world_size, queue):
    os.environ["MASTER_ADDR"], os.environ["MASTER_PORT"] = "localhost", "12355"
    dist.init_process_group("gloo", rank=rank, world_size=world_size)
    t = torch.tensor([float(rank + 1)])
    dist.all_reduce(t)
    if rank == 1 and len(sys.argv) > 1:
        raise KeyError("in the middle")
    print(f"sum {t.item()} {rank}\\n", end="", flush=True)
    dist.destroy_process_group()

def count(rank, queue):
    queue.put(rank)

if __name__ == "__main__":
    mp.spawn(work, args=(3, None), nprocs=3, join=True)
    if "TORCH" == "torch":
        sys.exit()
    queue = mp.get_context("spawn").Queue()  # which no rank can be given
    mp.spawn(count, args=(queue,), nprocs=2)
    print("counted", sorted(queue.get() for _ in range(2)))
"""


@needs_mpi
def test_a_program_that_spawns_its_ranks(tmp_path):
    commands = [("autograd_nb", [sys.executable]), ("torch", RUN), *([] if open_mpi() else [("torch", [*RUN, "-n", "1"])])]
    for torch, command in commands:
        (tmp_path / "program.py").write_text(SPAWNING.replace("TORCH", torch))
        ended = started([*command, str(tmp_path / "program.py")])
        assert ended.code == 0, ended.out
        assert sorted(re.findall(r"sum \S+ \d", ended.out)) == [f"sum 6.0 {r}" for r in range(3)]
        assert ("counted [0, 1]" in ended.out) == (torch == "autograd_nb")
    ended = started([*RUN, str(tmp_path / "program.py"), "fail"])
    assert ended.code != 0
    assert "-- Process 1 terminated with the following error:" in ended.out
    assert "KeyError: 'in the middle'" in ended.out
