"""Subclasses of Tensor, other classes with ``__torch_function__`` and modes: the same results, classes and calls as in PyTorch."""

from __future__ import annotations

import copy
import gc
import inspect
import pickle
import warnings
from typing import Any

import numpy as np
import torch

import autograd_nb as ag

from .snippets import shown

#: calls with ``x``, an object of a subclass that notes what it is asked, and ``p``, a plain tensor of the same shape
CALLS = """
x + 1; 1 + x; p + x; x + p; p - x; x - p; 1 - x; x * 2; 2 * x; x / p; p / x; 1 / x; -x; +x; abs(x); ~(x > 0); x // 2; x % 2; 2**x; p @ x.T; x @ p.T
x == p; p == x; x != p; x < p; p < x; x >= 1; (x > 0) & (p > 0); (p > 0) | (x > 0); x.shape; x.T; x.mT; x.grad; x.dtype; x.device; x.requires_grad
x.is_leaf; x.grad_fn; x.ndim; x.data; x.itemsize; x.real; x[0]; x[0, 1]; x[:, None]; x[x > 0]; p[x > 0]; torch.arange(3)[x[0].long()]; x.sum()
x.sum(0); x.mean(-1); x.max(); x.max(0); x.sort(); x.topk(2); x.size(); x.size(0); x.dim(); x.numel(); x.stride(); len(x); list(x); float(x.sum())
int(x.sum()); bool(x.sum() > 1); x.item if 0 else x.sum().item(); x.tolist(); x.numpy(); x.detach(); x.clone(); x.view(-1); x.reshape(3, 2); x.t()
x.transpose(0, 1); x.permute(1, 0); x.flatten(); x.unsqueeze(0); x.squeeze(); x.expand(2, 3); x.contiguous(); x.is_contiguous(); x.to(torch.float64)
x.double(); x.long(); x.cpu(); x.type(); x.new_zeros(2); x.new_tensor([1.0]); x.split(1); x.chunk(2); x.unbind(); x.clone().add_(p); p.clone().add_(x)
p.add(x); x.clone().mul_(2); x.clone().zero_(); x.clone().copy_(p); x.clone().requires_grad_(); x.clone().fill_(2); x.__setitem__(0, 1.0)
p.clone().__setitem__(0, x[0]); x.masked_fill(p > 0, 0.0); x.where(p > 0, p); torch.add(p, x); torch.sub(x, 1); torch.mul(x, x); torch.div(p, x)
torch.exp(x); torch.relu(x); torch.sum(x); torch.mean(x, 0); torch.max(x, 1); torch.stack([p, x]); torch.cat([x, x]); torch.cat((p, x), 1)
torch.where(p > 0, p, x); torch.matmul(p, x.T); torch.zeros_like(x); torch.ones_like(x); torch.full_like(x, 2.0); torch.allclose(x, p)
torch.equal(x, p); torch.isnan(x); torch.clamp(x, 0, 1); torch.unique(x); torch.cumsum(x, 0); torch.norm(x); x.norm(); torch.var(x); torch.argmax(x)
torch.split(x, 1); torch.broadcast_tensors(x, p); torch.einsum("ij,ij->", p, x); torch.outer(x[0], p[0]); torch.flip(x, (0,)); torch.roll(x, 1)
torch.diag(x[0]); torch.linalg.det(x @ x.T); torch.is_tensor(x); torch.tensor(x.tolist()); torch.as_tensor(x); torch.is_floating_point(x)
torch.numel(x); torch.nan_to_num(x); F.relu(x); F.gelu(x); F.softmax(x, -1); F.log_softmax(x, 1); F.linear(p, x); F.linear(x, p, p[0, :2])
F.mse_loss(x, p); F.cross_entropy(x, torch.tensor([0, 1])); F.pad(x, (1, 1)); F.dropout(x, 0.5, False); F.layer_norm(x, (3,)); F.normalize(x)
F.one_hot(x.long(), 3); F.interpolate(x[None], 6); F.cosine_similarity(x, p); nn.ReLU()(x); nn.LayerNorm(3)(x); nn.MSELoss()(x, p); nn.Dropout(0.0)(x)
nn.Flatten()(x); nn.Softmax(-1)(x); nn.Identity()(x); nn.Sequential(nn.ReLU(), nn.Tanh())(x); repr(x); copy.copy(x); pickle.loads(pickle.dumps(x))
isinstance(x, torch.Tensor); isinstance(x, nn.Parameter); x.as_subclass(torch.Tensor); p.as_subclass(type(x))
(x.clone().requires_grad_() * 2).sum().backward(); torch.autograd.backward([(x.clone().requires_grad_() * 2).sum()])
torch.autograd.grad(x.requires_grad_().mul(2).sum(), x); torch.autograd.grad(p.requires_grad_().mul(x).sum(), [p]); "{}".format(x[0, 0])
type(x)([1.0, 2.0]); type(x)(p); torch.Tensor._make_subclass(type(x), p, True)
"""

