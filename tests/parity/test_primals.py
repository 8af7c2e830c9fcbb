"""What a function that is transformed sees of its operand, what it may do with that, and what comes of it: as in PyTorch.

The operand is nobody else's, a leaf, a result, a view of one, or what a transform around it is to differentiate by.
"""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")
import autograd_nb as ours  # noqa: E402

pytestmark = [pytest.mark.parity, pytest.mark.filterwarnings("ignore:`torch.jit.script` is deprecated")]

#: what the operand may be, of a leaf
PRIMALS = {
    "nobody else's": lambda t, leaf: leaf.detach().clone(), "a leaf": lambda t, leaf: leaf, "a result": lambda t, leaf: leaf * 1,
    "a view": lambda t, leaf: (leaf * 1).view(-1), "a part": lambda t, leaf: t.cat([leaf, leaf])[1:4],
}  # fmt: skip
BACK = {
    "grad": lambda t, f, x: t.func.grad(lambda z: f(z).sum())(x), "vjp": lambda t, f, x: t.func.vjp(f, x)[1](t.ones(3))[0],
    "jacrev": lambda t, f, x: t.func.jacrev(f)(x),
    "grad of grad": lambda t, f, x: t.func.grad(lambda y: t.func.grad(lambda z: f(z).square().sum())(y).sum())(x),
}  # fmt: skip
FORWARD = {
    "jvp": lambda t, f, x: t.func.jvp(f, (x,), (t.tensor([1.0, 2.0, 3.0]),)), "jacfwd": lambda t, f, x: t.func.jacfwd(f)(x),
    "jvp of a vmap": lambda t, f, x: t.func.jvp(t.func.vmap(f), (x.view(1, 3),), (t.tensor([[1.0, 2.0, 3.0]]),)),
}  # fmt: skip
SEEN = (
    "z.is_leaf", "z.grad_fn is None", "z._base is None", "z._is_view()", "z.requires_grad", "z.grad is None", "z is x", "z._version", "z[:2]._is_view()",
    "(z * 2).grad_fn is None", "(z * 2).is_leaf", "type(z) is t.Tensor",
)  # fmt: skip
CHANGES = ("z.mul_(2)", "z[:2].mul_(2)", "z.view(3)[1:].mul_(z[:2])", "z.zero_()", "z[:1].zero_()", "z.add_(z[1:2])")
#: which an operand in forward mode is not asked to take: what a derivative reads is changed, or it requires grad here
MORE = ("z[0] = 3.0", "z *= z", "z.exp_().neg_()", "z.detach_()", "z.register_hook(lambda g: g * 3)")


def told(found):
    if isinstance(found, tuple):
        return [told(part) for part in found]
    return [round(v, 4) for v in found.detach().flatten().tolist()]


def outcome(t, way, call, primal, seen=False):
    """What was seen, or what came of it: the results, the operand afterwards, and the gradient of a leaf by both of them."""
    leaf = t.tensor([0.5, 1.5, 0.25], requires_grad=True)
    x = PRIMALS[primal](t, leaf)
    notes = []

    def f(z):
        names = {"t": t, "z": z, "x": x}
        if seen:
            notes.append(eval(call, names))
        else:
            exec(call, names)
        return z * z

    try:
        found = way(t, f, x)
    except RuntimeError as error:
        return "refused", "leaf Variable that requires grad is being used in an in-place" in str(error), told(x)
    if seen:
        return notes[0]
    outputs = [out.sum() for out in (*(found if isinstance(found, tuple) else (found,)), x) if out.requires_grad]
    try:
        g = t.autograd.grad(outputs, leaf, allow_unused=True)[0] if outputs else None
    except RuntimeError:  # PyTorch's tangents have saved what the function has changed since
        return told(found), told(x), x._version, None
    return told(found), told(x), x._version, told(t.zeros(3) if g is None else g)


@pytest.mark.parametrize("primal", PRIMALS)
@pytest.mark.parametrize("way", BACK)
def test_it_is_a_leaf_to_the_function(way, primal):
    wrong = {call: pair for call in SEEN if (pair := [outcome(t, BACK[way], call, primal, True) for t in (ours, torch)])[0] != pair[1]}
    assert not wrong


