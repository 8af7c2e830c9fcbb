"""Ranks that nobody started together find one another: ``RANK``, ``WORLD_SIZE``, ``MASTER_ADDR`` and ``MASTER_PORT`` are all they know.

So PyTorch's programs start that begin their processes themselves, or are started by hand on each host. Rank 0 starts this file as a process of its
own, which serves at MASTER_ADDR:MASTER_PORT what mpiexec otherwise does: MPICH's protocol PMI-1, by which ranks tell one another their addresses.
Each rank holds a second connection to it, through which it hears that another has failed. Open MPI has another protocol, and needs its mpiexec.

Source: https://github.com/pmodels/mpich/tree/main/src/pmi
"""

from __future__ import annotations

import contextlib
import itertools
import os
import socket
import subprocess
import sys
import threading
import time

LOOK = 0.05  #: seconds between two attempts to reach the server
GUARD, BYE = b"guard", b"bye"


class Server:
    """The table of what ranks tell one another, and who waits for whom."""

    def __init__(self, size: int):
        self.size = size
        self.name: str = f"ranks_{os.getpid()}_{time.time_ns()}"  # MPICH names shared memory after it
        self.lock: threading.Condition = threading.Condition()
        self.table: dict[str, str] = {}
        self.hosts: dict[int, str] = {}
        self.barriers: int = 0
        self.waiting: int = 0
        self.gone: int = 0
        self.open: int = 0
        self.guards: dict[int, socket.socket] = {}

    def answers(self, rank: int, words: dict[str, str]) -> list[str]:
        """Return the lines that answer one of a rank."""
        command = words.get("cmd", "")
        if command == "initack":
            self.meet()
            return ["cmd=initack", f"cmd=set size={self.size}", f"cmd=set rank={rank}", "cmd=set debug=0"]
        if command == "put":
            with self.lock:
                self.table[words["key"]] = words["value"]
            return ["cmd=put_result rc=0 msg=success"]
        if command == "get":
            found = self.table.get(words["key"])
            return [f"cmd=get_result rc=0 msg=success value={found}" if found else "cmd=get_result rc=-1 msg=key_not_found value=unknown"]
        if command == "barrier_in":
            self.barrier()
        if command == "abort":
            self.end(f"rank {rank} ended all")
        return {
            "init": ["cmd=response_to_init pmi_version=1 pmi_subversion=1 rc=0"],
            "get_maxes": ["cmd=maxes kvsname_max=256 keylen_max=64 vallen_max=1024"],
            "get_appnum": ["cmd=appnum appnum=0"], "get_my_kvsname": [f"cmd=my_kvsname kvsname={self.name}"],
            "get_universe_size": [f"cmd=universe_size size={self.size}"], "barrier_in": ["cmd=barrier_out"], "finalize": ["cmd=finalize_ack"],
        }.get(command, [])  # fmt: skip

    def meet(self) -> None:
        """Wait until all ranks have said where they are, which all of them ask for."""
        with self.lock:
            self.lock.wait_for(lambda: len(self.hosts) == self.size)
            self.table["PMI_process_mapping"] = mapping([self.hosts[r] for r in range(self.size)])

    def barrier(self) -> None:
        """Wait until all ranks are here."""
        with self.lock:
            number = self.barriers
            self.waiting += 1
            if self.waiting == self.size:
                self.waiting, self.barriers = 0, number + 1
                self.lock.notify_all()
            self.lock.wait_for(lambda: self.barriers > number)

    def end(self, why: str) -> None:
        """Let all ranks end that have not done so."""
        with self.lock:
            for guard in self.guards.values():
                with contextlib.suppress(OSError):
                    guard.sendall(why.encode())
        time.sleep(LOOK)
        os._exit(0)

    def serve(self, connection: socket.socket) -> None:
        """Answer what one connection asks until it ends."""
        lines, rank = connection.makefile("rb"), -1
        with contextlib.suppress(OSError):
            for line in lines:
                if line.startswith(GUARD):
                    _, given, host = line.decode().split()
                    return self.watch(connection, int(given), host)
                words = dict(word.partition("=")[::2] for word in line.decode().split())
                if rank < 0:
                    rank = int(words["pmiid"])
                    self.count(1)
                connection.sendall("".join(f"{answer}\n" for answer in self.answers(rank, words)).encode())
        if rank >= 0:
            self.count(-1)
            self.end_with_the_last()
        return None

    def count(self, change: int) -> None:
        """Count MPI's connections."""
        with self.lock:
            self.open += change

    def end_with_the_last(self) -> None:
        """End when all ranks have said goodbye and MPI's connections are closed: it cannot end without an answer."""
        with self.lock:
            if self.gone == self.size and self.open == 0:
                os._exit(0)

    def watch(self, connection: socket.socket, rank: int, host: str) -> None:
        """Wait until a rank ends; the others end with it where it does not say goodbye."""
        with self.lock:
            self.guards[rank], self.hosts[rank] = connection, host
            self.lock.notify_all()
        heard = b""
        with contextlib.suppress(OSError):
            heard = connection.recv(16)
        with self.lock:
            del self.guards[rank]
            self.gone += 1
        if not heard.startswith(BYE):
            self.end(f"rank {rank} has ended before the others")
        self.end_with_the_last()


