"""Profiles of a program: of a ``with`` block, or of some steps of a loop by a schedule.

    with profile(record_shapes=True) as prof:
        model(x).sum().backward()
    print(prof.key_averages().table(sort_by="self_cpu_time_total", row_limit=10))
    prof.export_chrome_trace("trace.json")

Rows named "aten::…" are ops (a pointwise op is one kernel), "family::kernel" hand-written kernels inside them, "…Backward0" nodes
of the backward pass, "Optimizer.step#…" optimizers, "CompiledFunction: …" runs of programs that `compile` made,
"autograd_nb::compile: …" kernels of an op that were compiled at their first use, "autograd_nb::load" those that were found on disk.
"Bytes" is what the kernels read and write. Observing begins with plans being made anew for all kernels, which counts for the ops of
the first step: run one before, under ``schedule(…, warmup=1, …)``, where that matters. The profiled thread is the one that opened
the profile.

Source: https://docs.pytorch.org/docs/stable/profiler.html
"""

from __future__ import annotations

import json
import os
import socket
import time
from collections.abc import Callable, Iterable
from enum import Enum
from typing import Any

from .autograd.profiler import EventList, Recorder, current, record_function
from .errors import keywords_of, refuse_keywords, warn_user
from .optim import optimizer

__path__: list[str] = []  # PyTorch has a module of the same name in it: see import_aliases.py

__all__ = [
    "DeviceType", "ProfilerAction", "ProfilerActivity", "kineto_available", "profile", "record_function", "schedule", "supported_activities",
    "tensorboard_trace_handler",
]  # fmt: skip


class ProfilerActivity(Enum):
    """Kinds of work that may be profiled; here it is the CPU.

    >>> torch.profiler.ProfilerActivity.CPU.name
    'CPU'
    """

    CPU = 0
    XPU = 1
    MTIA = 2
    CUDA = 3
    HPU = 4
    PrivateUse1 = 5


class DeviceType(Enum):
    """Devices of events, of which only the CPU is there.

    >>> torch.profiler.DeviceType.CPU.value
    0
    """

    CPU = 0
    CUDA = 1


class ProfilerAction(Enum):
    """Things that the profiler does in a step.

    >>> torch.profiler.ProfilerAction.WARMUP.name
    'WARMUP'
    """

    NONE = 0
    WARMUP = 1
    RECORD = 2
    RECORD_AND_SAVE = 3


def supported_activities() -> set[ProfilerActivity]:
    """Return the CPU.

    >>> torch.profiler.ProfilerActivity.CPU in torch.profiler.supported_activities()
    True
    """
    return {ProfilerActivity.CPU}


def kineto_available() -> bool:
    """Return False: PyTorch's tracer is not here.

    >>> torch.profiler.kineto_available()
    False
    """
    return False


def schedule(
    *, wait: int, warmup: int, active: int, repeat: int = 0, skip_first: int = 0, skip_first_wait: int = 0
) -> Callable[[int], ProfilerAction]:
    """Return when to profile: of each cycle, skip ``wait`` steps, warm up in ``warmup``, record ``active``; ``repeat`` cycles (0: to the end).

    skip_first: steps before the first cycle. skip_first_wait: whether the first cycle leaves out its wait.

    >>> when = torch.profiler.schedule(wait=1, warmup=1, active=1)
    >>> [when(step).name for step in range(3)]
    ['NONE', 'WARMUP', 'RECORD_AND_SAVE']
    """
    if wait < 0 or warmup < 0 or active <= 0 or repeat < 0 or skip_first < 0:
        raise ValueError(
            f"schedule(): Invalid profiler schedule arguments: wait={wait}, warmup={warmup}, active={active}, repeat={repeat}, "
            f"skip_first={skip_first}; active must be positive, the others not negative"
        )
    if warmup == 0:
        warn_user("Profiler won't be using warmup, this can skew profiler results")

    def action(step: int) -> ProfilerAction:
        if step < skip_first:
            return ProfilerAction.NONE
        step -= skip_first
        if skip_first_wait:
            step += wait
        cycle = wait + warmup + active
        if repeat and step // cycle >= repeat:
            return ProfilerAction.NONE
        at = step % cycle
        if at < wait:
            return ProfilerAction.NONE
        if at < wait + warmup:
            return ProfilerAction.WARMUP
        return ProfilerAction.RECORD if at < cycle - 1 else ProfilerAction.RECORD_AND_SAVE

    return action


