"""Settings of the process: how many threads there are, and who decides it; determinism."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

import autograd_nb as torch
from autograd_nb import config


@pytest.fixture(autouse=True)
def restored() -> Iterator[None]:
    """The number of threads as it was."""
    before = torch.get_num_threads()
    yield
    torch.set_num_threads(before)


def test_set_num_threads() -> None:
    torch.set_num_threads(5)
    assert torch.get_num_threads() == 5
    with pytest.raises(RuntimeError, match="positive integer"):
        torch.set_num_threads(0)
    with pytest.raises(RuntimeError, match="positive integer"):
        torch.set_num_threads(-1)
    for bad in (2.0, "2", None, True):
        with pytest.raises(RuntimeError, match="set_num_threads expects an int"):
            torch.set_num_threads(bad)
    assert torch.get_num_threads() == 5


def fresh(monkeypatch: pytest.MonkeyPatch, **environment: str) -> int:
    """The default under these variables."""
    for name in ("AUTOGRAD_NB_NUM_THREADS", "OMP_NUM_THREADS"):
        monkeypatch.delenv(name, raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    return config._default_threads()


def test_the_environment_decides(monkeypatch: pytest.MonkeyPatch) -> None:
    assert fresh(monkeypatch, AUTOGRAD_NB_NUM_THREADS="7", OMP_NUM_THREADS="3") == 7
    assert fresh(monkeypatch, OMP_NUM_THREADS="3") == 3
    for nonsense in ("0", "-2", "many", ""):
        assert 1 <= fresh(monkeypatch, AUTOGRAD_NB_NUM_THREADS=nonsense) <= (os.cpu_count() or 1)


def test_cores_and_quotas_decide(monkeypatch: pytest.MonkeyPatch) -> None:
    files: dict[str, str] = {}
    for n in range(8):  # 4 cores of two processors each
        files[f"/sys/devices/system/cpu/cpu{n}/topology/thread_siblings_list"] = f"{n % 4},{n % 4 + 4}"
    monkeypatch.setattr(config, "_read", lambda path: files.get(path, ""))
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: {0, 1, 2, 4, 5}, raising=False)
    assert fresh(monkeypatch) == 3
    files["/proc/self/cgroup"] = "0::/a/b"
    files["/sys/fs/cgroup/a/b/cpu.max"] = "max 100000"
    assert fresh(monkeypatch) == 3
    files["/sys/fs/cgroup/a/cpu.max"] = "250000 100000"  # of the group above
    assert fresh(monkeypatch) == 2
    files["/sys/fs/cgroup/a/cpu.max"] = "50000 100000"
    assert fresh(monkeypatch) == 1
    files["/proc/self/cgroup"] = "4:memory:/a\n3:cpu,cpuacct:/c"
    files["/sys/fs/cgroup/cpu/c/cpu.cfs_quota_us"] = "200000"
    files["/sys/fs/cgroup/cpu/c/cpu.cfs_period_us"] = "100000"
    assert fresh(monkeypatch) == 2
    files["/sys/fs/cgroup/cpu/c/cpu.cfs_quota_us"] = "-1"
    assert fresh(monkeypatch) == 3


def test_the_modes_of_determinism():
    for mode, number in (("warn", 1), (2, 2), ("default", 0), ("error", 2), (1, 1), (0, 0)):
        torch.set_deterministic_debug_mode(mode)
        assert torch.get_deterministic_debug_mode() == number
        assert torch.are_deterministic_algorithms_enabled() == (number > 0)
        assert torch.is_deterministic_algorithms_warn_only_enabled() == (number == 1)
    with pytest.raises(RuntimeError, match="invalid value of debug_mode"):
        torch.set_deterministic_debug_mode("off")
    for flag in (1, None, "on"):
        with pytest.raises(TypeError, match="argument 'mode' must be bool"):
            torch.use_deterministic_algorithms(flag)
        with pytest.raises(TypeError, match="argument 'warn_only' must be bool"):
            torch.use_deterministic_algorithms(True, warn_only=flag)
    with pytest.raises(TypeError, match="debug_mode must be str or int"):
        torch.set_deterministic_debug_mode(1.0)
    assert torch.get_deterministic_debug_mode() == 0