@pytest.mark.parametrize("primal", PRIMALS)
@pytest.mark.parametrize("way", {**BACK, **FORWARD})
def test_changes_in_place(way, primal):
    wrong = {}
    for call in (*CHANGES, *MORE) if way in BACK else CHANGES:
        mine, theirs = (outcome(t, {**BACK, **FORWARD}[way], call, primal) for t in (ours, torch))
        if mine != theirs and not (mine[:3] == theirs[:3] and theirs[3] is None):
            wrong[call] = mine, theirs
    assert not wrong


@pytest.mark.parametrize("primal", PRIMALS)
@pytest.mark.parametrize("way", ["grad", "vjp", "jacrev"])
def test_an_operand_that_is_returned_is_the_callers(way, primal):
    def returned(t):
        x = PRIMALS[primal](t, t.tensor([0.5, 1.5, 0.25], requires_grad=True))
        calls = {
            "grad": lambda: (
                t.func.grad(lambda z: (z.sum(), z), has_aux=True)(x)[1], t.func.grad_and_value(lambda z: (z.sum(), [z, z * 2]), has_aux=True)(x)[1][1][0],
            ),
            "vjp": lambda: (t.func.vjp(lambda z: z, x)[0], t.func.vjp(lambda z: (z, z * 2), x)[0][0], t.func.vjp(lambda z: (z * 2, z), x, has_aux=True)[2]),
            "jacrev": lambda: (t.func.jacrev(lambda z: (z * 2, z), has_aux=True)(x)[1],),
        }
        part = t.func.vjp(lambda z: z[:2], x)[0]
        return [found is x for found in calls[way]()], part.requires_grad and (part._base is x or part._base is x._base)

    assert returned(ours) == returned(torch)


def test_gradients_of_gradients_are_no_views():
    """Of any way in which they come."""
    f = ours.func
    cube = lambda z: (z**3).sum()
    x = ours.rand(3, 4, requires_grad=True)
    for found in (
        f.grad(lambda z: f.grad(cube)(z).sum())(x), f.grad(lambda y, z: (y * f.grad(cube)(z)).sum(), argnums=(0, 1))(x, x)[1],
        f.vjp(f.grad(cube), x)[1](ours.ones(3, 4))[0], f.vmap(f.grad(lambda z: f.grad(cube)(z).sum()))(x), f.grad(lambda z: f.vmap(f.grad(cube))(z).sum())(x),
        f.grad(lambda d: f.grad(cube)(d["a"]).sum())({"a": x})["a"],
    ):  # fmt: skip
        assert found.requires_grad and not found._is_view()
        found.detach_()


@pytest.mark.parametrize("primal", ["nobody else's", "a result", "a part", "of what is shown"])
def test_complex_operands(primal):
    """Which are changed by way of views that show conjugates, or show them themselves."""
    functions = (
        lambda u: u.conj() * u, lambda u: u.conj(), lambda u: u.conj().imag * 2, lambda u: u.conj() + u * u, lambda u: (u.mul_(2), u.conj() * u)[1],
        lambda u: (u.conj().mul_(1j), u * u)[1], lambda u: (u.imag.mul_(3), u * u)[1], lambda u: (u.conj().imag.zero_(), u * u)[1],
    )  # fmt: skip

    def found(t, f, way):
        leaf = t.tensor([0.5 + 1j, 1.5 - 2j, 0.25 + 0.5j], dtype=t.complex128).requires_grad_()
        x = (leaf * 2).conj() if primal == "of what is shown" else PRIMALS[primal](t, leaf)
        try:
            if way == "jvp":
                results = t.func.jvp(f, (x,), ((x.detach() * 1j).conj().resolve_conj().conj() if x.is_conj() else x.detach() * 1j,))
            else:
                value, pull = t.func.vjp(f, x)
                results = value, pull(t.ones_like(value))[0]
            total = sum((out.abs().square().sum() for out in (*results, x) if out.requires_grad), t.zeros(()))
            g = t.autograd.grad(total, leaf)[0] if total.requires_grad else leaf.detach()
        except RuntimeError:
            return "refused"
        return [torch.view_as_real(torch.tensor(out.detach().resolve_conj().tolist(), dtype=torch.complex128)) for out in (*results, g)]

    for k, f in enumerate(functions):
        for way in ("jvp", "vjp"):
            mine, theirs = found(ours, f, way), found(torch, f, way)
            if theirs == "refused":  # or the gradient by a tangent that was changed
                assert way == "jvp" or mine == theirs, (k, way)
            else:
                assert mine != "refused" and all(map(torch.allclose, mine, theirs)), (k, way)
