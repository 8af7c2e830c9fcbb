"""Hyperparameters as TensorBoard's table of them reads them: what an experiment has, with what a run began, and that it has ended."""

from __future__ import annotations

import time
from typing import Any

from tensorboard.plugins.hparams import api_pb2, metadata
from tensorboard.plugins.hparams.plugin_data_pb2 import HParamsPluginData, SessionEndInfo, SessionStartInfo

_KINDS = {bool: ("bool_value", api_pb2.DATA_TYPE_BOOL), str: ("string_value", api_pb2.DATA_TYPE_STRING), float: ("number_value", api_pb2.DATA_TYPE_FLOAT64)}


def _kind(name: str, value: Any) -> tuple[str, Any]:
    for kind, (field, data_type) in _KINDS.items():
        if isinstance(value, kind) or (kind is float and isinstance(value, int)):
            return field, data_type
    raise ValueError(f"add_hparams(): {name!r} must be a number, a str or a bool, not {value!r} ({type(value).__name__})")


def summaries(values: dict[str, Any], metrics: list[str], domains: dict[str, list[Any]]) -> dict[str, Any]:
    """Return tag -> what tells of the value under it, for one run with these hyperparameters, which has ended with these metrics."""
    for name in domains:
        if name not in values:
            raise ValueError(f"add_hparams(): hparam_domain_discrete names {name!r}, which is none of {', '.join(values)}")
    begun, infos = SessionStartInfo(start_time_secs=time.time()), []
    for name, value in values.items():
        if value is None:
            continue
        field, data_type = _kind(name, value)
        setattr(begun.hparams[name], field, value)
        info = api_pb2.HParamInfo(name=name, type=data_type)
        for possible in domains.get(name, ()):
            if _kind(name, possible)[0] != field:
                raise ValueError(f"add_hparams(): hparam_domain_discrete[{name!r}] has {possible!r}, and {name} is {value!r}")
            setattr(info.domain_discrete.values.add(), field, possible)
        infos.append(info)
    results = [api_pb2.MetricInfo(name=api_pb2.MetricName(tag=tag)) for tag in metrics]
    experiment = api_pb2.Experiment(hparam_infos=infos, metric_infos=results, time_created_secs=time.time())
    ended = SessionEndInfo(status=api_pb2.STATUS_SUCCESS, end_time_secs=time.time())
    data = {
        metadata.EXPERIMENT_TAG: HParamsPluginData(experiment=experiment),
        metadata.SESSION_START_INFO_TAG: HParamsPluginData(session_start_info=begun),
        metadata.SESSION_END_INFO_TAG: HParamsPluginData(session_end_info=ended),
    }
    return {tag: metadata.create_summary_metadata(content) for tag, content in data.items()}
