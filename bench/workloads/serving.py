"""Trained networks answer: nothing is recorded."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .common import Step, integers, normal


def answering(lib: Any, compute: Callable[[], Any]) -> Step:
    """The step that computes without a graph."""

    def step() -> Any:
        with lib.no_grad():
            return compute()

    return step


def cnn_one_image(lib: Any) -> Step:
    """A small convolutional network in eval mode, one image at a time."""
    nn = lib.nn
    net = nn.Sequential(
        nn.Conv2d(3, 16, 3, padding=1), nn.BatchNorm2d(16), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(16, 32, 3, padding=1), nn.BatchNorm2d(32),
        nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(32, 10),
    ).eval()  # fmt: skip
    x = normal(lib, 1, 3, 32, 32)
    return answering(lib, lambda: net(x).argmax(1))


def encoder_one_text(lib: Any) -> Step:
    """Two layers of a transformer on one text of 40 tokens, some of them padding."""
    nn = lib.nn
    layer = nn.TransformerEncoderLayer(64, 4, 128, batch_first=True)
    net, embedding = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False).eval(), nn.Embedding(500, 64)
    x, padding = integers(lib, 500, 1, 40), lib.zeros(1, 40, dtype=lib.bool)
    padding[:, 30:] = True
    return answering(lib, lambda: net(embedding(x), src_key_padding_mask=padding).mean(1))


def lstm_word_by_word(lib: Any) -> Step:
    """An LSTM is given 30 words one by one, and keeps its state."""
    nn = lib.nn
    embedding, lstm, head = nn.Embedding(100, 32), nn.LSTM(32, 64), nn.Linear(64, 100)
    words = integers(lib, 100, 30)

    def spoken() -> Any:
        state, out = None, None
        for word in words:
            y, state = lstm(embedding(word).view(1, 1, -1), state)
            out = head(y[0, 0]).softmax(0)
        return out

    return answering(lib, spoken)


def cached_decoding(lib: Any) -> Step:
    """Twenty tokens of a decoder with one head, whose keys and values are kept by cat."""
    nn, F = lib.nn, lib.nn.functional
    embedding, q, kv, head = nn.Embedding(200, 48), nn.Linear(48, 48), nn.Linear(48, 96), nn.Linear(48, 200)

    def generated() -> Any:
        token, keys, values, found = lib.zeros(1, dtype=lib.long), None, None, []
        for _ in range(20):
            x = embedding(token)
            k, v = kv(x).chunk(2, -1)
            keys, values = (k, v) if keys is None else (lib.cat([keys, k]), lib.cat([values, v]))
            y = F.scaled_dot_product_attention(q(x)[None], keys[None], values[None])[0]
            token = head(x + y).argmax(-1)
            found.append(token)
        return lib.cat(found)

    return answering(lib, generated)


def mlp_one_row(lib: Any) -> Step:
    """Three layers on one row, and its class as a number of Python."""
    nn = lib.nn
    net = nn.Sequential(nn.Linear(20, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 5)).eval()
    x = normal(lib, 1, 20)
    return answering(lib, lambda: net(x).softmax(1).max().item())


def detection_heads(lib: Any) -> Step:
    """Boxes of anchors are decoded, sorted by score, and those that overlap are suppressed."""
    scores, deltas, anchors = normal(lib, 300).sigmoid(), normal(lib, 300, 4, seed=1) * 0.1, normal(lib, 300, 4, seed=2).abs() + 0.1

    def found() -> Any:
        centre, size = anchors[:, :2] + deltas[:, :2] * anchors[:, 2:], anchors[:, 2:] * deltas[:, 2:].exp()
        boxes = lib.cat([centre - size / 2, centre + size / 2], 1)
        top, order = scores.topk(50)
        boxes = boxes[order]
        low = lib.maximum(boxes[:, None, :2], boxes[None, :, :2])
        high = lib.minimum(boxes[:, None, 2:], boxes[None, :, 2:])
        inside = (high - low).clamp(min=0).prod(2)
        area = (boxes[:, 2:] - boxes[:, :2]).prod(1)
        overlap = inside / (area[:, None] + area[None] - inside)
        kept = (overlap.triu(1) > 0.5).sum(0) == 0
        return boxes[kept], top[kept]

    return answering(lib, found)


def accuracy(lib: Any) -> Step:
    """Logits of 1,000 rows are scored: accuracy, the five best, a table of confusion, the mean confidence."""
    logits, y = normal(lib, 1000, 10), integers(lib, 10, 1000)

    def scored() -> Any:
        p = logits.softmax(1)
        best = p.argmax(1)
        table = lib.bincount(y * 10 + best, minlength=100).view(10, 10)
        five = (logits.topk(5, 1).indices == y[:, None]).any(1).float().mean()
        return (best == y).float().mean().item(), five.item(), table, p.max(1).values.mean().item()

    return answering(lib, scored)


def beam_search(lib: Any) -> Step:
    """Beams of four through a recurrent cell, 12 steps."""
    nn, F = lib.nn, lib.nn.functional
    embedding, cell, head = nn.Embedding(50, 32), nn.GRUCell(32, 32), nn.Linear(32, 50)

    def best() -> Any:
        h, scores, words = lib.zeros(4, 32), lib.zeros(4), lib.zeros(4, 1, dtype=lib.long)
        for _ in range(12):
            h = cell(embedding(words[:, -1]), h)
            total = scores[:, None] + F.log_softmax(head(h), 1)
            scores, at = total.view(-1).topk(4)
            beam = at // 50
            words, h = lib.cat([words[beam], (at % 50)[:, None]], 1), h[beam]
        return words[0]

    return answering(lib, best)


def kmeans(lib: Any) -> Step:
    """Ten rounds of k-means on 500 points."""
    x = normal(lib, 500, 8)

    def centres() -> Any:
        c = x[:10].clone()
        for _ in range(10):
            near = lib.cdist(x, c).argmin(1)
            total = lib.zeros(10, 8).index_add_(0, near, x)
            count = lib.bincount(near, minlength=10).clamp(min=1)
            c = total / count[:, None]
        return c

    return answering(lib, centres)


def sobel(lib: Any) -> Step:
    """Edges of an image of 256 × 256, blurred first."""
    F = lib.nn.functional
    x = normal(lib, 1, 1, 256, 256)
    blur = lib.full((1, 1, 5, 5), 1 / 25)
    gx = lib.tensor([[[[-1.0, 0, 1], [-2, 0, 2], [-1, 0, 1]]]])

    def edges() -> Any:
        y = F.conv2d(F.pad(x, (2, 2, 2, 2), mode="reflect"), blur)
        dx, dy = F.conv2d(y, gx, padding=1), F.conv2d(y, gx.transpose(2, 3), padding=1)
        return (dx**2 + dy**2).sqrt()

    return answering(lib, edges)
