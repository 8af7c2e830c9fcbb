"""First steps through the graph: what is recorded, what a backward pass uses up, and how to keep it.

Every claim is printed and asserted. PyTorch users: `import torch` in place of the first line, and all of it holds there but
the one difference that `single_use` names.
"""

from __future__ import annotations

import autograd_nb as torch
import autograd_nb.nn.functional as F
from autograd_nb import nn
from autograd_nb.autograd import Variable, grad


def name(node) -> str:
    return type(node).__name__


def refused(action, *phrases: str) -> str:
    """Run what must raise a RuntimeError that contains the phrases; what it says."""
    try:
        action()
    except RuntimeError as error:
        text = str(error)
        assert all(phrase in text for phrase in phrases), text
        return f"{type(error).__name__}: {text}"
    raise AssertionError("expected a RuntimeError")


def mean_then_sum() -> None:
    """Two results of one graph, x -> x² -> 4x² -> mean and sum: the second backward needs what the first one used."""
    x = torch.ones(1, 4, requires_grad=True)
    z = x**2 * 4
    mean, total = z.mean(), z.sum()
    mean.backward()
    assert x.grad.tolist() == [[2.0] * 4]
    print("without retain_graph:", refused(total.backward, "backward through the graph a second time", "retain_graph=True"))

    x = torch.ones(1, 4, requires_grad=True)
    z = x**2 * 4
    mean, total = z.mean(), z.sum()
    mean.backward(retain_graph=True)
    print("with retain_graph=True, the mean's gradient:", x.grad.tolist())
    total.backward()
    print("and after total.backward():", x.grad.tolist(), "= 2 + 8")
    assert x.grad.tolist() == [[10.0] * 4]


def grad_fn_names() -> None:
    """`grad_fn` is the node that made a tensor; `next_functions` lead to the nodes of its inputs, down to the leaves."""
    x = torch.ones(3, requires_grad=True)
    node, path = (x**2 * 4).mean().grad_fn, []
    while node is not None:
        path.append(name(node))
        last, node = node, next((n for n, _ in node.next_functions if n is not None), None)
    print("graph:", " -> ".join(path))
    assert path == ["MeanBackward0", "MulBackward0", "PowBackward0", "AccumulateGrad"]
    assert last.variable is x


def leaves() -> None:
    """Leaves are what the user made, and whatever does not require grad; only they get a `.grad` by themselves."""
    x, c = torch.ones(2, requires_grad=True), torch.ones(2)
    y = x * c
    print("is_leaf: x", x.is_leaf, "c", c.is_leaf, "x * c", y.is_leaf, "c * c", (c * c).is_leaf)
    assert (x.is_leaf, c.is_leaf, y.is_leaf, (c * c).is_leaf) == (True, True, False, True)
    assert x.grad_fn is None
    assert y.requires_grad
    y.retain_grad()  # keep the gradient of this tensor between, too
    (y * y).sum().backward()
    print("retain_grad: y.grad", y.grad.tolist(), "x.grad", x.grad.tolist(), "c.grad", c.grad)
    assert y.grad.tolist() == [2.0, 2.0]
    assert c.grad is None


def accumulation() -> None:
    """Gradients add up in `.grad` until they are cleared."""
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    for times in (1, 2, 3):
        (x * x).sum().backward()
        assert x.grad.tolist() == [2.0 * times, 4.0 * times]
    print("after three passes:", x.grad.tolist())
    x.grad.zero_()
    (x * x).sum().backward()
    print("zeroed before one more:", x.grad.tolist())
    assert x.grad.tolist() == [2.0, 4.0]


def without_recording() -> None:
    """`no_grad` records nothing; `detach` is the same numbers outside the graph."""
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    with torch.no_grad():
        y = x * 2
    assert not y.requires_grad
    print("no_grad:", refused(y.sum().backward, "does not require grad"))
    d = (x * x).detach()
    (x * d).sum().backward()  # d counts as a constant
    print("detach: the gradient of x * (x * x).detach() is", x.grad.tolist(), "and not 3x²")
    assert x.grad.tolist() == [1.0, 4.0]


def higher_derivatives() -> None:
    """`create_graph=True` records the backward pass itself, so it can be differentiated again."""
    x = torch.tensor(2.0, requires_grad=True)
    y, derivatives = x**4, []
    for _ in range(4):
        (y,) = grad(y, x, create_graph=True)
        derivatives.append(y.item())
    print("x⁴ at 2, derivatives 1 to 4:", derivatives)
    assert derivatives == [32.0, 48.0, 48.0, 24.0]


def old_variable() -> None:
    """Programs from the days of `Variable` run as they are: it is a Tensor."""
    x = Variable(torch.ones(2, 2), requires_grad=True)
    (3 * (x + 2) ** 2).mean().backward()
    print("Variable:", x.grad.tolist())
    assert isinstance(x, torch.Tensor)
    assert x.grad.tolist() == [[4.5, 4.5], [4.5, 4.5]]


class ContentLoss(nn.Module):
    """As in programs for style transfer: a layer that passes its input on, and has a loss of its own to run backward."""

    def __init__(self, target, weight: float) -> None:
        super().__init__()
        self.target, self.weight = target.detach() * weight, weight

    def forward(self, x):
        self.loss = F.mse_loss(x * self.weight, self.target)
        return x

    def backward(self, retain_graph: bool = True):
        self.loss.backward(retain_graph=retain_graph)
        return self.loss


def losses_inside_the_network() -> None:
    """Several such layers share the layers before them, so every backward but the last must keep the graph."""
    torch.manual_seed(0)
    picture = torch.rand(1, 3, requires_grad=True)
    first, second = ContentLoss(torch.zeros(1, 3), 1.0), ContentLoss(torch.ones(1, 3), 2.0)
    net = nn.Sequential(nn.Linear(3, 3), nn.Tanh(), first, nn.Linear(3, 3), second)

    net(picture)
    first.backward()
    second.backward(retain_graph=False)
    one_by_one = picture.grad.clone()

    picture.grad = None
    net(picture)
    (first.loss + second.loss).backward()
    difference = (one_by_one - picture.grad).abs().max().item()
    print(f"ContentLoss: one by one and summed losses differ by {difference:.0e}")
    assert difference < 1e-6

    net(picture)
    first.backward(retain_graph=False)
    print("the first without retain_graph:", refused(second.backward, "retain_graph=True"))


def single_use() -> None:
    """A pass consumes every node that it ran. PyTorch notices only where something was saved, and a sum saves nothing."""
    x = torch.ones(3, requires_grad=True)
    y = x.sum()
    y.backward()
    if torch.__name__ == "autograd_nb":
        print("x.sum() backward twice:", refused(y.backward, "backward through the graph a second time"))
        assert x.grad.tolist() == [1.0, 1.0, 1.0]  # an error changes nothing
    else:
        y.backward()
        print("x.sum() backward twice:", x.grad.tolist(), "(PyTorch; an error in autograd_nb)")


def main() -> None:
    steps = (mean_then_sum, grad_fn_names, leaves, accumulation, without_recording, higher_derivatives, old_variable,
             losses_inside_the_network, single_use)  # fmt: skip
    for step in steps:
        print(f"\n{step.__name__.replace('_', ' ')}: {step.__doc__}")
        step()
    print("\nall as asserted")


if __name__ == "__main__":
    main()
