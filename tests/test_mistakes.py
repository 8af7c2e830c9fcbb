"""What a beginner does wrong is answered by what was wrong, with its value, and by what to do: in the error's message or in its notes."""

from __future__ import annotations

import numpy as np
import pytest

import autograd_nb as torch
from autograd_nb import nn
from autograd_nb.nn import functional as F
from autograd_nb.utils.data import DataLoader

X = torch.ones(4, 3)
ONES = torch.ones(4, dtype=torch.int64)


def learnt() -> torch.Tensor:
    return torch.ones(2, requires_grad=True)


def twice() -> None:
    y = (learnt() ** 2).sum()
    y.backward()
    y.backward()


def saved() -> None:
    y = learnt().exp()
    y.add_(1)
    y.sum().backward()


class Plain(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layers = [nn.Linear(2, 2)]


def leaf() -> None:
    w = learnt()
    w += 1


#: what is done -> (how, the error, words of the argument, the value, the remedy)
MISTAKES = {
    "wrong width in a Sequential": (lambda: nn.Sequential(nn.Linear(3, 5), nn.Linear(4, 2))(X), RuntimeError, ("module 1 of Sequential", "[*, 4]", "[4, 5]")),
    "no batch and channel": (lambda: nn.Conv2d(3, 4, 3)(torch.ones(8, 8)), RuntimeError, ("[N, 3, H, W]", "[8, 8]")),
    "float64 given to a layer": (lambda: nn.Linear(3, 2)(X.double()), RuntimeError, ("parameters of", "float32", "float64", "x.to(")),
    "integers given to a layer": (lambda: nn.Sequential(nn.Linear(3, 2))(X.long()), RuntimeError, ("module 0 of Sequential", "int64", "x.to(")),
    "an array given to a layer": (lambda: nn.Linear(3, 2)(np.ones((4, 3))), TypeError, ("'input'", "ndarray", "torch.from_numpy()")),
    "a list given to a layer": (lambda: nn.Linear(3, 2)([1.0, 2.0, 3.0]), TypeError, ("'input'", "list", "torch.tensor()")),
    "data given to a loss's options": (lambda: nn.CrossEntropyLoss(X, ONES), RuntimeError, ("size_average", "[4]", "CrossEntropyLoss()(input, target)")),
    "data given to a layer's options": (lambda: nn.ReLU(X)(X), RuntimeError, ("inplace", "ReLU()(x)")),
    "float classes": (lambda: F.cross_entropy(X, torch.ones(4)), RuntimeError, ("target", "float32", ".long()")),
    "integer probabilities": (lambda: F.cross_entropy(X, X.long()), RuntimeError, ("target", "int64", ".float()")),
    "a column of classes": (lambda: F.cross_entropy(X, ONES.unsqueeze(1)), RuntimeError, ("target", "[4, 1]", "target.squeeze(1)")),
    "a class that there is not": (lambda: F.cross_entropy(X, ONES + 2), IndexError, ("Target 3", "3 classes")),
    "probabilities above 1": (lambda: F.binary_cross_entropy(X + 1, X), RuntimeError, ("input", "between 0 and 1", "sigmoid")),
    "an integer target": (lambda: F.binary_cross_entropy_with_logits(X, X.long()), RuntimeError, ("int64", ".float()")),
    "a row for a column": (lambda: F.binary_cross_entropy_with_logits(X[:, :1], X[:, 0]), ValueError, ("Target size", "[4, 1]", "view_as(input)")),
    "backward twice": (twice, RuntimeError, ("SumBackward0", "test_mistakes.py", "retain_graph=True")),
    "backward of a vector": (lambda: (learnt() * 2).backward(), RuntimeError, ("output 0", "[2]", ".sum()")),
    "backward of what is not watched": (lambda: X.sum().backward(), RuntimeError, ("element 0", "requires_grad=True")),
    "a leaf in place": (leaf, RuntimeError, ("leaf", "no_grad")),
    "a saved tensor in place": (saved, RuntimeError, ("ExpBackward0", "version 1", "x = x + 1")),
    "numpy() of what is watched": (lambda: learnt().numpy(), RuntimeError, ("numpy()", "detach().numpy()")),
    "shapes that do not fit": (lambda: torch.ones(3, 4) + torch.ones(3), RuntimeError, ("dimension 1", "[3, 4], [3]")),
    "mm of batches": (lambda: torch.mm(torch.ones(2, 3, 4), torch.ones(4, 3)), RuntimeError, ("self", "3-D", "bmm()")),
    "item() of a vector": (lambda: X.item(), RuntimeError, ("12 elements", "tolist()")),
    "float() of a vector": (lambda: float(X), ValueError, ("12", "tolist()")),
    "a vector as a condition": (lambda: bool(X > 0), RuntimeError, ("more than one value", ".any() or .all()")),
    "cuda": (lambda: nn.Linear(2, 2).to("cuda"), (RuntimeError, AssertionError), ("'cuda'", "device='cpu'")),
    "gradients of integers": (lambda: torch.tensor([1], requires_grad=True), RuntimeError, ("int64", ".float()")),
    "view of what is turned": (lambda: X.t().view(12), RuntimeError, ("[12]", "reshape")),
    "another size": (lambda: X.reshape(5, 2), RuntimeError, ("[5, 2]", "12")),
    "one example in batch norm": (lambda: nn.BatchNorm1d(3)(X[:1]), ValueError, ("[1, 3]", "training")),
    "float indices": (lambda: nn.Embedding(9, 2)(torch.ones(2)), RuntimeError, ("'indices'", "float32", ".long()")),
    "an index too large": (lambda: nn.Embedding(9, 2)(ONES + 8), IndexError, ("index 9", "size 9")),
    "a float mask": (lambda: X.masked_fill(X, 0), RuntimeError, ("mask", "float32", "mask.bool()")),
    "a float condition": (lambda: torch.where(X, 1.0, 2.0), RuntimeError, ("condition", "float32", "condition.bool()")),
    "a list of tensors as a tensor": (lambda: torch.tensor([X, X]), ValueError, ("[4, 3]", "stack()")),
    "items of different shapes": (lambda: next(iter(DataLoader([X, X[0]], 2))), RuntimeError, ("[3]", "collate_fn")),
    "a module for its parameters": (lambda: torch.optim.SGD(nn.Linear(2, 2), lr=0.1), TypeError, ("params", "Linear", "parameters()")),
    "a Sequential for its parameters": (lambda: torch.optim.SGD(nn.Sequential(nn.Linear(2, 2)), lr=0.1), TypeError, ("Sequential", "parameters()")),
    "parameters that were walked": (lambda: torch.optim.SGD(iter(()), lr=0.1), ValueError, ("empty parameter list", "call it anew")),
    "a result for a parameter": (lambda: torch.optim.SGD([learnt() * 2], lr=0.1), ValueError, ("params[0]", "MulBackward0")),
    "a rate below 0": (lambda: torch.optim.Adam([learnt()], lr=-1), ValueError, ("learning rate", "-1")),
    "parameters that were not called": (lambda: torch.optim.SGD(nn.Linear(2, 2).parameters, lr=0.1), TypeError, ("not iterable", "model.parameters()")),
    "modules in a plain list": (lambda: torch.optim.SGD(Plain().parameters(), lr=0.1), ValueError, ("empty parameter list", "nn.ModuleList")),
    "a list given to Sequential": (lambda: nn.Sequential([nn.ReLU()]), TypeError, ("list is not a Module subclass", "*layers")),
    "a list of modules that is called": (lambda: nn.ModuleList([nn.ReLU()])(X), NotImplementedError, ("forward", "use Sequential")),
    "tensors one by one": (lambda: torch.cat(X, X), TypeError, ("tuple of Tensors, not Tensor", "cat([a, b])")),
    "a picture with its channels last": (lambda: nn.Conv2d(3, 4, 3)(torch.ones(8, 8, 3)), RuntimeError, ("[N, 3, H, W]", "x.permute(2, 0, 1)")),
    "pictures with their channels last": (lambda: nn.Conv2d(3, 4, 3)(torch.ones(2, 8, 8, 3)), RuntimeError, ("[2, 8, 8, 3]", "x.permute(0, 3, 1, 2)")),
    "the file of a DataParallel": (
        lambda: nn.Linear(1, 1).load_state_dict({"module.weight": torch.ones(1, 1)}), RuntimeError, ("Missing key(s)", "consume_prefix_in_state_dict")),
    "a layer that there is not": (lambda: nn.Sequential(nn.ReLU(), nn.ReLU())[5], IndexError, ("index 5 is out of range", "2 modules")),
    "a trace without examples": (lambda: torch.trace(lambda x, y: x + y, X), TypeError, ("'y'", "an example of each argument", "x, y)")),
    "a name for a dtype": (lambda: torch.ones(3, dtype="float32"), TypeError, ("dtype", "'float32'")),
}  # fmt: skip


@pytest.mark.parametrize("what", MISTAKES)
def test_a_mistake_is_answered_with_a_remedy(what):
    call, kind, words = MISTAKES[what]
    with pytest.raises(kind) as caught:
        call()
    said = "\n".join([str(caught.value), *getattr(caught.value, "__notes__", ())])
    assert [word for word in words if word not in said] == [], said


@pytest.mark.parametrize("name", [
    "equal", "is_complex", "is_floating_point", "is_inference", "is_nonzero", "is_same_size", "is_signed", "positive", "ravel", "detach_",
    "as_strided_", "native_dropout", "nuclear_norm", "frobenius_norm", "result_type", "bitwise_and", "bitwise_or", "bitwise_xor",
    "bitwise_left_shift", "bitwise_right_shift", "isin",
    "float_power", "nn.functional.lp_pool1d", "nn.functional.lp_pool2d", "nn.functional.linear", "conv_tbc",
    "Tensor.view_as", "Tensor.reshape_as", "Tensor.expand_as", "Tensor.type_as",
])  # fmt: skip
def test_a_text_for_a_tensor_is_a_type_error(name):
    """As in PyTorch, and not an AttributeError of whatever the function asks the text first, nor an error about complex numbers."""
    function = torch
    for part in name.split("."):
        function = getattr(function, part)
    more = {"native_dropout": (0.5, True), "lp_pool1d": (2.0, 2), "lp_pool2d": (2.0, 2), "as_strided_": ((1,), (1,)), "frobenius_norm": (0,)}
    x = torch.ones(2, 2, dtype=torch.int64 if "bitwise" in name else torch.float32)
    given = {1: ("text",), 2: (x, "text"), 3: (x, x, "text"), 4: (x[None], x[None], "text")}
    two = ("bit", "equal", "is_same", "result", "Tensor", "isin", "float_power")
    count = 4 if name == "conv_tbc" else 3 if name.endswith("linear") else 2 if name.startswith(two) else 1
    with pytest.raises(TypeError, match="must be"):
        function(*given[count], *more.get(name.rpartition(".")[2], ()))


def test_a_layer_refuses_sizes_by_its_own_name():
    with pytest.raises(TypeError, match=r"ZeroPad2d\(\): argument 'padding' must be tuple of ints.*padding='text'"):
        nn.ZeroPad2d("text")
    with pytest.raises(TypeError, match=r"Conv2d\(\): argument 'stride'"):
        nn.Conv2d(1, 1, 2, stride="text")


def test_gradients_are_clipped_by_one_number_only():
    """A norm of several numbers was read by its first one, also where there is none."""
    w = torch.ones(2, requires_grad=True)
    w.sum().backward()
    for wrong in (torch.ones(0), torch.ones(3)):
        with pytest.raises(RuntimeError, match="scalar tensor expected to be 0 dim"):
            nn.utils.clip_grads_with_norm_([w], 1.0, wrong)
    assert w.grad.tolist() == [1.0, 1.0]


def test_floats_have_no_bits():
    with pytest.raises(NotImplementedError, match="only implemented on integer and Boolean-type tensors"):
        torch.bitwise_not(torch.ones(2))
