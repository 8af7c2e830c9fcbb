"""Switches of the library."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

determinism_changed: list[Callable[[], None]] = []  #: called when `use_deterministic_algorithms` was
threads_changed: list[Callable[[int], None]] = []  #: called with the new number of threads
unusual: set[str] = set()  #: what is on in any thread, or was, that calls which were written ahead must ask about; mostly nothing


def note_unusual(what: str, on: bool) -> None:
    """Take note that something is, or is no longer, among what is `unusual`."""
    (unusual.add if on else unusual.discard)(what)


class _Settings:
    """The settings; they are one object, so that every module sees a change."""

    deterministic: bool
    matmul_precision: str
    warn_only: bool
    warn_always: bool

    reuse: bool  #: whether nodes that saved nothing may be run by any number of passes

    __slots__ = ("deterministic", "matmul_precision", "reuse", "threads", "warn_always", "warn_only")

    threads: int

    def __init__(self) -> None:
        self.deterministic = self.warn_only = self.warn_always = self.reuse = False
        self.matmul_precision = "highest"

    def __setattr__(self, name: str, value: Any) -> None:
        changed = name == "threads" and self.threads != value
        object.__setattr__(self, name, value)
        if changed:
            for tell in threads_changed:
                tell(value)

    def __getattr__(self, name: str) -> int:
        if name != "threads":
            raise AttributeError(name)
        object.__setattr__(self, name, _default_threads())  # when it is first asked for: that reads a few files
        return self.threads


def _default_threads() -> int:
    """Return what the environment says (ours, or the one that PyTorch reads), else the cores that this process may use."""
    for name in ("AUTOGRAD_NB_NUM_THREADS", "OMP_NUM_THREADS"):
        given = os.environ.get(name, "")
        if given.isdigit() and int(given) > 0:
            return int(given)
    return max(1, min(_cores(), _quota()))


def _processors() -> set[int]:
    """Return the processors that the process may run on."""
    try:
        return os.sched_getaffinity(0)
    except AttributeError:  # not on every system
        return set(range(os.cpu_count() or 1))


def _cores() -> int:
    """Return how many physical cores there are among the processors that the process may run on."""
    return len({_read(f"/sys/devices/system/cpu/cpu{n}/topology/thread_siblings_list") or str(n) for n in _processors()})


def allowance() -> tuple[set[int], str, int]:
    """Return the processors that the process may run on, the name of its control group, and how many processors at once that grants it.

    So processes of one machine find out whether they have a processor each.
    """
    return _processors(), _read("/proc/self/cgroup"), _quota()


def _quota(root: str = "/sys/fs/cgroup", groups: str = "/proc/self/cgroup") -> int:
    """Return how many whole processors the control groups of the process grant it; many without a limit."""
    least = float(1 << 20)
    for line in _read(groups).splitlines():
        _, controllers, path = line.split(":", 2)
        if controllers and "cpu" not in controllers.split(","):
            continue
        parts = [p for p in path.split("/") if p]
        for depth in range(len(parts), -1, -1):  # every group above limits too
            if controllers:  # the first version of control groups
                folder = "/".join([root, "cpu", *parts[:depth]])
                given = [_read(f"{folder}/cpu.cfs_quota_us"), _read(f"{folder}/cpu.cfs_period_us")]
            else:
                given = _read("/".join([root, *parts[:depth], "cpu.max"])).split()
            if len(given) == 2 and all(v.isdigit() and int(v) for v in given):  # no limit is spelled "max" or -1
                least = min(least, int(given[0]) / int(given[1]))
    return max(1, int(least))


def _read(path: str) -> str:
    try:
        with open(path) as f:
            return f.read().strip()
    except OSError:
        return ""


settings: _Settings = _Settings()


def get_num_threads() -> int:
    """Return the most threads that one kernel is given.

    By default the cores that the process may use, or what AUTOGRAD_NB_NUM_THREADS or else OMP_NUM_THREADS says.

    >>> torch.get_num_threads() > 0
    True
    """
    return settings.threads


def set_num_threads(num: int) -> None:
    """Let one kernel have at most ``num`` threads; results are the same for any number. RuntimeError below 1."""
    _check_threads("set_num_threads", num)
    settings.threads = num


def _check_threads(name: str, num: Any) -> None:
    if not isinstance(num, int) or isinstance(num, bool):
        raise RuntimeError(f"{name} expects an int, but got {type(num).__name__}")
    if num < 1:
        raise RuntimeError(f"{name} expects a positive integer (num={num})")
    if num >= 1 << 63:
        raise ValueError(f"Overflow when unpacking long long: {name} takes no number as large (num={num})")


def get_num_interop_threads() -> int:
    """Return 1: ops run one after the other.

    >>> torch.get_num_interop_threads() > 0
    True
    """
    return 1


def set_num_interop_threads(num: int) -> None:
    """Do nothing: ops run one after the other. RuntimeError below 1."""
    _check_threads("set_num_interop_threads", num)


def use_deterministic_algorithms(mode: bool, *, warn_only: bool = False) -> None:
    """Fill memory that is not written yet (`empty` and its like, what `resize_` adds) with nan, the largest integer or True.

    Every kernel gives the same bits each time anyway. TypeError for a flag that is no bool.

    >>> torch.use_deterministic_algorithms(True)
    >>> torch.empty(2)
    tensor([nan, nan])
    >>> torch.use_deterministic_algorithms(False)
    """
    for name, flag in (("mode", mode), ("warn_only", warn_only)):
        if flag.__class__ is not bool:
            raise TypeError(f"use_deterministic_algorithms(): argument '{name}' must be bool, not {type(flag).__name__} ({name}={flag!r})")
    settings.deterministic, settings.warn_only = mode, warn_only
    for changed in determinism_changed:
        changed()


def are_deterministic_algorithms_enabled() -> bool:
    """Return what `use_deterministic_algorithms` was last given."""
    return settings.deterministic


def is_deterministic_algorithms_warn_only_enabled() -> bool:
    """Return whether `use_deterministic_algorithms` was last asked for warnings only."""
    return settings.warn_only


_DEBUG_MODES = ("default", "warn", "error")


def set_deterministic_debug_mode(debug_mode: int | str) -> None:
    """Call `use_deterministic_algorithms` by name: "default" (0) is off, "warn" (1) warns only, "error" (2) is on."""
    if not isinstance(debug_mode, (int, str)):
        raise TypeError(f"debug_mode must be str or int, but got {type(debug_mode).__name__} (debug_mode={debug_mode!r})")
    if debug_mode not in (*_DEBUG_MODES, 0, 1, 2):
        raise RuntimeError(f"invalid value of debug_mode, expected 'default', 'warn', 'error', 0, 1 or 2, but got {debug_mode}")
    mode = _DEBUG_MODES.index(debug_mode) if isinstance(debug_mode, str) else debug_mode
    use_deterministic_algorithms(mode > 0, warn_only=mode == 1)


def get_deterministic_debug_mode() -> int:
    """Return what `set_deterministic_debug_mode` was last given, as a number."""
    return settings.deterministic * (2 - settings.warn_only)


def set_warn_always(b: bool, /) -> None:
    """Give warnings that a process sees once every time (Python's filters of warnings still choose what is shown).

    >>> torch.set_warn_always(False)
    >>> torch.is_warn_always_enabled()
    False
    """
    if not isinstance(b, bool):
        raise RuntimeError(f"setWarnOnlyOnce expects a bool, but got {type(b).__name__} (set_warn_always())")
    settings.warn_always = b


def is_warn_always_enabled() -> bool:
    """Return what `set_warn_always` was last given."""
    return settings.warn_always


def set_float32_matmul_precision(precision: str) -> None:
    """Do nothing: it is accepted for programs that set it, and products are always computed in full precision."""
    if precision not in ("highest", "high", "medium"):
        raise RuntimeError(f"{precision} is not one of 'highest', 'high', or 'medium'")
    settings.matmul_precision = precision


def get_float32_matmul_precision() -> str:
    """Return what `set_float32_matmul_precision` was last given."""
    return settings.matmul_precision


def set_flush_denormal(mode: bool) -> bool:
    """Return False: denormal numbers stay as they are, which PyTorch's answer says where a processor cannot flush them.

    >>> torch.set_flush_denormal(True)
    False
    """
    return False
