"""Losses with one argument that requires grad, or of another dtype or shape: the gradient, that there is none, or the refusal.

``python -m tests.parity.loss_arguments`` prints what differs; `test_walks` runs it without compiling, as most calls need a kernel of
their own.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator

from .snippets import difference

BEFORE = """
x = (t.arange(12.).reshape(4, 3) - 5) / 4; p = t.linspace(.1, .9, 12).reshape(4, 3); y = t.linspace(.9, .2, 12).reshape(4, 3)
s = t.tensor([[1., -1., 1.]] * 4); k = t.tensor([0, 2, 1, 1]); w = t.linspace(.5, 1.5, 3); full = t.linspace(.5, 1.5, 12).reshape(4, 3)
z = (t.arange(12.).reshape(4, 3) - 2) / 3; labels = t.tensor([[2, 0, -1]] * 4); one = t.tensor([1., -1., 1., -1.])
def leaf(v): return v.clone().requires_grad_()
"""
#: a loss, its tensors of numbers, and what else it takes
LOSSES: dict[str, tuple[list[str], str]] = {
    "mse_loss": (["x", "y"], "weight=full"),
    "l1_loss": (["x", "y"], "weight=full"),
    "smooth_l1_loss": (["x", "y"], ""),
    "huber_loss": (["x", "y"], "weight=full"),
    "binary_cross_entropy": (["p", "y", "full"], ""),
    "binary_cross_entropy_with_logits": (["x", "y", "full"], "pos_weight=w"),
    "kl_div": (["x", "y"], ""),
    "poisson_nll_loss": (["x", "y"], ""),
    "gaussian_nll_loss": (["x", "y", "full"], ""),
    "hinge_embedding_loss": (["x", "s"], ""),
    "soft_margin_loss": (["x", "s"], ""),
    "margin_ranking_loss": (["x", "z", "s"], ""),
    "cosine_embedding_loss": (["x", "z", "one"], ""),
    "triplet_margin_loss": (["x", "z", "y"], ""),
    "multilabel_soft_margin_loss": (["x", "y", "w"], ""),
    "multi_margin_loss": (["x"], "k, weight=w"),
    "multilabel_margin_loss": (["x"], "labels"),
    "cross_entropy": (["x", "y", "w"], ""),
    "cross_entropy of classes": (["x"], "k, weight=w"),
    "nll_loss": (["x"], "k, weight=w"),
}


def _call(name: str, changes: dict[str, str], options: str = "") -> str:
    """The call of a loss with some of its tensors replaced."""
    tensors, more = LOSSES[name]
    named = {"w": "weight=w", "full": "weight=full"}
    arguments = [changes.get(v, v) for v in tensors]
    for v, new in changes.items():
        for spelled in (named.get(v, ""), f"pos_weight={v}"):
            if spelled:
                more = more.replace(spelled, spelled.split("=")[0] + "=" + new)
    return f"F.{name.split()[0]}({', '.join([*arguments, *filter(None, (more, options))])})"


def _names(name: str) -> list[str]:
    tensors, more = LOSSES[name]
    return [*tensors, *[v for v in ("w", "full") if f"={v}" in more]]


REDUCTIONS = ("mean", "none")
DTYPES = ("float64", "int64", "int32", "bool")
SHAPES = ("{v}[0]", "{v}[None]", "{v}[:, None]", "{v}[:0]", "{v}[1:]", "{v}[..., :1]", "{v}.sum()")
#: losses whose target is classes
CLASSES = {"multi_margin_loss": "k", "multilabel_margin_loss": "labels", "nll_loss": "k", "cross_entropy of classes": "k"}


def programs() -> Iterator[str]:
    for name in LOSSES:
        for v in _names(name):
            for reduction in REDUCTIONS:
                call = _call(name, {v: "q"}, f"reduction='{reduction}'")
                yield f"q = leaf({v}); l = {call}; r = (l, t.autograd.grad(l.sum(), q, allow_unused=True)) if l.requires_grad else l"
                for dtype in DTYPES:
                    yield f"r = {_call(name, {v: f'{v}.to(t.{dtype})'}, f'reduction={reduction!r}')}"
            for how in SHAPES:
                yield f"r = {_call(name, {v: how.format(v=v)})}"
    for name, k in CLASSES.items():
        for how in (*SHAPES, *[f"{{v}}.to(t.{d})" for d in DTYPES]):
            yield f"r = F.{name.split()[0]}(x, {how.format(v=k)})"


def main() -> int:
    found = [text for code in programs() if (text := difference(code, BEFORE))]
    print("\n".join(found))
    print(f"{len(found)} differences")
    return len(found) > 0


if __name__ == "__main__":
    sys.exit(main())
