"""Sizes that are ever new: graphs, texts, images and sets of points, none as large as the one before."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np

from .common import Step, integers, normal, training

COUNT = 600  #: of examples, which come again after so many


def each(make: Callable[[int], Any]) -> Callable[[], Any]:
    """Return what gives one example after the other."""
    return itertools.cycle([make(k) for k in range(COUNT)]).__next__


def between(low: int, high: int, seed: int) -> int:
    """An integer from ``low`` up to ``high``."""
    return int(np.random.default_rng(1000 + seed).integers(low, high))


def graphs(lib: Any) -> Step:
    """Two layers of graph convolution on graphs of 50 to 400 nodes."""
    nn, F = lib.nn, lib.nn.functional

    def graph(k: int) -> tuple[Any, ...]:
        n, e = between(50, 400, k), between(200, 1500, k)
        return integers(lib, n, e, seed=k), integers(lib, n, e, seed=k + 1), normal(lib, n, 16, seed=k), integers(lib, 4, n, seed=k)

    following = each(graph)
    first, second = nn.Linear(16, 32), nn.Linear(32, 4)

    def loss() -> Any:
        source, target, x, y = following()
        n = x.shape[0]
        degree = lib.zeros(n).index_add(0, target, lib.ones(len(target))).clamp(min=1)

        def gathered(h: Any) -> Any:
            return lib.zeros(n, h.shape[1]).index_add(0, target, h[source]) / degree[:, None]

        return F.cross_entropy(gathered(second(F.relu(gathered(first(x))))), y)

    return training(loss, lib.optim.Adam([*first.parameters(), *second.parameters()], 1e-2))


def texts(lib: Any) -> Step:
    """A GRU on batches of texts of 5 to 80 words."""
    nn, F = lib.nn, lib.nn.functional
    following = each(lambda k: integers(lib, 500, between(4, 33, k), between(5, 80, k + 1), seed=k))
    embedding, gru, head = nn.Embedding(500, 32), nn.GRU(32, 48, batch_first=True), nn.Linear(48, 5)

    def loss() -> Any:
        x = following()
        return F.cross_entropy(head(gru(embedding(x))[0].mean(1)), x[:, 0] % 5)

    return training(loss, lib.optim.Adam([*embedding.parameters(), *gru.parameters(), *head.parameters()]))


def images(lib: Any) -> Step:
    """Convolutions of images of 16 to 64 pixels a side."""
    nn, F = lib.nn, lib.nn.functional
    following = each(lambda k: normal(lib, 2, 3, between(16, 64, k), between(16, 64, k + 1), seed=k))
    net = nn.Sequential(
        nn.Conv2d(3, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(8, 8, 3, padding=1), nn.ReLU(),
        nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(8, 2),
    )  # fmt: skip
    y = lib.tensor([0, 1])
    return training(lambda: F.cross_entropy(net(following()), y), lib.optim.SGD(net.parameters(), 0.01))


def attended(lib: Any) -> Step:
    """A layer of a transformer on batches of 5 to 80 tokens."""
    following = each(lambda k: normal(lib, between(4, 33, k), between(5, 80, k + 1), 32, seed=k))
    layer = lib.nn.TransformerEncoderLayer(32, 4, 64, batch_first=True, dropout=0.0)
    return training(lambda: layer(following()).pow(2).mean(), lib.optim.Adam(layer.parameters()))


def points(lib: Any) -> Step:
    """Nearest neighbours among 10 to 200 points, and the largest of their features."""
    nn, F = lib.nn, lib.nn.functional
    following = each(lambda k: normal(lib, between(10, 200, k), 3, seed=k))
    features, head = nn.Linear(3, 32), nn.Linear(32, 1)

    def loss() -> Any:
        x = following()
        near = lib.cdist(x, x).topk(4, largest=False).indices
        return (head(F.relu(features(x))[near].max(1).values).mean() - 1) ** 2

    return training(loss, lib.optim.Adam([*features.parameters(), *head.parameters()]))
