"""Nested dictionaries of tensors (tensordict): indexing, stacking, arithmetic, modules that read and write keys, functional calls."""

import torch
from tensordict import TensorDict
from tensordict.nn import TensorDictModule, TensorDictSequential

from ..helpers import data, fill, numbers, train


def run():
    batch = TensorDict({"seen": data(6, 4), "inner": TensorDict({"a": data(6, 2, seed=1)}, [6])}, batch_size=[6])
    halves = torch.stack([batch[:3], batch[3:]], 0)
    result = {
        "stacked": [*halves.shape, *numbers(halves["inner", "a"], halves["seen"])], "cat": numbers(torch.cat([batch, batch], 0)["seen"]),
        "sums": numbers((batch * 2 + 1)["inner", "a"], batch.apply(torch.tanh)["seen"]), "rows": numbers(batch[batch["seen"][:, 0] > 0]["inner", "a"]),
        "shapes": [*batch.reshape(2, 3)["seen"].shape, *batch.unsqueeze(0)["inner", "a"].shape, *batch.expand(2, 6)["seen"].shape],
        "keys": [len(list(batch.keys(True, True))), len(batch.flatten_keys(".").keys())], "split": [len(p) for p in batch.split(4)],
    }
    net = TensorDictSequential(
        TensorDictModule(fill(torch.nn.Linear(4, 3)), in_keys=["seen"], out_keys=["hidden"]),
        TensorDictModule(lambda h, a: (h.sum(-1, keepdim=True) * a).sum(-1), in_keys=["hidden", ("inner", "a")], out_keys=["value"]),
    )
    result["losses"] = train(net, lambda: (net(batch.clone())["value"] - 1).square().mean())
    parameters = TensorDict.from_module(net)
    with (parameters * 2).to_module(net), torch.no_grad():
        result["doubled"] = numbers(net(batch.clone())["value"])
    detached = batch.detach().to(torch.float64)
    return {**result, "double": numbers(detached["seen"]), "leaves": numbers(*detached.values(True, True))}
