"""Ops that programs declare, ops by the dispatcher's names, and what programs register: trees and maps onto constraints."""

from collections import OrderedDict, defaultdict, deque, namedtuple
from typing import NamedTuple

import pytest

import autograd_nb as torch
from autograd_nb.compat.operators import DECLARED
from autograd_nb.distributions import biject_to, constraints, transform_to
from autograd_nb.utils import _pytree as pytree


@pytest.mark.parametrize("declare", ["custom_op", "triton_op"])
def test_an_op_that_a_program_declares_has_its_gradient(declare) -> None:
    @getattr(torch.library, declare)("tests::scaled", mutates_args=())
    def scaled(x: torch.Tensor, by: float) -> torch.Tensor:
        return x.detach() * by

    def save(ctx, inputs, output) -> None:
        ctx.by = inputs[1]

    scaled.register_autograd(lambda ctx, g: (g * ctx.by, None), setup_context=save)
    scaled.register_fake(lambda x, by: torch.empty_like(x))
    x = torch.ones(3, requires_grad=True)
    torch.ops.tests.scaled(x, 3.0).sum().backward()
    assert x.grad.tolist() == [3.0, 3.0, 3.0]
    assert torch.ops.tests.scaled.default(x.detach(), 2.0).tolist() == [2.0, 2.0, 2.0]
    with pytest.raises(AttributeError, match="absent"):
        torch.ops.tests.absent
    del DECLARED["tests::scaled"]


def test_a_library_has_kernels_for_the_cpu_only() -> None:
    library = torch.library.Library("tests_library", "DEF")
    library.define("plus(Tensor x, int k) -> Tensor")
    with pytest.raises(NotImplementedError, match="no kernel for the CPU"):
        torch.ops.tests_library.plus(torch.ones(1), 1)
    library.impl("plus", lambda x, k: x - k, "CUDA")
    library.impl("plus", lambda x, k: x + k, "CPU")
    assert torch.ops.tests_library.plus(torch.ones(1), 1).tolist() == [2.0]
    del DECLARED["tests_library::plus"]


def test_ops_by_the_names_of_the_dispatcher() -> None:
    add = torch.ops.aten.add.Tensor
    assert add is torch.ops.aten.add.Tensor and add.name() == "aten::add.Tensor"
    assert add(torch.ones(2), 1).tolist() == [2.0, 2.0]
    x = torch.zeros(2)
    assert torch.ops.aten.add_.Tensor(x, 1) is x
    assert torch.ops.aten.linalg_det(torch.eye(2)).item() == 1
    with pytest.raises(NotImplementedError, match="aten::no_such_op"):
        torch.ops.aten.no_such_op()


class Pair:
    def __init__(self, a, b):
        self.a, self.b = a, b


def test_trees_take_registrations_and_have_paths() -> None:
    pytree.register_pytree_node(Pair, lambda p: ([p.a, p.b], "pair"), lambda children, context: Pair(*children))
    with pytest.raises(ValueError, match="already registered"):
        pytree.register_pytree_node(Pair, lambda p: ([], None), lambda c, _: None)
    Point = namedtuple("Point", "x y")
    tree = {"a": Pair(1, [2, 3]), "b": Point(4, deque([5], maxlen=3))}
    leaves, spec = pytree.tree_flatten(tree)
    assert leaves == [1, 2, 3, 4, 5] and spec.num_leaves == 5
    back = pytree.tree_unflatten([x * 2 for x in leaves], spec)
    assert back["a"].b == [4, 6] and back["b"].y == deque([10]) and back["b"].y.maxlen == 3
    paths = [pytree.keystr(path) for path, _ in pytree.tree_leaves_with_path(tree)]
    assert paths == ["['a'][0]", "['a'][1][0]", "['a'][1][1]", "['b'].x", "['b'].y[0]"]
    assert pytree._broadcast_to_and_flatten(7, spec) == [7] * 5
    assert pytree.tree_map_only((int,), str, [1, 2.0]) == ["1", 2.0]
    del pytree.SUPPORTED_NODES[Pair]


def test_maps_onto_constraints_are_found_by_class_and_can_be_registered() -> None:
    class Odd(constraints.Constraint):
        pass

    with pytest.raises(NotImplementedError, match="Odd"):
        biject_to(Odd())
    transform = torch.distributions.transforms.AffineTransform(1.0, 2.0)
    biject_to.register(Odd, lambda c: transform)
    assert biject_to(Odd()) is transform
    bounds = constraints.interval(torch.tensor([0.0, 1.0]), torch.tensor([1.0, 3.0]))
    assert transform_to(bounds)(torch.zeros(2)).tolist() == [0.5, 2.0]
    nested = biject_to(constraints.independent(constraints.positive, 1))
    x = torch.tensor([0.5, -1.0])
    assert nested.log_abs_det_jacobian(x, nested(x)).item() == pytest.approx(-0.5)
    assert isinstance(constraints.positive, constraints.greater_than) and constraints.positive.lower_bound == 0
    del biject_to._registry[Odd]


def test_a_map_of_a_users_own_defines_call_and_inverse() -> None:
    class Cube(torch.distributions.Transform):
        domain = codomain = constraints.real
        bijective = True

        def _call(self, x):
            return x**3

        def _inverse(self, y):
            return y.sign() * y.abs() ** (1 / 3)

    assert Cube().inv(torch.tensor([8.0])).item() == pytest.approx(2.0)


def test_libraries_of_cpp_are_not_loaded():
    """Packages catch OSError and go on without their own ops, as torchvision does."""
    with pytest.raises(OSError, match="cannot be loaded by this library"):
        torch.ops.load_library("ops.so")
    assert torch.ops.loaded_libraries == frozenset()
    keys = torch._C.DispatchKeySet(torch._C.DispatchKey.CPU) | torch._C.DispatchKeySet(torch._C.DispatchKey.CUDA)
    assert keys.has("CPU")
    assert keys.has(torch._C.DispatchKey.CUDA)
    with torch._C._ExcludeDispatchKeyGuard(keys):
        assert not keys.has(torch._C.DispatchKey.Meta)


class Point(NamedTuple):
    x: int
    y: int


@pytest.mark.parametrize("kind, tree", [
    ("tuple", (1, 2)), ("namedtuple", Point(1, 2)), ("dict", {"a": 1, "b": 2}), ("ordereddict", OrderedDict(a=1, b=2)),
    ("odict", OrderedDict(a=1, b=2)), ("defaultdict", defaultdict(int, a=1, b=2)), ("deque", deque([1, 2], maxlen=3)),
])  # fmt: skip
def test_what_takes_containers_apart(kind, tree):
    """Packages call these for classes of their own, as norse does for its states."""
    parts, context = getattr(pytree, f"_{kind}_flatten")(tree)
    back = getattr(pytree, f"_{kind}_unflatten")(parts, context)
    assert parts == [1, 2] and back == tree and type(back) is type(tree) and getattr(back, "maxlen", 0) == getattr(tree, "maxlen", 0)
    if kind != "odict":
        keyed, same = getattr(pytree, f"_{kind}_flatten_with_keys")(tree)
        assert same == context and [value for _, value in keyed] == parts
