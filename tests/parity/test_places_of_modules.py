"""What the files of nn.modules offer to ``import *``: PyTorch's classes; several of PyTorch's files are one here, which offers all of theirs."""

from __future__ import annotations

from importlib import import_module

import pytest

torch = pytest.importorskip("torch")

from torch.nn import modules  # noqa: E402

ONE_FILE = {"batchnorm", "instancenorm", "normalization", "flatten", "linear", "channelshuffle", "fold", "padding", "pixelshuffle", "upsampling"}
PLACES = ("activation", "adaptive", "container", "conv", "distance", "dropout", "loss", "pooling", "rnn", "sparse", "transformer", *sorted(ONE_FILE))


@pytest.mark.parametrize("place", PLACES)
def test_offered(place):
    mine, theirs = import_module(f"autograd_nb.nn.modules.{place}"), set(getattr(modules, place).__all__)
    assert set(mine.__all__) == theirs or (place in ONE_FILE and theirs < set(mine.__all__))
    assert all(isinstance(getattr(mine, name), type) for name in mine.__all__)
