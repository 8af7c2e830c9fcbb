"""Weights in safetensors files: saved, loaded, read in slices, shared tensors."""

import tempfile
from pathlib import Path

import safetensors
import torch
from safetensors.torch import load, load_file, load_model, save, save_file, save_model

from ..helpers import data, fill, numbers


def run():
    tensors = {"a": data(3, 4), "b": data(5).double(), "c": torch.arange(6).view(2, 3), "half": data(4).half(), "brain": data(4).bfloat16(),
               "flag": torch.tensor([True, False])}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "x.safetensors"
        save_file(tensors, path, metadata={"format": "pt"})
        back = load_file(path)
        same = [float(torch.equal(back[k], v) and back[k].dtype == v.dtype) for k, v in tensors.items()]
        with safetensors.safe_open(path, framework="pt", device="cpu") as file:
            part = file.get_slice("a")[1:, :2]
            keys, text = sorted(file.keys()), file.metadata()["format"]
        net = fill(torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.Linear(4, 4)))
        net[1].weight = net[0].weight
        save_model(net, str(path))
        other = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.Linear(4, 4))
        other[1].weight = other[0].weight
        missing, unexpected = load_model(other, str(path))
    return {"same": same, "part": numbers(part), "net": numbers(other(data(2, 4))), "text": [len(keys), len(text), len(missing), len(unexpected)],
            "bytes": numbers(load(save(tensors))["b"])}
