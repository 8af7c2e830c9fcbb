"""Old switches and helpers of PyTorch that its own tests use: what they do to modules, gradients and checks is the same."""

from __future__ import annotations

import io
from collections import OrderedDict
from importlib import import_module

import pytest

torch = pytest.importorskip("torch")

import autograd_nb as ours  # noqa: E402

from .test_old_programs import outcome, same  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore")


def place(lib, name):
    return import_module(f"{'torch' if lib is torch else 'autograd_nb'}.{name}")


CONVERSIONS = {
    "double": lambda m: m.double(), "float": lambda m: m.float(), "to": lambda m: m.to(dtype=m.bias.dtype), "apply": lambda m: m._apply(lambda x: x + 1),
    "in place": lambda m: m._apply(lambda x: x.add_(1)),
}  # fmt: skip


@pytest.mark.parametrize("overwrites", [False, True])
@pytest.mark.parametrize("conversion", CONVERSIONS)
def test_whether_conversions_keep_parameters(conversion, overwrites):
    def program(t):
        m = t.nn.Linear(2, 3)
        m.weight.grad = t.ones(3, 2)
        before, view = [m.weight, m.weight.grad], m.weight[:]
        version = m.weight._version
        switch = place(t, "__future__")
        switch.set_overwrite_module_params_on_conversion(overwrites)
        try:
            assert switch.get_overwrite_module_params_on_conversion() is overwrites
            CONVERSIONS[conversion](m)
        finally:
            switch.set_overwrite_module_params_on_conversion(False)
        after = [m.weight, m.weight.grad]
        kinds = [isinstance(m.weight, t.nn.Parameter), m.weight.requires_grad, m.weight.grad.requires_grad]
        return [a is b for a, b in zip(after, before, strict=True)], kinds, [x.dtype for x in (*before, *after, view)], before[0]._version > version

    same(program)


def test_modules_can_be_made_sparse():
    def program(t):
        m = t.nn.Linear(3, 2)
        weight = m.weight
        m._apply(lambda x: t.sparse_coo_tensor(t.zeros(x.ndim, 1, dtype=t.int64), t.ones(1), x.shape))
        return m.weight is weight, isinstance(m.weight, t.nn.Parameter), m.weight

    same(program)


def test_hooks_of_all_modules_can_be_set_anew():
    def program(t):
        home, seen = place(t, "nn.modules.module"), []
        home.register_module_forward_hook(lambda *a: seen.append("after"))
        home.register_module_forward_pre_hook(lambda *a: seen.append("before"))
        m = t.nn.Identity()
        m(1)
        counts = [len(home._global_forward_hooks), len(home._global_forward_pre_hooks), len(home._global_backward_hooks)]
        home._global_forward_hooks, home._global_forward_pre_hooks = OrderedDict(), OrderedDict()
        m(2)
        return seen, counts

    same(program)


def test_steps_without_a_gradient_and_with_an_error():
    def program(t):
        made, seen, x = t._C._functions, [], t.ones(2, requires_grad=True)

        class Sees(t.autograd.Function):
            @staticmethod
            def forward(ctx, x, zeros):
                ctx.set_materialize_grads(zeros)
                return x * 2

            @staticmethod
            def backward(ctx, g):
                seen.append(None if g is None else g.tolist())
                return g, None

        for zeros in (True, False):
            made.UndefinedGrad()(Sees.apply(x, zeros)).sum().backward()
        y = made.DelayedError("not yet", 1)(x * 3)
        return seen, y.tolist(), y.requires_grad, outcome(lambda _: y.sum().backward(), t)

    same(program)


