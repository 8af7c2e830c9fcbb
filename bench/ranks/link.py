"""Two hosts on one machine: network namespaces that are joined by a link of a given rate, for measuring and for tests. It takes root, `ip` and `tc`.

Nothing but the link is shared: each has its own name, memory that processes share, and addresses.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress

BURST = "256kb"  #: what a link lets through at once, before its rate counts
ADDRESSES = ("10.213.77.1", "10.213.77.2")
#: what a host does before its program begins: a name and shared memory of its own, and no ways of UCX but the network
_OWN = 'hostname "$0" && mount -t tmpfs tmpfs /dev/shm && export UCX_TLS=tcp,self && exec "$@"'


def missing() -> str:
    """Return why there cannot be two hosts here, "" where there can."""
    if not hasattr(os, "geteuid") or os.geteuid() != 0:
        return "needs root"
    absent = [name for name in ("ip", "tc", "unshare") if shutil.which(name) is None]
    if absent:
        return f"needs {', '.join(absent)}"
    try:
        with two_hosts() as hosts:
            _run(*hosts[0], "true")
    except subprocess.CalledProcessError as error:
        return f"this system makes no linked namespaces: {error.stderr.strip()}"
    return ""


def _run(*words: str) -> None:
    subprocess.run(words, check=True, capture_output=True, text=True)


@contextmanager
def two_hosts(rate: str = "1gbit") -> Iterator[list[list[str]]]:
    """Make them for a while; what a command line begins with that runs on the first, and on the second. CalledProcessError where they cannot be."""
    names = [f"nb{os.getpid()}{side}" for side in "ab"]
    try:
        for name in names:
            _run("ip", "netns", "add", name)
        _run("ip", "link", "add", names[0], "type", "veth", "peer", "name", names[1])
        for name, address in zip(names, ADDRESSES, strict=True):
            inside = ("ip", "netns", "exec", name)
            _run("ip", "link", "set", name, "netns", name)
            _run(*inside, "ip", "addr", "add", f"{address}/24", "dev", name)
            _run(*inside, "ip", "link", "set", name, "up")
            _run(*inside, "ip", "link", "set", "lo", "up")
            _run(*inside, "tc", "qdisc", "add", "dev", name, "root", "tbf", "rate", rate, "burst", BURST, "latency", "50ms")
        yield [["ip", "netns", "exec", name, "unshare", "--uts", "--ipc", "--mount", "sh", "-c", _OWN, name] for name in names]
    finally:
        for name in names:
            with suppress(subprocess.CalledProcessError):
                _run("ip", "netns", "del", name)


def ranks(hosts: list[list[str]], command: list[str], environment: dict[str, str], port: int) -> list[subprocess.Popen[str]]:
    """Start one rank of a program on each host."""
    more = {**environment, "WORLD_SIZE": "2", "MASTER_ADDR": ADDRESSES[0], "MASTER_PORT": str(port)}
    return [
        subprocess.Popen([*host, *command], env={**more, "RANK": str(r)}, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        for r, host in enumerate(hosts)
    ]