def mapping(hosts: list[str]) -> str:
    """Return where ranks are, as PMI writes it: a block (number of the host, 1, ranks) for each run of ranks on one host."""
    numbers = {host: i for i, host in enumerate(dict.fromkeys(hosts))}
    runs = [(numbers[host], len(list(same))) for host, same in itertools.groupby(hosts)]
    return f"(vector,{','.join(f'({number},1,{ranks})' for number, ranks in runs)})"


def main(host: str, port: int, size: int) -> None:
    """Serve the ranks until all of them have ended."""
    server = Server(size)
    listening = socket.create_server((host, port), backlog=max(size, 16))
    print("here", flush=True)
    while True:
        connection, _ = listening.accept()
        threading.Thread(target=server.serve, args=(connection,), daemon=True).start()


def join(rank: int, size: int, host: str, port: int, limit: float) -> None:
    """Find the other ranks, before MPI is started. RuntimeError where rank 0 cannot be reached within ``limit`` seconds.

    The process ends when another rank ends without saying goodbye: `leave`.
    """
    if rank == 0:
        near = host if host.startswith("127.") or host == "localhost" else ""
        words = [sys.executable, "-I", __file__, near, str(port), str(size)]
        server = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True)
        if not server.stdout.readline():  # type: ignore[union-attr]
            said = server.communicate()[1].decode().strip().rpartition("\n")[2]
            raise RuntimeError(f"MASTER_ADDR={host}, MASTER_PORT={port}: rank 0 cannot wait for the others there ({said})")
    guard = _reached(rank, host, port, limit)
    guard.sendall(f"{GUARD.decode()} {rank} {socket.gethostname()}\n".encode())
    threading.Thread(target=_heard, args=(guard, rank), name="autograd_nb-guard", daemon=True).start()
    _guards.append(guard)
    os.environ["PMI_PORT"], os.environ["PMI_ID"] = f"{host}:{port}", str(rank)


def _reached(rank: int, host: str, port: int, limit: float) -> socket.socket:
    end = time.monotonic() + limit
    while True:
        try:
            found = socket.create_connection((host, port), timeout=max(1.0, end - time.monotonic()))
        except OSError as error:
            if time.monotonic() > end:
                raise RuntimeError(f"MASTER_ADDR={host}, MASTER_PORT={port}: rank {rank} cannot reach rank 0 there ({error})") from error
            time.sleep(LOOK)
        else:
            found.settimeout(None)
            return found


_guards: list[socket.socket] = []


def _heard(guard: socket.socket, rank: int) -> None:
    said = b""
    with contextlib.suppress(OSError):
        said = guard.recv(256)
    if said and _guards:
        sys.stderr.write(f"rank {rank} ends: {said.decode()}\n")
        sys.stderr.flush()
        os._exit(1)


def leave() -> None:
    """Say that this rank ends well."""
    while _guards:
        with contextlib.suppress(OSError):
            _guards.pop().sendall(BYE)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
