"""What the uses share: parameters, data and random draws that are the same whatever library is `torch`."""

from collections.abc import Iterator
from contextlib import contextmanager
from unittest import mock

import numpy as np
import torch


def data(*shape: int, seed: int = 0, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    """Return standard normal numbers of NumPy's generator."""
    return torch.from_numpy(np.random.default_rng(seed).standard_normal(shape)).to(dtype)


def integers(high: int, *shape: int, seed: int = 0) -> torch.Tensor:
    """Return int64 numbers from 0 up to, not including, ``high``."""
    return torch.from_numpy(np.random.default_rng(seed).integers(0, high, shape))


def fill(module: torch.nn.Module, seed: int = 0, scale: float = 0.1) -> torch.nn.Module:
    """Set every parameter of two dimensions or more to numbers of NumPy's generator; biases and scales stay; return the module."""
    generator = np.random.default_rng(seed)
    with torch.no_grad():
        for p in module.parameters():
            if p.ndim > 1:
                p.copy_(torch.from_numpy(generator.standard_normal(tuple(p.shape)) * scale))
            elif not bool((p == 1).all()):
                p.copy_(torch.from_numpy(np.asarray(generator.standard_normal(tuple(p.shape)) * 0.01)))
    return module


def train(module: torch.nn.Module, loss, steps: int = 3, lr: float = 0.05) -> list[float]:
    """Return the losses of ``steps`` steps of SGD with momentum; ``loss()`` computes one."""
    return stepped(torch.optim.SGD([p for p in module.parameters() if p.requires_grad], lr=lr, momentum=0.9), loss, steps)


def stepped(optimizer: torch.optim.Optimizer, loss, steps: int) -> list[float]:
    """Return the losses of ``steps`` steps of an optimizer; ``loss()`` computes one."""
    losses = []
    for _ in range(steps):
        optimizer.zero_grad()
        value = loss()
        value.backward()
        optimizer.step()
        losses.append(value.item())
    return losses


def numbers(*values) -> list[float]:
    """Return a few numbers that tell tensors apart: of each its mean, its norm, its first and last element; plain numbers as they are."""
    result: list[float] = []
    for value in values:
        if isinstance(value, torch.Tensor):
            flat = np.asarray(value.detach().resolve_conj().numpy()).astype(np.complex128).ravel()
            parts = [flat.mean(), np.linalg.norm(flat), flat[0], flat[-1]]
            result += [float(part) for z in parts for part in ((z.real, z.imag) if value.is_complex() else (z.real,))]
        else:
            result.append(float(value))
    return result


@contextmanager
def drawn_by_numpy(seed: int = 0) -> Iterator[None]:
    """Let the functions that draw normal and uniform numbers draw NumPy's, as each library has a stream of its own."""
    generator = np.random.default_rng(seed)

    def tensor(values, dtype=None, **_):
        return torch.from_numpy(np.asarray(values)).to(dtype or torch.get_default_dtype())

    def shape(size):
        return tuple(size[0]) if len(size) == 1 and not isinstance(size[0], int) else size

    def randn(*size, **options):
        return tensor(generator.standard_normal(shape(size or (options.pop("size"),))), options.get("dtype"))

    def rand(*size, **options):
        return tensor(generator.random(shape(size or (options.pop("size"),))), options.get("dtype"))

    def normal(mean, std=1.0, size=None, **options):
        like = mean if isinstance(mean, torch.Tensor) else std
        drawn = tensor(generator.standard_normal(tuple(like.shape if size is None else size)), getattr(like, "dtype", options.get("dtype")))
        return mean + std * drawn

    def normal_(self, mean=0.0, std=1.0, **_):
        return self.copy_(tensor(generator.standard_normal(tuple(self.shape)) * std + mean, self.dtype))

    def uniform_(self, low=0.0, high=1.0, **_):
        return self.copy_(tensor(generator.random(tuple(self.shape)) * (high - low) + low, self.dtype))

    def exponential_(self, lambd=1.0, **_):
        return self.copy_(tensor(generator.exponential(1 / lambd, tuple(self.shape)), self.dtype))

    def bernoulli(p, *_, **__):
        return (tensor(generator.random(tuple(p.shape))) < p).to(p.dtype)

    replaced = {"randn": randn, "rand": rand, "normal": normal, "bernoulli": bernoulli}
    replaced["randn_like"] = lambda x, **o: tensor(generator.standard_normal(tuple(x.shape)), o.get("dtype", x.dtype))
    replaced["rand_like"] = lambda x, **o: tensor(generator.random(tuple(x.shape)), o.get("dtype", x.dtype))
    methods = {"normal_": normal_, "uniform_": uniform_, "exponential_": exponential_}
    with mock.patch.multiple(torch, **replaced), mock.patch.multiple(torch.Tensor, **methods), torch.no_grad(), torch.enable_grad():
        yield
