"""What PyTorch's own tests ask of old names, constructors, files and errors: the same answers, or errors of the same class."""

from __future__ import annotations

import io
from copy import deepcopy

import numpy as np
import pytest

torch = pytest.importorskip("torch")

import autograd_nb as ours  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore")


def shown(value):
    if isinstance(value, (ours.Tensor, torch.Tensor)):
        value = value.detach()
        return (str(value.dtype).rpartition(".")[2], tuple(value.shape), value.to_dense().tolist())
    if isinstance(value, (tuple, list)):
        return [shown(v) for v in value]
    return str(value) if isinstance(value, (ours.dtype, torch.dtype)) else value


def outcome(program, lib):
    try:
        return shown(program(lib))
    except Exception as error:
        return type(error)


def same(program):
    mine, theirs = outcome(program, ours), outcome(program, torch)
    if isinstance(theirs, type):
        assert isinstance(mine, type), (mine, theirs)
        assert issubclass(mine, theirs), (mine, theirs)
    else:
        assert mine == theirs


EXPOSURES = {
    "numpy": lambda t, x: (x.numpy(), x)[1], "of a view": lambda t, x: (x[1:].numpy(), x)[1], "of data": lambda t, x: (x.data.numpy(), x)[1],
    "array": lambda t, x: (np.asarray(x), x)[1], "from_numpy": lambda t, x: t.from_numpy(np.ones(3, np.float32)),
    "as_tensor": lambda t, x: t.as_tensor(np.ones(3, np.float32)), "dlpack": lambda t, x: t.from_dlpack(np.ones(3, np.float32)),
    "buffer": lambda t, x: t.frombuffer(bytearray(12), dtype=t.float32), "copied": lambda t, x: t.tensor(np.ones(3)), "none": lambda t, x: x,
}  # fmt: skip
CHANGES = {
    "grows": lambda t, x: tuple(x.resize_(7).shape), "stays": lambda t, x: tuple(x.resize_(3, 1).shape),
    "shrinks": lambda t, x: tuple(x.resize_(2).shape),
    "like": lambda t, x: tuple(x.resize_as_(t.ones(2, 4)).shape), "view": lambda t, x: tuple(x[1:].resize_(5).shape),
    "out": lambda t, x: tuple(t.add(t.ones(5, dtype=x.dtype), 1, out=x).shape), "set": lambda t, x: tuple(x.set_(t.ones(9, dtype=x.dtype)).shape),
}  # fmt: skip


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("how", EXPOSURES)
def test_memory_that_others_read_too_does_not_grow(how, change):
    same(lambda t: CHANGES[change](t, EXPOSURES[how](t, t.ones(3))))


CONSTRUCTIONS = {
    "another dtype": lambda t: t.FloatTensor(t.tensor([1, 2])), "any dtype": lambda t: t.Tensor(t.tensor([1, 2])),
    "new": lambda t: t.ones(1).new(t.tensor([1])),
    "device": lambda t: t.FloatTensor([1], device="cpu"), "gpu": lambda t: t.FloatTensor([1], device="cuda"),
    "size": lambda t: tuple(t.Tensor(size=(2, 3)).shape),
    "new of a size": lambda t: tuple(t.ones(1).new(size=(2, 3)).shape), "storage": lambda t: t.FloatTensor(t.ones(3).storage()),
    "tuple and number": lambda t: t.LongTensor((6, 0), 1, 1, 0), "range": lambda t: t.Tensor(range(3)), "number": lambda t: t.Tensor(3.0),
    "text": lambda t: t.Tensor("a"), "subclass": lambda t: type("Mine", (t.FloatTensor,), {}), "no size": lambda t: tuple(t.Tensor().shape),
}  # fmt: skip


@pytest.mark.parametrize("name", CONSTRUCTIONS)
def test_old_constructors(name):
    same(CONSTRUCTIONS[name])


def _cyclic(t):
    z = [0]
    z += [z]
    return t.tensor(z)


class Listing:
    def __init__(self, works):
        self.works = works

    def __len__(self):
        return 2

    def __getitem__(self, index):
        if not self.works:
            raise TypeError
        if index > 1:
            raise IndexError
        return float(index)