def test_helpers():
    def nested(t):
        f = place(t, "autograd.function")._nested_map(lambda x: isinstance(x, int), lambda x: x + 1, "ints")
        return f([1, (2, {"a": 3}), None]), outcome(lambda _: f(["a"]), t)

    def jacobian(t):
        x, y = t.tensor([[1.0, 2.0]], dtype=t.float64), t.tensor(3.0, dtype=t.float64)
        found = place(t, "autograd.gradcheck").get_numerical_jacobian(lambda a: a[0] * a[0] * a[1], (x.requires_grad_(), y.requires_grad_()), eps=0.5)
        return list(found)

    def summary(t):
        x = t.arange(300.0).reshape(1, 20, 5, 3)
        return [place(t, "_tensor_str").get_summarized_data(v) for v in (x, x[0, 0, 0, 0], x[0, :, 0, 0])]

    def files(t):
        found = []
        for text in (b"PK\x03\x04more", b"", b"PK"):
            f = io.BytesIO(text)
            found.append((place(t, "serialization")._is_zipfile(f), f.tell()))
        return found, issubclass(place(t, "serialization").SourceChangeWarning, Warning)

    def formats(t):
        m = t.nn.Sequential(t.nn.Conv2d(2, 2, 3), t.nn.ConvTranspose2d(2, 2, 3), t.nn.Linear(2, 2))
        m = t.nn.utils.convert_conv2d_weight_memory_format(m, t.channels_last)
        return [p.stride() for p in m.parameters()]

    def names(t):
        classes = t._storage_classes
        return t._nnpack_available() in (True, False), t.FloatStorage in classes, isinstance(t._tensor_classes, set), t.jit._wait(t.jit._fork(lambda: 2))

    for program in (nested, jacobian, summary, files, formats, names):
        same(program)


def test_gradients_of_sparse_tensors_with_histories_add():
    def program(t):
        found = []
        for graph in (False, True):
            p = t.tensor([1.5, 1.5]).requires_grad_()
            p.grad = t.sparse_coo_tensor(t.tensor([[1, 1]]), t.ones(2), (2,))
            before = p.grad
            p.backward(t.sparse_coo_tensor(t.tensor([[1, 0]]), t.ones(2), (2,)), create_graph=graph)
            found.append((p.grad, p.grad is before))
        return found

    same(program)


def test_sparse_tensors_are_saved_for_backward():
    def program(t):
        class Fixed(t.autograd.Function):
            @staticmethod
            def forward(ctx, x, g):
                ctx.save_for_backward(g)
                return x

            @staticmethod
            def backward(ctx, _):
                return ctx.saved_tensors[0], None

        x = t.ones(2, 3, requires_grad=True)
        s = t.sparse_coo_tensor(t.tensor([[0, 1]]), t.arange(6.0).reshape(2, 3), (2, 3))
        (Fixed.apply(x, s) + Fixed.apply(x, t.ones(2, 3)) + Fixed.apply(x, s)).sum().backward()
        return x.grad

    same(program)


def test_views_of_what_a_function_made_itself():
    def program(t):
        class Part(t.autograd.Function):
            @staticmethod
            def forward(ctx, x, changed):
                view = x.clone()[:2]
                if changed:
                    view += 2
                return view

            @staticmethod
            def backward(ctx, g):
                return t.cat([g, g.new_zeros(1)]), None

        x = t.arange(3.0, requires_grad=True)
        found = [Part.apply(x, changed) for changed in (False, True)]
        (found[1] * 3).sum().backward()
        return [y.grad_fn.name() for y in found], found, x.grad

    same(program)


def test_views_that_a_function_returns_without_a_graph():
    for lib in (ours, torch):

        class Alias(lib.autograd.Function):
            @staticmethod
            def forward(ctx, x):
                return x[:]

        with lib.no_grad():
            y = Alias.apply(lib.ones(2, requires_grad=True))
        with pytest.raises(RuntimeError, match="A view was created in no_grad mode and is being modified inplace"):
            y.zero_()


def test_old_constructor_refuses_nodes():
    same(lambda t: t.autograd.Variable(t.zeros(1), _grad_fn=t.ones(1, requires_grad=True).clone().grad_fn))
    same(lambda t: t.autograd.Variable(t.zeros(1), _grad_fn=type("Id", (t.autograd.Function,), {})()))


BAD = {
    "text": lambda x: "a", "texts": lambda x: (x.sum(), "a"), "detached": lambda x: x.detach().sum(), "another's": lambda x: x.new_ones(()).requires_grad_(),
    "linear": lambda x: x.sum(), "vector": lambda x: x * 2, "itself": lambda x: x, "several": lambda x: (x.sum(), (x**2).sum()),
    "of one": lambda x, y: x.sum(), "linear in one": lambda x, y: (x**2).sum() + y.sum(), "cubic": lambda x: (x**3).sum(),
}  # fmt: skip