#: names by which the two libraries hand on the same thing
ALIKE = {"__pow__": "pow", "__rdiv__": "rtruediv", "linalg_det": "det"}


def noted(library: Any) -> Any:
    """A subclass of Tensor that notes in ``log`` what it is asked."""

    class Noted(library.Tensor):
        log: list[str] = []

        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            cls.log.append(func.__name__)
            return super().__torch_function__(func, types, args, kwargs)

    Noted.__qualname__ = "Noted"
    return Noted


def described(value: Any) -> Any:
    if isinstance(value, (tuple, list)) and type(value).__name__ != "Size":
        return [described(v) for v in value]
    found = shown(value)
    if isinstance(found, dict):
        return type(value).__name__, found["dtype"], found["shape"], found["requires_grad"], np.round(found["values"].astype(float), 3).tolist()
    return type(value).__name__, repr(found) if not hasattr(found, "shape") else found.tolist()


def run(library: Any, code: str) -> tuple[Any, list[str]]:
    cls = CLASSES[library]
    space = {"torch": library, "nn": library.nn, "F": library.nn.functional, "copy": copy, "pickle": pickle}
    space["p"] = library.tensor([[1.0, -2.0, 3.0], [0.5, 2.0, 1.0]])
    space["x"] = library.tensor([[1.0, 2.0, 0.0], [2.0, -1.0, 4.0]]).as_subclass(cls)
    cls.log.clear()
    globals()["Noted"] = cls  # where pickle finds it
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            result = eval(code, space)
        except Exception as error:
            return type(error).__name__, []
    log = [ALIKE.get(name, name).strip("_") for name in cls.log]
    with library._C.DisableTorchFunctionSubclass():
        return described(result), log


CLASSES: dict[Any, Any] = {}
CODES = [code.strip() for line in CALLS.strip().splitlines() for code in line.split("; ")]


def test_results_are_of_the_class_and_calls_are_handed_on():
    """A class is asked for the same calls, by the same names, and the results are of the same classes."""
    CLASSES.update({library: noted(library) for library in (torch, ag)})
    expected, found = ({code: run(library, code) for code in CODES} for library in (torch, ag))
    differ = [f"{code}\n    ours:    {found[code]}\n    PyTorch: {expected[code]}" for code in CODES if found[code] != expected[code]]
    CLASSES.clear()
    del globals()["Noted"]
    gc.collect()  # ours takes over calls as long as it lives
    assert not differ, f"{len(differ)} of {len(CODES)} differ:\n" + "\n".join(differ)


class Foreign:
    """An object that is no tensor, and answers for all functions."""

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        return "asked"


def asked(function: Any, names: list[str]) -> bool:
    """Whether the function asks the class of its arguments before it does anything else."""
    try:
        return function(*[[Foreign(), Foreign()] if n in ("tensors", "matrices", "tensor_list") else Foreign() for n in names]) == "asked"
    except Exception:
        return False


def test_all_functions_ask_classes_that_are_no_tensors():
    missing = []
    for function, like in torch.overrides.get_testing_overrides().items():
        name = torch.overrides.resolve_name(function) or ""
        mine: Any = ag
        for part in name.split(".")[1:]:
            mine = getattr(mine, part, None)
        if mine is None or not name.startswith("torch.") or name.startswith("torch.Tensor."):
            continue
        given = [p for p in inspect.signature(like).parameters.values() if p.kind is p.POSITIONAL_OR_KEYWORD and p.default is p.empty]
        names = [p.name for p in given]
        if asked(function, names) and not asked(mine, names):
            missing.append(name)
    assert not missing