DATA = {
    "cyclic": _cyclic, "texts": lambda t: t.tensor([0, "torch"]), "listing": lambda t: t.Tensor(Listing(True)),
    "broken": lambda t: t.Tensor(Listing(False)),
    "apply": lambda t: t.arange(3).apply_(lambda k: "x"), "map": lambda t: t.ones(2).map_(t.ones(2).double(), lambda a, b: a),
    "map2": lambda t: t.arange(6.0).view(2, 3).map2_(t.arange(3.0), t.ones(2, 1), lambda a, b, c: a + b * c),
    "map2 of another dtype": lambda t: t.ones(2).map2_(t.ones(2), t.ones(2).double(), lambda a, b, c: a),
    "apply of what requires grad": lambda t: t.ones(2, requires_grad=True).apply_(lambda k: k),
    "map of what requires grad": lambda t: (t.ones(2, requires_grad=True) * 2).map_(t.ones(2), lambda a, b: a),
}  # fmt: skip


@pytest.mark.parametrize("name", DATA)
def test_data_of_other_kinds(name):
    same(DATA[name])


@pytest.mark.parametrize("name", ["data", "requires_grad", "_grad_fn", "_backward_hooks", "grad"])
def test_attributes_are_not_deleted(name):
    same(lambda t: delattr(t.ones(2, requires_grad=True), name))


def test_data_of_another_layout_is_refused():
    def program(t):
        x = t.ones(1, 2)
        x.data = t.ones(1, 2).to_sparse()

    same(program)


def test_storages_and_tensors_are_copied_together():
    def program(t):
        a, b = t.arange(4.0), t.arange(10.0, 14.0)
        copies = deepcopy([a, [a.storage(), b.storage()], b, a.view(2, 2)])
        copies[0].add_(1)
        copies[2].sub_(1)
        return [copies[0], copies[1][0].tolist(), copies[1][1].tolist(), copies[2], copies[3], a, b]

    same(program)


def test_dense_gradients_do_not_change_the_sparse_one_that_was_there():
    def program(t):
        x = t.ones(2, requires_grad=True)
        x.grad = old = t.sparse_coo_tensor(t.tensor([[1, 1]]), t.tensor([1.0, 1.0]))
        x.backward(t.tensor([1.5, 1.5]))
        return [x.grad, x.grad is old, old.is_sparse, old]

    same(program)


def test_sparse_gradients_keep_the_indices_that_were_given():
    def program(t):
        table, at = t.nn.Embedding(10, 2, sparse=True), t.tensor([7, 1, 3])
        table(at).sum().backward()
        at[0] = 8
        empty = t.nn.Embedding(4, 0, sparse=True)
        empty(t.tensor([[0, 2]])).sum().backward()
        return [table.weight.grad._indices(), tuple(empty.weight.grad.shape)]

    same(program)


def test_nodes_are_called_with_as_many_gradients_as_they_have_outputs():
    for gradients in (0, 1, 2):
        same(lambda t, n=gradients: ((t.ones(1, requires_grad=True) ** 2).grad_fn(*[t.ones(1)] * n)))


def test_hooks_on_modules_of_batch_norm_see_three_gradients():
    def program(t):
        seen, norm = [], t.nn.BatchNorm1d(5)
        norm.register_backward_hook(lambda m, given, out: seen.append((len(given), len(out))))
        y = norm(t.arange(10.0).view(2, 5).requires_grad_())
        y.sum().backward()
        return [seen, len(y.grad_fn.next_functions)]

    same(program)


def test_old_hooks_are_named_in_errors():
    def short(module, given, out):
        return given[:-1]

    for lib in (ours, torch):
        module = lib.nn.Sigmoid()
        module.register_backward_hook(short)
        with pytest.raises(RuntimeError, match=r"short.*got 0, but expected 1"):
            module(lib.ones(2, requires_grad=True)).sum().backward()


