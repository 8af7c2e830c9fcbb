"""Statements about ties, sequences, schedulers, users' Functions, graphs, lists and out= (``further.txt``), and those that a hostile tester
would write: second order, hooks that change gradients, views of views, aliases, modes, copies, batches (``hostile.txt``). Holes as in `statements`."""

from __future__ import annotations

from pathlib import Path

#: users' Functions, as `program.HEADER` defines them
FUNCTIONS = """
class Context(torch.autograd.Function):
    # with a context that is set up apart, in forward mode and in batches too
    generate_vmap_rule = True

    @staticmethod
    def forward(x, k):
        return x.exp() * k

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.k = inputs[1]
        ctx.save_for_backward(output)
        ctx.save_for_forward(output)

    @staticmethod
    def backward(ctx, g):
        (y,) = ctx.saved_tensors
        return g * y, None

    @staticmethod
    def jvp(ctx, t, _):
        (y,) = ctx.saved_tensors
        return t * y


class Once(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x.square()

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, g):
        return ctx.saved_tensors[0] * 2 * g


class Needs(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, y):
        ctx.save_for_backward(x, y if ctx.needs_input_grad[1] else None)
        return x * 2 + y * 3

    @staticmethod
    def backward(ctx, g):
        x, y = ctx.saved_tensors
        return (g * 2).sum_to_size(x.shape) if ctx.needs_input_grad[0] else None, None if y is None else (g * 3).sum_to_size(y.shape)


class Nested(torch.autograd.Function):
    # a result that is no tensor, and gradients that nobody asked for
    @staticmethod
    def forward(ctx, x, text):
        ctx.shape = x.shape
        return x.sum(), text

    @staticmethod
    def backward(ctx, g, _):
        return g.expand(ctx.shape), None


class Saves(torch.autograd.Function):
    # an intermediate that is saved beside the result
    @staticmethod
    def forward(ctx, x):
        e = x.exp()
        ctx.save_for_backward(x, e)
        return e * x

    @staticmethod
    def backward(ctx, g):
        x, e = ctx.saved_tensors
        return g * e * (1 + x)


class Same(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x

    @staticmethod
    def backward(ctx, g):
        return g * 3


class Inner(torch.autograd.Function):
    # a backward pass within the forward, as within the backward
    @staticmethod
    def forward(ctx, x):
        with torch.enable_grad():
            z = x.detach().requires_grad_()
            y = z.sin().sum()
        ctx.save_for_backward(x, torch.autograd.grad(y, z)[0])
        return y.detach()

    @staticmethod
    def backward(ctx, g):
        x, kept = ctx.saved_tensors
        with torch.enable_grad():
            z = x.detach().requires_grad_()
            (found,) = torch.autograd.grad(z.sin().sum(), z)
        return g * (found + kept) / 2


class Shared(torch.autograd.Function):
    # two results, one of them a part of the other
    @staticmethod
    def forward(ctx, x):
        y = x * 2
        return y, y[..., :1]

    @staticmethod
    def backward(ctx, g, h):
        g = g * 2
        return torch.cat([g[..., :1] + 2 * h, g[..., 1:]], -1)


"""


def _families(file: str) -> dict[str, tuple[int, str]]:
    """Weight and templates by family, as a file has them: a line each, a family below its name."""
    found: dict[str, tuple[int, str]] = {}
    for part in Path(__file__).with_name(file).read_text().removeprefix("# ").split("\n# "):
        head, _, lines = part.partition("\n")
        name, _, weight = head.partition(": ")
        found[name] = int(weight), lines
    return found


FURTHER = _families("further.txt") | _families("hostile.txt") | _families("conjugates.txt") | _families("loops.txt")
