"""Uneven inputs: a rank whose data end first answers the others' collectives until theirs end too.

Source: https://docs.pytorch.org/docs/stable/distributed.algorithms.join.html
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from types import TracebackType
from typing import Any, NamedTuple

import numpy as np

from ..errors import warn_user
from ..tensor import Tensor, wrap
from .collectives import all_reduce
from .group import get_rank
from .work import Work

__path__: list[str] = []

#: after so many shadowed iterations a warning says that the others have far more data
MANY = 1000


class JoinHook:
    """The part that a rank takes for one `Joinable` after its data have ended; both methods do nothing unless they are overridden."""

    def main_hook(self) -> None:
        """Run the collectives of one iteration of those that have data: called once for each."""

    def post_hook(self, is_last_joiner: bool) -> None:
        """Run what follows when the data of all have ended; ``is_last_joiner``: this rank was among the last."""


class _JoinConfig(NamedTuple):
    """The options of a join context."""

    enable: bool
    throw_on_early_termination: bool
    is_first_joinable: bool

    @staticmethod
    def construct_disabled_join_config() -> _JoinConfig:
        """Return that of what is in no join context."""
        return _JoinConfig(False, False, False)


class Joinable(ABC):
    """An object that communicates in each iteration and can be shadowed: it calls `Join.notify_join_context` before its first collective in each."""

    def __init__(self) -> None:
        super().__init__()
        self._join_config = _JoinConfig.construct_disabled_join_config()

    @abstractmethod
    def join_hook(self, **kwargs: Any) -> JoinHook:
        """Return what shadows this."""

    @property
    @abstractmethod
    def join_device(self) -> Any:
        """Return the device of its collectives."""

    @property
    @abstractmethod
    def join_process_group(self) -> Any:
        """Return the group of its collectives."""


def _counted(value: int) -> Tensor:
    return wrap(np.array([value], np.int64))


class Join:
    """A ``with`` block around a loop over data of which ranks have different amounts.

    joinables: what communicates inside, such as `DistributedDataParallel`. enable: False makes the block do nothing.
    throw_on_early_termination: raise RuntimeError on all ranks when the data of the first end, in place of shadowing.
    kwargs: what each joinable's ``join_hook`` is given. ValueError for no joinables, or those of different groups.
    """

    def __init__(self, joinables: list[Joinable], enable: bool = True, throw_on_early_termination: bool = False, **kwargs: Any):
        if not joinables:
            raise ValueError("The join context manager requires at least one joinable")
        groups = {id(j.join_process_group) for j in joinables}
        if len(groups) > 1:
            raise ValueError("Using join context manager with multiple process groups")
        self._joinables, self._enable, self._throw = list(joinables), enable, throw_on_early_termination
        self._hooks = [j.join_hook(**kwargs) for j in joinables]
        self._group = joinables[0].join_process_group
        for i, joinable in enumerate(joinables):
            joinable._join_config = _JoinConfig(enable, throw_on_early_termination, i == 0)

    def __enter__(self) -> None:
        """Begin: the iterations inside tell the others that this rank has data."""

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        """Run the others' collectives until their data end too. RuntimeError where the end of one's data was to raise."""
        if not self._enable or kind is not None:
            return
        last, rounds = True, 0
        while True:
            active = _counted(0)
            all_reduce(active, group=self._group)
            if active.item() == 0:
                break
            if self._throw:
                self._end_all()
            last, rounds = False, rounds + 1
            if rounds == MANY:
                warn_user(
                    f"Detected uneven input skew of greater than {MANY}. This means that rank {get_rank()} has at least {MANY} fewer inputs than other "
                    "currently-active ranks. This level of skew could lead to performance degradation during training.",
                )
            for hook in self._hooks:
                hook.main_hook()
        for hook in self._hooks:
            hook.post_hook(last)
        for joinable in self._joinables:
            joinable._join_config = _JoinConfig.construct_disabled_join_config()

    def _end_all(self) -> None:
        all_reduce(_counted(1), group=self._group)
        raise RuntimeError(f"Rank {get_rank(self._group)} exhausted all inputs.")

    @staticmethod
    def notify_join_context(joinable: Joinable) -> Work | None:
        """Tell those whose data have ended that this rank begins an iteration; return the work of it, None outside of join contexts.

        The work's result is a list of one tensor, the number of ranks that have data. RuntimeError where the data of some rank have ended and
        that was to raise.
        """
        config = joinable._join_config
        if not (config.enable and config.is_first_joinable):
            return None
        group = joinable.join_process_group
        work = all_reduce(_counted(1), group=group, async_op=True)
        if config.throw_on_early_termination:
            ended = _counted(0)
            assert work is not None
            work.wait()
            if work.result()[0].item() < group.size():
                all_reduce(ended, group=group)
                raise RuntimeError("Detected at least one rank that exhausted inputs. Throwing across all ranks.")
        return work