def test_functions_of_users_own_may_be_instances_and_of_the_old_class():
    def program(t):
        class Double(t.autograd.function.InplaceFunction):
            @staticmethod
            def forward(ctx, x):
                ctx.mark_dirty(x)
                return x.mul_(2)

            @staticmethod
            def backward(ctx, g):
                return g * 2

        x = t.ones(2, requires_grad=True)
        y = Double(True).apply(x * 1)
        y.sum().backward()
        return [y, x.grad]

    same(program)
    same(lambda t: type("F", (t.autograd.Function,), {"forward": staticmethod(lambda ctx, x: x)})()(t.ones(1)))


MODULES_TO = {
    "device and flag": lambda t, m: m.to(t.device("cpu"), True), "text and flag": lambda t, m: m.to("cpu", True),
    "two flags": lambda t, m: m.to(t.float, True, True),
    "all": lambda t, m: m.to("cpu", t.float, True), "copy": lambda t, m: m.to(t.float, copy=True), "tensor": lambda t, m: m.to(t.ones(1), True),
}  # fmt: skip


@pytest.mark.parametrize("name", MODULES_TO)
def test_flags_of_to(name):
    same(lambda t: MODULES_TO[name](t, t.nn.Linear(1, 1)) and None)
    same(lambda t: tuple(t.ones(1).to("cpu", True).shape))


class Bare:
    """A file of which only a few methods are there."""

    def __init__(self, content, missing=()):
        self.file, self.calls = io.BytesIO(content), set()
        for name in {"read", "readline", "seek", "tell", "write", "flush", "readinto"} - set(missing):
            setattr(self, name, self.counted(name))

    def counted(self, name):
        def call(*args):
            self.calls.add(name)
            return getattr(self.file, name)(*args)

        return call


@pytest.mark.parametrize("missing", [(), ("readinto",), ("seek", "tell")])
def test_files_with_few_methods(missing):
    def program(t):
        written = Bare(b"", missing)
        t.save(t.arange(5.0), written)
        assert written.calls <= {"write", "flush"}
        return t.load(Bare(written.file.getvalue(), missing))

    same(program)


def test_old_files_with_bytes_for_texts():
    content = (
        b"\x80\x02\x8a\nl\xfc\x9cF\xf9 j\xa8P\x19.\x80\x02M\xe9\x03.\x80\x02}q\x01(U\x10protocol_versionq\x02M\xe9\x03U\ntype_sizesq\x03}q\x04(U\x03intq"
        b"\x05K\x04U\x05shortq\x06K\x02U\x04longq\x07K\x04uU\rlittle_endianq\x08\x88u.\x80\x02]q\x01(U\x02\xc5\xbcq\x02ctorch._utils\n_rebuild_tensor_v2\nq"
        b"\x03((U\x07storageq\x04ctorch\nFloatStorage\nq\x05U\x0845640624q\x06U\x03cpuq\x07\x8a\x01\x01NtQK\x00K\x01\x85K\x01\x85\x89NtRq\x08K\x02e.\x80\x02"
        b"]q\x01U\x0845640624q\x02a.\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x80?"
    )
    for encoding in ("utf-8", "bytes"):
        same(lambda t, e=encoding: t.load(io.BytesIO(content), encoding=e))