@pytest.mark.parametrize("strict", [False, True])
@pytest.mark.parametrize("bad", BAD)
@pytest.mark.parametrize("name", ["hessian", "hvp", "vhp", "jacobian", "vjp"])
def test_what_functionals_say_of_functions(name, bad, strict):
    said = []
    for lib in (ours, torch):
        x = lib.arange(1.0, 3.0)
        inputs = (x, x.clone()) if "one" in bad else x
        given = {} if name in ("hessian", "jacobian") else {"v": lib.ones(()) if name == "vjp" else inputs}
        try:
            getattr(lib.autograd.functional, name)(BAD[bad], inputs, strict=strict, **given)
            said.append(None)
        except Exception as error:
            said.append((RuntimeError if isinstance(error, RuntimeError) else type(error), str(error)[:110].partition(" has type")[0]))
    assert said[0] == said[1]


def said(call):
    """Return the beginning of an error's message, and its class."""
    try:
        return call()
    except Exception as error:
        return (RuntimeError if isinstance(error, RuntimeError) else type(error)), str(error)


def test_what_errors_and_warnings_say():
    for lib in (ours, torch):
        x = lib.ones(3)
        assert said(lambda x=x: x.as_strided((1, 1), (2, -1)))[1].startswith(
            "as_strided: Negative strides are not supported at the moment, got strides: [2, -1]"
        )
        images, weights = lib.ones(1, 1, 2, 2), lib.ones(1, 1, 1, 1)
        for conv in (lib.nn.functional.conv2d, lib.nn.functional.conv_transpose2d):
            for a, b, names in ((images.long(), weights.double(), "Long.*Double"), (images, weights.double(), "Float.*Double")):
                with pytest.raises(RuntimeError, match=f"expected scalar type {names.replace('.*', ' but found ')}"):
                    conv(a, b)
        for wrong in (lib.float32, 3, int):
            assert said(lambda lib=lib, wrong=wrong: lib.set_default_tensor_type(wrong))[0] is TypeError
        for shape in ((1, 49), (51,)):
            out = lib.zeros(shape)
            with pytest.warns(UserWarning, match=r"The out tensor will be resized to a tensor of shape \(50,\)"):
                assert lib.arange(50, out=out) is out
            assert out.tolist() == list(range(50))


@pytest.mark.parametrize("dtype", ["bool", "uint8", "int64", "float32", "float64", "complex64"])
def test_tensors_of_complex_numbers_in_lists(dtype):
    for data in ([1j, 0], [[0j]], [1.5, 2j], 2j, [True, 0j]):
        same(lambda t, data=data: t.tensor(data, dtype=getattr(t, dtype)))


BASES = ["add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "lshift", "rshift", "and", "or", "xor"]
OPERATORS = ["lt", "le", "gt", "ge", "eq", "ne", "rmatmul", *(p + b for b in BASES for p in ("", "r", "i") if p + b != "rtruediv")]


@pytest.mark.parametrize("dtype", ["bool", "uint8", "int64", "float32", "complex64"])
@pytest.mark.parametrize("name", OPERATORS)
def test_operators_leave_to_python_what_they_do_not_know(name, dtype):
    class Unknown:
        pass

    def program(t):
        x = t.ones(2, 2).to(getattr(t, dtype))
        return [getattr(x, f"__{name}__")(other) is NotImplemented for other in (Unknown(), "a", None, [1])], x

    same(program)


def test_in_place_operators_ask_the_other_operand():
    class Answers:
        def __radd__(self, x):
            return "asked"

        __rmul__ = __rtruediv__ = __ror__ = __radd__

    def program(t):
        found = []
        for op in ("__iadd__", "__imul__", "__itruediv__", "__ior__"):
            x = t.ones(2).bool() if op == "__ior__" else t.ones(2)
            scope = {"x": x, "y": Answers()}
            exec({"__iadd__": "x += y", "__imul__": "x *= y", "__itruediv__": "x /= y", "__ior__": "x |= y"}[op], scope)
            found.append(scope["x"])
        return found

    same(program)
