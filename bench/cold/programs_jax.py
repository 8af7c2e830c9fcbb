"""Programs written once more for `jax.jit`: those that a few lines of it say. Each returns the step, compiled by its first call."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

PROGRAMS: dict[str, Callable[[Any], Callable[[], Any]]] = {}


def program(name: str) -> Callable[[Callable], Callable]:
    """Decorator: enter a program under its name."""

    def enter(build: Callable) -> Callable:
        PROGRAMS[name] = build
        return build

    return enter


def linear(jax: Any, key: Any, given: int, made: int) -> tuple[Any, Any]:
    """The weight and bias of a layer, initialised as PyTorch does."""
    first, second = jax.random.split(key)
    bound = given**-0.5
    return jax.random.uniform(first, (made, given), minval=-bound, maxval=bound), jax.random.uniform(second, (made,), minval=-bound, maxval=bound)


def cross_entropy(jax: Any, logits: Any, target: Any) -> Any:
    """Mean negative log-likelihood."""
    return -jax.numpy.take_along_axis(jax.nn.log_softmax(logits), target[:, None], 1).mean()


def training(jax: Any, parameters: Any, loss: Callable[[Any], Any], lr: float, adam: bool) -> Callable[[], Any]:
    """A step of SGD or Adam on ``loss(parameters)``, one compiled function."""
    tree, zeros = jax.tree_util.tree_map, jax.tree_util.tree_map(jax.numpy.zeros_like, parameters)
    state = (parameters, zeros, zeros, 0)

    @jax.jit
    def update(state: Any) -> Any:
        p, first, second, count = state
        value, g = jax.value_and_grad(loss)(p)
        if not adam:
            return value, (tree(lambda a, b: a - lr * b, p, g), first, second, count)
        count = count + 1
        first, second = tree(lambda m, b: 0.9 * m + 0.1 * b, first, g), tree(lambda v, b: 0.999 * v + 0.001 * b * b, second, g)
        rate, root = lr / (1 - 0.9**count), (1 - 0.999**count) ** 0.5
        return value, (tree(lambda a, m, v: a - rate * m / (v**0.5 / root + 1e-8), p, first, second), first, second, count)

    def step() -> Any:
        nonlocal state
        value, state = update(state)
        return value

    return step


@program("first gradient")
def first_gradient(jax: Any) -> Callable[[], Any]:
    x = jax.numpy.array([1.0, 2.0, 3.0])
    f = jax.jit(jax.value_and_grad(lambda x: (x * x).sum()))
    return lambda: f(x)[0]


@program("MLP")
def mlp(jax: Any) -> Callable[[], Any]:
    keys = jax.random.split(jax.random.key(0), 5)
    layers = [linear(jax, k, a, b) for k, a, b in zip(keys, (20, 64, 64), (64, 64, 5), strict=False)]
    x, y = jax.random.normal(keys[3], (64, 20)), jax.random.randint(keys[4], (64,), 0, 5)

    def loss(layers: Any) -> Any:
        h = x
        for i, (w, b) in enumerate(layers):
            h = (jax.nn.relu(h) if i else h) @ w.T + b
        return cross_entropy(jax, h, y)

    return training(jax, layers, loss, 0.1, adam=False)


@program("CNN")
def cnn(jax: Any) -> Callable[[], Any]:
    jnp, lax = jax.numpy, jax.lax
    keys = jax.random.split(jax.random.key(0), 5)
    layers = []
    for k, a, b in zip(keys, (1, 8), (8, 16), strict=False):
        w, bias = linear(jax, k, a * 9, b)
        layers.append((w.reshape(b, a, 3, 3), bias, jnp.ones(b), jnp.zeros(b)))
    head = linear(jax, keys[2], 16 * 7 * 7, 10)
    x, y = jax.random.normal(keys[3], (16, 1, 28, 28)), jax.random.randint(keys[4], (16,), 0, 10)

    def loss(parameters: Any) -> Any:
        layers, (w, b) = parameters
        h = x
        for weight, bias, gain, shift in layers:
            h = lax.conv_general_dilated(h, weight, (1, 1), "SAME") + bias[:, None, None]
            mean, var = h.mean((0, 2, 3), keepdims=True), h.var((0, 2, 3), keepdims=True)
            h = jax.nn.relu((h - mean) * lax.rsqrt(var + 1e-5) * gain[:, None, None] + shift[:, None, None])
            h = lax.reduce_window(h, -jnp.inf, lax.max, (1, 1, 2, 2), (1, 1, 2, 2), "VALID")
        return cross_entropy(jax, h.reshape(len(h), -1) @ w.T + b, y)

    return training(jax, (layers, head), loss, 1e-3, adam=True)


@program("VAE")
def vae(jax: Any) -> Callable[[], Any]:
    jnp = jax.numpy
    keys = jax.random.split(jax.random.key(0), 7)
    sizes = ((64, 32), (32, 4), (32, 4), (4, 32), (32, 64))
    layers = [linear(jax, k, a, b) for k, (a, b) in zip(keys, sizes, strict=False)]
    x, noise = jax.random.uniform(keys[5], (32, 64)), jax.random.normal(keys[6], (32, 4))

    def loss(layers: Any) -> Any:
        hidden, to_mean, to_spread, widen, out = (lambda h, w=w, b=b: h @ w.T + b for w, b in layers)
        h = jax.nn.relu(hidden(x))
        mean, log_var = to_mean(h), to_spread(h)
        p = jax.nn.sigmoid(out(jax.nn.relu(widen(mean + noise * jnp.exp(0.5 * log_var)))))
        divergence = -0.5 * jnp.sum(1 + log_var - mean**2 - jnp.exp(log_var))
        return -jnp.sum(x * jnp.log(p) + (1 - x) * jnp.log(1 - p)) + divergence

    return training(jax, layers, loss, 1e-3, adam=True)
