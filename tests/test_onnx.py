"""ONNX files of modules and functions, beside the reference evaluator of the package onnx."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path

import numpy as np
import pytest

import autograd_nb as torch
from autograd_nb import nn
from autograd_nb.nn import functional as F

onnx = pytest.importorskip("onnx", reason="needs the package onnx (the extra onnx)")
reference = pytest.importorskip("onnx.reference")


def compare(model, *args, axes=None, other=None, tolerance=2e-5):
    """The evaluator's results of the exported file are the module's, for the example and, with dynamic axes, for inputs of other sizes."""
    names = [f"in{i}" for i in range(len(args))]
    program = torch.onnx.export(model, args, input_names=names, dynamic_axes=axes)
    run = reference.ReferenceEvaluator(program.model_proto)
    if isinstance(model, nn.Module):
        model.eval()
    for given in (args, other or tuple(a * 0.7 + 0.1 if a.is_floating_point() else a for a in args)):
        with torch.no_grad():
            expected = model(*given)
        found = run.run(None, {n: a.numpy() for n, a in zip(names, given, strict=True)})
        expected = list(expected) if isinstance(expected, tuple) else [expected]
        for e, f in zip(expected, found, strict=True):
            assert e.numpy().dtype == f.dtype
            assert list(e.shape) == list(f.shape)
            np.testing.assert_allclose(f, e.numpy(), rtol=tolerance, atol=tolerance)
    return program


X, I = torch.linspace(-2, 2, 24).reshape(2, 3, 4), torch.tensor([[0, 2, 1], [3, 1, 1]])
FUNCTIONS = {
    "unary": lambda x: x.relu() + x.sigmoid() * x.tanh() - x.exp() / (x.abs() + 1).log() + x.square().sqrt() + x.floor() + x.sign() + torch.erf(x),
    "formulas": lambda x: x.expm1() + x.abs().log1p() + F.silu(x) + F.mish(x) + F.softplus(x, 2.0) + F.logsigmoid(x) + torch.exp2(x) + F.hardswish(x),
    "bent": lambda x: F.leaky_relu(x, 0.2) + F.elu(x, 0.5) + F.selu(x) + F.celu(x, 2.0) + F.relu6(3 * x) + F.hardtanh(x, -1.5, 0.5) + F.hardsigmoid(x),
    "gelu": lambda x: F.gelu(x) + F.gelu(x, approximate="tanh"),
    "binary": lambda x: 2 - x + x * 3 / 7 - 1 / (x + 3) + torch.add(x, x, alpha=2) + x**2 + 2.0 ** x.abs() + torch.maximum(x, -x).clamp(0.2, 1.5),
    "mixed dtypes": lambda x: torch.arange(4) * x + (x > 0) + (x > 0).float() * 2 + (x == x.round()).long(),
    "tests": lambda x: torch.where((x > 0) & ~(x >= 1) | (x < -1.5), x, 0.5).masked_fill(x == 2, -7) + torch.where(x != 0, 1.0, 0.0),
    "softmax": lambda x: x.softmax(1) + F.log_softmax(x, -1) + F.normalize(x, dim=1),
    "shapes": lambda x: x.transpose(0, 1).reshape(6, -1).t().flatten().view(4, 2, 3).permute(2, 0, 1).unsqueeze(1).squeeze(1).movedim(0, 2),
    "parts": lambda x: (*x.chunk(2, 2), *x.split([1, 2], 1), *x.unbind(0), x[:, 1:, ::2], x[..., -1], x[1, None, :, 1:-1], x.narrow(2, 1, 2)),
    "picked": lambda x: (x[:, torch.tensor([2, 0])], x[:, :, 1], x[:, -1:], x.select(1, -1)),
    "joins": lambda x: torch.cat([x, x * 2], 1) + torch.stack([x[:, 0], x[:, 1]], 1).repeat(1, 3, 1) + x[:, :1].expand(2, 6, 4),
    "turned": lambda x: x.flip(2).roll(1, 2).repeat(1, 2, 1),
    "pads": lambda x: F.pad(x, (1, 2)).sum() + F.pad(x, (1, 1), mode="reflect") + F.pad(x, (1, 1), mode="replicate"),
    "reductions": lambda x: x.sum() + x.mean((1, 2), keepdim=True) + x.amax(1, keepdim=True) - x.amin(2, keepdim=True) + x.logsumexp(1, True) + x.prod(2, True),
    "numpy's names": lambda x: x.sum(axis=1, keepdims=True) + torch.mean(x, axis=2, keepdims=True) + torch.stack([x, x], axis=0)[1],
    "extremes": lambda x: (*x.max(1), *x.min(2, keepdim=True), x.max(), x.argmax(1), x.argmin()),
    "statistics": lambda x: (x.cumsum(1), x.var(2), x.std(1, unbiased=False), x.norm(dim=1)),
    "products": lambda x: (x @ x.mT, torch.einsum("bij,bkj->bik", x, x), torch.bmm(x, x.transpose(1, 2)), torch.addmm(x[0], x[0], torch.ones(4, 4), alpha=2)),
    "triangle": lambda x: x.tril() + x.triu(1),
    "indices": lambda x: x.gather(1, (x > 0).long()) + x.index_select(1, torch.tensor([2, 1, 0])),
    "attention": lambda x: F.scaled_dot_product_attention(x, x, x, is_causal=True),
    "masked attention": lambda x: F.scaled_dot_product_attention(x, x, x, attn_mask=torch.ones(3, 3).tril() > 0),
    "losses": lambda x: (
        F.mse_loss(x, x.square()), F.l1_loss(x, x.exp(), reduction="sum"), F.huber_loss(x, 0.3 * x, reduction="none", delta=0.3),
        F.smooth_l1_loss(x, 0.1 * x, beta=0.5), F.binary_cross_entropy_with_logits(x, x.sigmoid()),
        F.cross_entropy(x.mT, I), F.nll_loss(x.mT.log_softmax(1), I, torch.linspace(0.5, 1, 4), ignore_index=1),
    ),
    "a public function": torch.tanh,
    "images": lambda x: F.interpolate(x[None], scale_factor=2) + F.interpolate(x[None], (6, 8), mode="bilinear"),
}  # fmt: skip


@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions(name):
    compare(FUNCTIONS[name], X)


def images(*shape):
    return torch.rand(shape, generator=torch.Generator().manual_seed(1))


MODULES = {
    "perceptron": (lambda: nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Dropout(), nn.Linear(8, 2, bias=False)), (5, 4)),
    "conv1d": (lambda: nn.Sequential(nn.Conv1d(3, 4, 3, padding="same"), nn.MaxPool1d(2)), (2, 3, 8)),
    "conv2d": (lambda: nn.Conv2d(4, 6, (3, 2), stride=2, padding=1, dilation=(1, 2), groups=2), (2, 4, 9, 9)),
    "transposed": (lambda: nn.ConvTranspose2d(3, 4, 3, stride=2, padding=1, output_padding=1), (2, 3, 5, 5)),
    "pools": (lambda: nn.Sequential(nn.AvgPool2d(3, 2, 1), nn.MaxPool2d(2), nn.AdaptiveAvgPool2d(1), nn.Flatten()), (2, 3, 16, 16)),
    "adaptive": (lambda: nn.AdaptiveAvgPool2d((2, 4)), (2, 3, 8, 8)),
    "batch norm": (lambda: nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.PReLU(4)), (2, 3, 6, 6)),
    "norms": (lambda: nn.Sequential(nn.GroupNorm(2, 4), nn.InstanceNorm2d(4, affine=True), nn.LayerNorm((3, 3)), nn.RMSNorm(3)), (2, 4, 3, 3)),
    "transformer": (lambda: nn.TransformerEncoder(nn.TransformerEncoderLayer(8, 2, 16, batch_first=True), 2, enable_nested_tensor=False), (2, 5, 8)),
    "upsample": (lambda: nn.Sequential(nn.Upsample(scale_factor=2), nn.Upsample(scale_factor=2, mode="bilinear", align_corners=True)), (1, 2, 3, 3)),
}


@pytest.mark.parametrize("name", MODULES)
def test_modules_with_a_dynamic_batch(name):
    make, shape = MODULES[name]
    torch.manual_seed(0)
    compare(make(), images(*shape), axes={"in0": {0: "batch"}}, other=(images(shape[0] + 3, *shape[1:]),))


@pytest.mark.parametrize("kind", [nn.LSTM, nn.GRU, nn.RNN])
@pytest.mark.parametrize("options", [{}, {"num_layers": 2, "bidirectional": True, "batch_first": True}])
def test_recurrent_modules(kind, options):
    torch.manual_seed(0)
    module = kind(3, 4, **options)
    program = torch.onnx.export(module, images(5, 2, 3))
    found = reference.ReferenceEvaluator(program.model_proto).run(None, {"input": images(5, 2, 3).numpy()})
    expected, last = module(images(5, 2, 3))
    np.testing.assert_allclose(found[0], expected.detach().numpy(), atol=1e-5)
    for f, e in zip(found[1:], last if isinstance(last, tuple) else (last,), strict=True):
        np.testing.assert_allclose(f, e.detach().numpy(), atol=1e-5)


def test_a_file_is_written_and_parameters_keep_their_names(tmp_path):
    module = nn.Sequential(nn.Embedding(4, 3), nn.Linear(3, 2))
    program = torch.onnx.export(module, I, tmp_path / "model.onnx", input_names=["words"], output_names=["scores"])
    read = onnx.load(tmp_path / "model.onnx")
    assert read == program.model_proto
    assert [i.name for i in read.graph.input] == ["words"]
    assert {i.name for i in read.graph.initializer} >= {"0.weight", "1.weight", "1.bias"}
    assert "words -> scores" in repr(program)
    assert module.training


def branching(x):
    return x * 2 if x.sum() > 0 else x.exp()


REFUSED = {
    "another way": (branching, (-X,), {}, "another way for other inputs"),
    "a size": (lambda x: x + torch.ones(x.shape[0], 1, 1), (X,), {"input": [0]}, "changes with the inputs"),
    "no nodes": (lambda x: torch.linalg.svdvals(x), (X,), {}, "svdvals\\(\\) cannot be written as ONNX nodes"),
    "a mask": (lambda x: x[x == x], (X,), {}, "a mask as an index"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_told_is_refused(name):
    function, args, axes, text = REFUSED[name]
    torch.manual_seed(0)
    with pytest.raises(torch.onnx.OnnxExporterError, match=text):
        torch.onnx.export(function, args, dynamic_axes=axes)


def in_place_of_torch(monkeypatch, name):
    """An example that is written for PyTorch, imported with this library in its place."""
    for part in ("", ".nn", ".nn.functional", ".nn.parallel", ".distributed"):
        monkeypatch.setitem(sys.modules, "torch" + part, importlib.import_module("autograd_nb" + part))
    monkeypatch.delitem(sys.modules, name, raising=False)
    return importlib.import_module(name)


def style_losses():
    """The network of the example with its losses inside, which pass on what they are given."""
    import style_transfer

    picture, style = images(1, 3, 16, 16), images(1, 3, 16, 16).flip(2)
    return style_transfer.with_losses(style_transfer.network(), picture, style)[0]


BATCH = {"in0": {0: "batch"}}
#: example -> its models, each with inputs, and others of another size where that may change
EXAMPLES = {
    "two_branch_classifier": lambda e: [(e.TwoBranches(), (images(2, 1, 8, 8),), (images(5, 1, 8, 8),))],
    "ddp_digits": lambda e: [(e.TwoBranches(), (images(2, 1, 8, 8),), (images(5, 1, 8, 8),))],
    "maml_sine": lambda e: [(e.network(8), (images(3, 1),), (images(7, 1),))],
    "neural_ode": lambda e: [
        (e.Learnt(8), (images(3, 2),), (images(5, 2),)), (e.Spiral(), (images(3, 2),), (images(4, 2),)),
        (lambda z, law=e.Spiral(): e.rk4(law, z, 0.1, 5), (images(3, 2),), None),
    ],
    "pinn_heat": lambda e: [(e.Heat(8), (images(5, 1), images(5, 1)), None)],
    "char_gpt": lambda e: [(e.GPT(10, 6, 16, 2, 2), (torch.arange(12).reshape(2, 6) % 10,), (torch.arange(24).reshape(4, 6) % 10,))],
    "style_transfer": lambda e: [(e.network(), (images(1, 3, 16, 16),), (images(2, 3, 16, 16),)), (style_losses(), (images(1, 3, 16, 16),), None)],
    "user_ops": lambda e: [
        (e.energy, (e.icosahedron(0.1),), None), (e.pair_energy, (images(5) + 1,), (images(9) + 1,)),
        (nn.Conv1d(1, 1, 17, padding=8), (images(2, 1, 40),), (images(3, 1, 40),)),
    ],
    "njit_optimizer": lambda e: [(e.rosenbrock, (images(6),), None)],
    "first_steps": lambda e: [
        (nn.Sequential(nn.Linear(3, 3), nn.Tanh(), e.ContentLoss(torch.zeros(1, 3), 1.0), nn.Linear(3, 3)), (images(1, 3),), None),
        (lambda x: (3 * (x + 2) ** 2).mean(), (images(2, 2),), None),
    ],
}  # fmt: skip


def test_no_example_is_left_out():
    assert {path.stem for path in (Path(__file__).parents[1] / "examples").glob("*.py")} == EXAMPLES.keys()


@pytest.mark.parametrize("name", EXAMPLES)
def test_examples_models(monkeypatch, name):
    """The models of the examples, which have what they need beside the library only where they train."""
    for needed in ("matplotlib", "tqdm", "sklearn", "PIL", "safetensors"):
        pytest.importorskip(needed)
    monkeypatch.syspath_prepend(str(Path(__file__).parents[1] / "examples"))
    example = in_place_of_torch(monkeypatch, name) if name == "ddp_digits" else importlib.import_module(name)
    torch.manual_seed(0)
    for model, given, other in EXAMPLES[name](example):
        assert compare(model, *given, axes=BATCH if other else None, other=other, tolerance=1e-4).model_proto.graph.node


def test_an_op_of_numba_kernels_is_refused(monkeypatch):
    def forward(x, out):
        for i in range(x.shape[0]):
            out[i] = x[i] + 1

    follower = torch.custom_op(forward, shape=lambda x: x)
    for model in (follower, lambda x: follower(x) * 2):
        with pytest.raises(torch.onnx.OnnxExporterError, match=r"forward\(\) cannot be written as ONNX nodes"):
            torch.onnx.export(model, images(3))


def test_what_the_export_does_not_see_is_no_constant():
    with pytest.raises(torch.onnx.OnnxExporterError, match="changes with the inputs"):
        torch.onnx.export(lambda x: torch.from_numpy(x.numpy() * 2), images(3))


def test_without_the_package_it_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "onnx", None)
    with pytest.raises(ImportError, match=r"pip install onnx \(or \"autograd_nb\[onnx\]\"\)"):
        torch.onnx.export(nn.Linear(1, 1), torch.ones(1, 1))
