"""What functions that are transformed may do with leaves and backward passes: PyTorch refuses it there, and so does this library."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")
import autograd_nb as ours  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore:`torch.jit.script` is deprecated")

CALLS = {
    "requires_grad_ of an operand": "z.requires_grad_()", "requires_grad_ of a result": "(z * 1).requires_grad_()",
    "requires_grad_(False)": "z.requires_grad_(False)", "requires_grad_ of what is new": "t.ones(3).requires_grad_()",
    "requires_grad_ of what is detached": "z.detach().requires_grad_()", "retain_grad of an operand": "z.retain_grad()",
    "retain_grad of a result": "(z * 2).retain_grad()", "retain_grad outside": "(c * 2).retain_grad()",
    "backward": "(z * 2).sum().backward()", "backward outside": "(c * 2).sum().backward()", "backward of both": "(c * z).sum().backward()",
    "backward of what is new": "t.ones(3, requires_grad=True).sum().backward()", "autograd.backward": "t.autograd.backward((c * z).sum())",
    "a new leaf": "t.ones(3, requires_grad=True)", "nothing": "z",
}  # fmt: skip
WAYS = {
    "grad": lambda t, f, x: t.func.grad(lambda z: f(z).sum())(x), "vjp": lambda t, f, x: t.func.vjp(f, x)[0],
    "jvp": lambda t, f, x: t.func.jvp(f, (x,), (x,))[1], "vmap": lambda t, f, x: t.func.vmap(f)(t.stack([x, x])),
    "jacrev": lambda t, f, x: t.func.jacrev(f)(x), "jacfwd": lambda t, f, x: t.func.jacfwd(f)(x),
    "hessian": lambda t, f, x: t.func.hessian(lambda z: f(z).sum())(x), "functionalize": lambda t, f, x: t.func.functionalize(f)(x),
    "vmap of grad": lambda t, f, x: t.func.vmap(t.func.grad(lambda z: f(z).sum()))(t.stack([x, x])),
    "of what requires grad": lambda t, f, x: t.func.grad(lambda z: f(z).sum())(x.requires_grad_()),
    "chunks": lambda t, f, x: t.func.vmap(f, chunk_size=1)(t.stack([x, x])), "none of them": lambda t, f, x: f(x.requires_grad_() * 1),
}  # fmt: skip


def outcome(t, way, call):
    c = t.arange(3.0).requires_grad_()

    def f(z):
        exec(call, {"t": t, "c": c, "z": z})
        return z * 2

    try:
        found = WAYS[way](t, f, t.arange(3.0))
    except RuntimeError:
        return "refused"
    return found.tolist(), c.grad is None


@pytest.mark.parity
@pytest.mark.parametrize("way", WAYS)
def test_leaves_and_backward_passes_within_a_transform(way):
    wrong = {name: (mine, theirs) for name, call in CALLS.items() if (mine := outcome(ours, way, call)) != (theirs := outcome(torch, way, call))}
    assert not wrong


@pytest.mark.parity
@pytest.mark.parametrize("way", ["grad", "vmap", "functionalize"])
def test_so_it_is_while_classes_redefine_functions(way):
    """Then functions are called by way of what asks the classes."""

    class Redefining(ours.Tensor):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            return super().__torch_function__(func, types, args, kwargs or {})

    kept = ours.ones(2).as_subclass(Redefining)
    test_leaves_and_backward_passes_within_a_transform(way)
    assert kept.tolist() == [1.0, 1.0]


@pytest.mark.parity
def test_passes_of_batches_of_gradients_are_no_transform():
    """But for backward(), Functions and hooks may there do with leaves what they do elsewhere."""
    calls = {**CALLS, "backward within": "with t.enable_grad(): t.ones(3, requires_grad=True).sum().backward()"}
    names = ["requires_grad_ of what is new", "a new leaf", "backward within", "nothing", "requires_grad_ of what is detached", "requires_grad_(False)"]

    def within(t, call):
        class Own(t.autograd.Function):
            @staticmethod
            def forward(ctx, x):
                ctx.save_for_backward(x)
                return x * 2

            @staticmethod
            def backward(ctx, g):
                exec(call, {"t": t, "z": ctx.saved_tensors[0]})
                return g * 2

        try:
            x = t.ones(3).requires_grad_()
            return t.autograd.grad(Own.apply(x), x, t.eye(3), is_grads_batched=True)[0].tolist()
        except RuntimeError:
            return "refused"

    found = {name: (within(ours, calls[name]), within(torch, calls[name])) for name in names}
    assert all(mine == theirs for mine, theirs in found.values()), found
    assert {name for name, (mine, _) in found.items() if mine == "refused"} == {"backward within"}


@pytest.mark.parity
def test_a_level_within_a_level():
    """Transforms that go forward may be called there, which PyTorch refuses too: they have levels of their own."""
    for t in (torch, ours):
        fw = t.autograd.forward_ad
        with fw.dual_level():
            with pytest.raises(RuntimeError, match="Nested forward mode AD is not supported"), fw.dual_level():
                pass
            with pytest.raises(RuntimeError, match="Nested forward mode AD is not supported"):
                fw.enter_dual_level()
            d = fw.make_dual(t.ones(2), t.ones(2))
            assert fw.unpack_dual(d * 3).tangent.tolist() == [3.0, 3.0]
        with pytest.raises(RuntimeError):
            fw.exit_dual_level()


@pytest.mark.parity
def test_backward_of_what_has_a_tangent_alone():
    for t in (torch, ours):
        fw = t.autograd.forward_ad
        with fw.dual_level():
            d = fw.make_dual(t.ones(2), t.ones(2))
            for call in ((d * 2).sum().backward, lambda d=d, t=t: t.autograd.backward((d * 2).sum())):
                with pytest.raises(RuntimeError, match="element 0 of tensors does not require grad"):
                    call()
            assert fw.unpack_dual(d).primal.grad is None
            x = t.ones(2, requires_grad=True)
            (fw.make_dual(x, t.ones(2)) * 2).sum().backward()
        assert x.grad.tolist() == [2.0, 2.0]
