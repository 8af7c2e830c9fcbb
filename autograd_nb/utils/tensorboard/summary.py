"""What a `SummaryWriter` writes, for programs that make it themselves, as PyTorch Lightning's logger does.

Source: https://docs.pytorch.org/docs/stable/tensorboard.html
"""

from __future__ import annotations

from typing import Any

from .writer import hyperparameters, summary_pb2

__all__ = ["hparams"]


def hparams(hparam_dict: dict[str, Any], metric_dict: dict[str, Any], hparam_domain_discrete: dict[str, list[Any]] | None = None) -> tuple[Any, Any, Any]:
    """Return three summaries of a run: the table of hyperparameters, with what the run began, and that it has ended.

    Errors: TypeError for arguments that are no dicts; ValueError for hyperparameters that are no number, str, bool or one of their domain.

    >>> [s.value[0].tag for s in torch.utils.tensorboard.summary.hparams({"lr": 0.1}, {"loss": 1.0})]
    ['_hparams_/experiment', '_hparams_/session_start_info', '_hparams_/session_end_info']
    """
    told = hyperparameters(hparam_dict, metric_dict, hparam_domain_discrete)
    experiment, begun, ended = (summary_pb2.Summary(value=[summary_pb2.Summary.Value(tag=tag, metadata=data)]) for tag, data in told.items())
    return experiment, begun, ended