_RECORDS = (ProfilerAction.RECORD, ProfilerAction.RECORD_AND_SAVE)


def _always(_: int) -> ProfilerAction:
    return ProfilerAction.RECORD


def tensorboard_trace_handler(dir_name: str, worker_name: str | None = None, use_gzip: bool = False) -> Callable[[Any], None]:
    """Return what ``on_trace_ready`` takes and what writes each trace to a file of its own in ``dir_name``."""

    def handler(prof: Any) -> None:
        os.makedirs(dir_name, exist_ok=True)
        worker = worker_name or f"{socket.gethostname()}_{os.getpid()}"
        prof.export_chrome_trace(os.path.join(dir_name, f"{worker}.{time.time_ns()}.pt.trace.json" + (".gz" if use_gzip else "")))

    return handler


#: options of PyTorch's two profilers that say nothing here
_ACCEPTED = (
    "enabled", "use_device", "use_kineto", "use_cpu", "experimental_config", "execution_trace_observer", "acc_events",
    "custom_trace_id_callback", "post_processing_timeout_s", "activity_filters",
)  # fmt: skip


class profile:
    """Profile what this thread runs between ``start()`` and ``stop()``, or in a ``with`` block.

    Args:
        activities: `ProfilerActivity`; only the CPU is there. schedule: a function step -> `ProfilerAction`, see `schedule`; then
            each step must end with ``prof.step()``. on_trace_ready: called with the profile when a cycle is recorded, or at the
            end. record_shapes: keep operands' shapes. with_stack: keep the user's lines. Bytes are always counted; the other
            options are accepted.

    Errors: RuntimeError when the thread is already profiled, or results are asked for before there are any.

    >>> with torch.profiler.profile() as p: _ = torch.ones(2) * 3
    ...
    >>> "aten::mul" in [event.key for event in p.key_averages()]
    True
    """

    activities: set[ProfilerActivity]

    record_shapes: bool
    profile_memory: bool
    with_stack: bool
    on_trace_ready: Callable[..., Any] | None
    record_steps: bool
    current_action: ProfilerAction
    schedule: Callable[[int], ProfilerAction]
    step_num: int

    def __init__(
        self, *, activities: Iterable[ProfilerActivity] | None = None, schedule: Callable[[int], ProfilerAction] | None = None,
        on_trace_ready: Callable[..., Any] | None = None, record_shapes: bool = False, profile_memory: bool = False, with_stack: bool = False,
        with_flops: bool = False, with_modules: bool = False, use_cuda: bool | None = None, **options: Any,
    ):  # fmt: skip
        refuse_keywords("profile.__init__", options, (*keywords_of(profile.__init__), *_ACCEPTED))
        self.activities = supported_activities() if activities is None else set(activities)
        for a in self.activities:
            if not isinstance(a, ProfilerActivity):
                raise TypeError(f"profile(): expected ProfilerActivity in activities, got {type(a).__name__}")
            if a is not ProfilerActivity.CPU:
                warn_user(f"{a.name} is not available, disabling {a.name} profiling")
        if ProfilerActivity.CPU not in self.activities:
            raise ValueError("profile(): No valid profiler activities found; give activities=[ProfilerActivity.CPU]")
        self.record_shapes, self.profile_memory, self.with_stack = record_shapes, profile_memory, with_stack
        self.schedule, self.on_trace_ready = schedule or _always, on_trace_ready
        self.record_steps = schedule is not None
        self.step_num = 0
        self.current_action = self.schedule(0)
        self._metadata: dict[str, Any] = {}
        self._recorder: Recorder | None = None
        self._step: Any = None
        self._hooks: list[Any] = []
        self._events: EventList | None = None

    # ---- running
    def __enter__(self) -> profile:
        self.start()
        return self

    def __exit__(self, *error: Any) -> None:
        self.stop()

    def start(self) -> None:
        """Begin."""
        self._enter_step()

    def stop(self) -> None:
        """End; a cycle that is being recorded is handed to ``on_trace_ready``."""
        if self.current_action in _RECORDS and self._recorder is not None:
            self._save()
        self._close()

    def step(self) -> None:
        """Begin the next step."""
        before = self.current_action
        if self._step is not None and self._recorder is not None:
            self._recorder.finish(self._step)
        self._step = None
        self.step_num += 1
        self.current_action = self.schedule(self.step_num)
        if before is ProfilerAction.RECORD_AND_SAVE and self._recorder is not None:
            self._save()
        elif before is ProfilerAction.WARMUP and self._recorder is not None:
            self._recorder.take()
        if self.current_action is ProfilerAction.NONE:
            self._close()
        else:
            self._enter_step()

    def _enter_step(self) -> None:
        """Observe, from the first step of warming up on: observing begins with making new plans for all kernels."""
        if self.current_action is ProfilerAction.NONE:
            return
        if self._recorder is None:
            self._open()
        if self.record_steps and self._recorder is not None:
            self._step = self._recorder.begin(f"ProfilerStep#{self.step_num}", "user_annotation")

    def _open(self) -> None:
        recorder = Recorder(self.record_shapes, self.with_stack)
        recorder.start()
        self._recorder = recorder
        steps: list[Any] = []

        def before(opt: Any, args: Any, kwargs: Any) -> None:
            if current() is recorder:
                steps.append(recorder.begin(f"Optimizer.step#{type(opt).__name__}.step", "user_annotation"))

        def after(opt: Any, args: Any, kwargs: Any) -> None:
            if current() is recorder and steps:
                recorder.finish(steps.pop())

        self._hooks = [optimizer.register_optimizer_step_pre_hook(before), optimizer.register_optimizer_step_post_hook(after)]

    def _save(self) -> None:
        assert self._recorder is not None
        self._events = self._recorder.take()
        self._events.metadata = self._metadata
        if self.on_trace_ready is not None:
            self.on_trace_ready(self)

    def _close(self) -> None:
        recorder, self._recorder, self._step = self._recorder, None, None
        for hook in self._hooks:
            hook.remove()
        self._hooks = []
        if recorder is not None:
            recorder.stop()

    # ---- results
    def events(self) -> EventList:
        """Return all events of the last cycle that was recorded."""
        if self._events is None:
            raise RuntimeError("profile: nothing has been recorded yet; ask after the with block, or in on_trace_ready")
        return self._events

    def key_averages(self, group_by_input_shape: bool = False, group_by_stack_n: int = 0, group_by_overload_name: bool = False) -> EventList:
        """Return one row for each name (with ``group_by_input_shape`` and operands' shapes; with ``group_by_stack_n`` and user's line)."""
        return self.events().key_averages(group_by_input_shape, group_by_stack_n)

    def _repr_html_(self) -> str:
        return self.key_averages()._repr_html_()

    def export_chrome_trace(self, path: str) -> None:
        """Write the events for chrome://tracing or https://ui.perfetto.dev (compressed if ``path`` ends in .gz)."""
        self.events().export_chrome_trace(path)

    def export_stacks(self, path: str, metric: str = "self_cpu_time_total") -> None:
        """Write the stacks of events for flame graph tools."""
        self.events().export_stacks(path, metric)

    def add_metadata(self, key: str, value: str) -> None:
        """Put a text into the trace."""
        self._metadata[key] = value

    def add_metadata_json(self, key: str, value: str) -> None:
        """Put a JSON value into the trace."""
        self._metadata[key] = json.loads(value)

    preset_metadata_json = add_metadata_json