NUMBERS = {
    "tolerance with a gradient": lambda t: t.isclose(t.ones(1), t.ones(1), t.tensor(1.0, requires_grad=True)),
    "tolerances": lambda t: t.isclose(t.ones(1), t.ones(1), t.tensor(1), t.tensor(1.0)),
    "many categories": lambda t: t.multinomial(t.ones(1, 2**24 + 1), 2, True),
    "shape": lambda t: tuple(t._C._infer_size(t.Size([2, 1]), t.Size([3]))), "order": lambda t: t.empty(2, 3, 4).permute(2, 0, 1).dim_order(),
    "ambiguous": lambda t: t.empty(1, 2, 3, 4).dim_order(ambiguity_check=True),
    "one": lambda t: t.empty(1, 2, 3, 4).dim_order(ambiguity_check=[t.channels_last]),
    "no check": lambda t: t.empty(1, 2).dim_order(ambiguity_check="x"), "resize": lambda t: t.arange(6.0).resize(3, 2),
    "resize to more": lambda t: t.ones(2).resize(3),
    "resize as": lambda t: t.arange(6.0).resize_as(t.ones(2, 3)),
    "overlap": lambda t: [t._debug_has_internal_overlap(x) for x in (t.ones(3, 3), t.ones(1, 3).expand(4, 3))],
    "gradients": lambda t: str(t.ones(2).grad_dtype),
    "all": lambda t: [t.tensor([True, False])._is_all_true(), t.tensor([True, False])._is_any_true()],
    "load": lambda t: t.ones(2).module_load(t.zeros(2)), "eig": lambda t: t.eye(2).eig(), "scale": lambda t: t.ones(1).q_scale(),
    "renorm": lambda t: t.embedding_renorm_(t.ones(3, 2) * 5, t.tensor([0, 0, 2]), 1.0, 2.0),
    "dropout": lambda t: t.native_dropout(t.ones(3), 0.5, False),
    "pool": lambda t: t.max_pool1d_with_indices(t.arange(6.0).view(2, 3), 2), "wrap": lambda t: t.ones(2).__array_wrap__(np.ones(2)),
    "rebuild": lambda t: t._utils._rebuild_tensor_v2(t.arange(4.0).storage(), 1, (2,), (2,), False, {}),
    "float indices": lambda t: t.sparse_coo_tensor(t.zeros(1, 1), t.ones(1)),
}  # fmt: skip


@pytest.mark.parametrize("name", NUMBERS)
def test_old_functions_and_methods(name):
    same(NUMBERS[name])


def test_files_as_tensors(tmp_path):
    def program(t):
        path = str(tmp_path / t.__name__)
        x = t.from_file(path, True, 4, dtype=t.int32).copy_(t.arange(4))
        again = t.from_file(path, False, 4, dtype=t.int32)
        again.add_(1)
        return [x, again, t.from_file(path, True, 4, dtype=t.int32)]

    same(program)
    same(lambda t: t.from_file(str(tmp_path / "none"), size=2))


def test_every_name_of_the_package_and_of_tensors_is_there():
    assert [n for n in dir(torch) if not n.startswith("_") and not hasattr(ours, n)] == []
    absent = {"ccol_indices", "row_indices", "to_sparse_csc", "resize_as_sparse_", "sparse_resize_", "sparse_resize_and_clear_", "sspaddmm", "smm"}
    missing = {n for n in dir(torch.Tensor) if not n.startswith("_") and not hasattr(ours.Tensor, n)}
    assert missing <= absent | {"index", "slice_inverse"}


MORE = {
    "flag": lambda t: t.add(t.ones(1), 1, alpha=True), "flags": lambda t: t.add(t.tensor(True), t.tensor(True), alpha=True),
    "gradient": lambda t: t.ones(2).map2_(t.ones(2), t.ones(2, requires_grad=True), lambda a, b, c: a), "type": lambda t: t.arange(3).type(t.Tensor),
    "bag": lambda t: t.nn.functional.embedding_bag(t.tensor([[1]]), t.ones(3, 2), per_sample_weights=t.ones(1, 1).double(), mode="sum"),
}  # fmt: skip


@pytest.mark.parametrize("name", MORE)
def test_flags_and_kinds(name):
    same(MORE[name])


def test_sparse_and_dense_gradients_of_one_tensor_meet():
    def program(t):
        class Sparse(t.autograd.Function):
            @staticmethod
            def forward(ctx, x):
                return x.sum()

            @staticmethod
            def backward(ctx, g):
                return t.sparse_coo_tensor(t.tensor([[1, 1]]), t.ones(2), (3,)) * g

        found = []
        for parts in ((0, 1), (1, 0), (0, 1, 0), (1, 1)):
            x = t.ones(3, requires_grad=True)
            sum((Sparse.apply(x) if sparse else (x * 2).sum()) for sparse in parts).backward()
            found.append(x.grad)
        return found

    same(program)


def test_old_name_of_saved_tensors():
    class Twice(ours.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * 2

        @staticmethod
        def backward(ctx, g):
            with pytest.warns(DeprecationWarning, match="saved_variables"):
                (x,) = ctx.saved_variables
            return g * 2 * x

    x = ours.full((2,), 3.0, requires_grad=True)
    y = Twice.apply(x)
    assert y.grad_fn.__class__ is Twice._backward_cls
    y.sum().backward()
    assert x.grad.tolist() == [6.0, 6.0]


def test_sparse_layouts_are_not_ignored():
    with pytest.raises(NotImplementedError, match="to_sparse"):
        ours.ones(2, layout=ours.sparse_coo)
    for make in (ours.zeros, ours.ones, ours.empty):
        assert make is ours.ones or make(2, layout=ours.sparse_coo).layout is ours.sparse_coo
        assert make(2, layout=ours.strided).shape == (2,)


def test_storages_over_files(tmp_path):
    def program(t):
        path = str(tmp_path / ("storage" + t.__name__))
        t.FloatTensor(t.FloatStorage.from_file(path, True, 4)).copy_(t.arange(4.0))
        return t.FloatTensor(t.FloatStorage.from_file(path, False, 4))

    same(program)


@pytest.mark.parametrize("name", ["dropout", "alpha_dropout", "feature_alpha_dropout", "dropout1d", "dropout2d", "dropout3d"])
@pytest.mark.parametrize("learnt", [False, True])
def test_probabilities_that_are_learnt_are_refused(name, learnt):
    same(lambda t: tuple(getattr(t.nn.functional, name)(t.ones(2, 3, 4), p=t.tensor(0.5, requires_grad=learnt)).shape))


def test_old_name_of_storages_goes_by_the_default_dtype():
    def program(t):
        before, found = t.get_default_dtype(), []
        try:
            for d in (t.float64, t.float16, t.bfloat16, t.float32):
                t.set_default_dtype(d)
                found.append((t.Storage.__name__, t.Storage([1.0, 2.0]).dtype, t.storage is not None))
        finally:
            t.set_default_dtype(before)
        return found

    same(program)


def test_where_a_warning_of_a_replaced_step_sends_to():
    def program(t):
        optimizer = t.optim.SGD([t.ones(1, requires_grad=True)], lr=0.1)
        scheduler = t.optim.lr_scheduler.StepLR(optimizer, 2)
        optimizer.step = lambda: None
        with pytest.warns(UserWarning, match="overridden.*how-to-adjust-learning-rate"):
            scheduler.step()
        return True

    same(program)


@pytest.mark.parametrize("space", ["sparse", "nn.functional", "autograd", "nn.modules.module", "distributions.transforms"])
def test_the_library_is_reached_through_its_namespaces(space):
    """As one-hot vectors were made: `torch.sparse.torch.eye`."""

    def program(lib):
        found = lib
        for part in (*space.split("."), "torch"):
            found = getattr(found, part)
        return found is lib

    same(program)


@pytest.mark.parametrize("name", ["SGD", "Adam", "LBFGS", "Rprop"])
@pytest.mark.parametrize(
    "made",
    [
        lambda lib, ps: lib.nn.ParameterList(ps), lambda lib, ps: iter(ps), lambda lib, ps: dict(enumerate(ps)).values(), lambda lib, ps: ps,
        lambda lib, ps: lib.nn.ParameterDict({"a": ps[0]}).values(), lambda lib, ps: [{"params": lib.nn.ParameterList(ps)}],
        lambda lib, ps: lib.nn.Linear(1, 1), lambda lib, ps: lib.nn.Sequential(lib.nn.Linear(1, 1)), lambda lib, ps: lib.nn.ParameterDict({"a": ps[0]}),
        lambda lib, ps: lib.nn.Linear(1, 1).parameters, lambda lib, ps: lib.nn.ParameterList(),
    ],
)  # fmt: skip
def test_what_optimizers_take_for_parameters(name, made):
    """Whatever gives tensors one by one, a module that is a list of parameters among it; no other module."""
    same(lambda lib: len(getattr(lib.optim, name)(made(lib, [lib.nn.Parameter(lib.ones(n)) for n in (1, 2)]), lr=0.1).param_groups[0]["params"]))
