"""Every module beside PyTorch's: text, names and shapes of the state, outputs and gradients with the same weights."""

from __future__ import annotations

import copy
import gc
import warnings
import weakref
from collections import namedtuple

import numpy as np
import pytest

from .compare import both, check_same, torch

import autograd_nb as ours  # isort: skip

nn = ours.nn

F32 = np.float32
rng = np.random.default_rng(3)


def x(*shape):
    return rng.normal(size=shape).astype(F32)


IMAGE, LINE, VOLUME, ROWS = x(2, 4, 8, 9), x(2, 4, 11), x(2, 4, 5, 6, 7), x(6, 5)
CLASSES = rng.integers(0, 5, 6)

#: name, constructor arguments (positional, keyword), inputs
MODULES = [
    ("Linear", (5, 3), {}, [ROWS]),
    ("Linear", (5, 3), {"bias": False}, [ROWS]),
    ("Bilinear", (5, 5, 3), {}, [ROWS, x(6, 5)]),
    ("Identity", (1, 2), {}, [ROWS]),
    ("Flatten", (), {}, [IMAGE]),
    ("Flatten", (0, 2), {}, [IMAGE]),
    ("Unflatten", (1, (2, 2)), {}, [IMAGE]),
    ("Conv1d", (4, 6, 3), {}, [LINE]),
    ("Conv2d", (4, 6, 3), {}, [IMAGE]),
    ("Conv2d", (4, 6, (3, 2), (2, 1), (1, 0), 2, 2, False), {}, [IMAGE]),
    ("Conv2d", (4, 6, 3), {"padding": "same"}, [IMAGE]),
    ("Conv2d", (4, 6, 3), {"padding": 1, "padding_mode": "reflect"}, [IMAGE]),
    ("Conv2d", (4, 6, 3), {"padding": (1, 2), "padding_mode": "circular"}, [IMAGE]),
    ("Conv3d", (4, 6, 3), {}, [VOLUME]),
    ("ConvTranspose1d", (4, 6, 3), {"stride": 2}, [LINE]),
    ("ConvTranspose2d", (4, 6, 3, 2, 1, 1), {}, [IMAGE]),
    ("ConvTranspose2d", (4, 6, 3), {"groups": 2, "dilation": 2}, [IMAGE]),
    ("ConvTranspose3d", (4, 2, 2), {}, [VOLUME]),
    ("MaxPool1d", (3,), {}, [LINE]),
    ("MaxPool2d", (2,), {}, [IMAGE]),
    ("MaxPool2d", (3, 2, 1), {"ceil_mode": True}, [IMAGE]),
    ("MaxPool2d", (2,), {"return_indices": True}, [IMAGE]),
    ("MaxPool3d", (2,), {}, [VOLUME]),
    ("AvgPool1d", (3,), {}, [LINE]),
    ("AvgPool2d", (3, 2, 1), {"count_include_pad": False}, [IMAGE]),
    ("AvgPool3d", (2,), {}, [VOLUME]),
    ("LPPool1d", (2, 3), {}, [LINE]),
    ("LPPool2d", (2, 3), {}, [np.abs(IMAGE)]),
    ("AdaptiveAvgPool1d", (3,), {}, [LINE]),
    ("AdaptiveAvgPool2d", ((3, None),), {}, [IMAGE]),
    ("AdaptiveAvgPool3d", (2,), {}, [VOLUME]),
    ("AdaptiveMaxPool1d", (3,), {}, [LINE]),
    ("AdaptiveMaxPool2d", ((3, 2),), {}, [IMAGE]),
    ("AdaptiveMaxPool3d", (2,), {}, [VOLUME]),
    ("BatchNorm1d", (5,), {}, [ROWS]),
    ("BatchNorm1d", (4,), {"momentum": None}, [LINE]),
    ("BatchNorm2d", (4,), {}, [IMAGE]),
    ("BatchNorm2d", (4,), {"affine": False, "track_running_stats": False}, [IMAGE]),
    ("BatchNorm3d", (4,), {}, [VOLUME]),
    ("LayerNorm", (5,), {}, [ROWS]),
    ("LayerNorm", ((8, 9),), {"bias": False}, [IMAGE]),
    ("RMSNorm", (5,), {}, [ROWS]),
    ("GroupNorm", (2, 4), {}, [IMAGE]),
    ("InstanceNorm1d", (4,), {}, [LINE]),
    ("InstanceNorm2d", (4,), {"affine": True, "track_running_stats": True}, [IMAGE]),
    ("InstanceNorm3d", (4,), {}, [VOLUME]),
    ("LocalResponseNorm", (3,), {}, [IMAGE]),
    ("CrossMapLRN2d", (3, 0.3, 0.6, 1.5), {}, [IMAGE]),
    ("CrossMapLRN2d", (5,), {"alpha": 0.2}, [IMAGE]),
    ("CrossMapLRN2d", (4, 0.5), {}, [x(2, 7, 2, 3)]),
    ("CrossMapLRN2d", (2, 0.5), {}, [x(1, 1, 2, 3)]),
    ("Embedding", (7, 3), {}, [rng.integers(0, 7, (2, 5))]),
    ("Embedding", (7, 3, 2), {}, [rng.integers(0, 7, (2, 5))]),
    ("EmbeddingBag", (7, 3), {}, [rng.integers(0, 7, (2, 5))]),
    ("PReLU", (4,), {}, [IMAGE]),
    ("Hardtanh", (-0.5, 0.7), {}, [ROWS]),
    ("Threshold", (0.1, 3.0), {}, [ROWS]),
    ("Softmax", (1,), {}, [ROWS]),
    ("LogSoftmax", (1,), {}, [ROWS]),
    ("Softmin", (1,), {}, [ROWS]),
    ("Softmax2d", (), {}, [IMAGE]),
    ("GLU", (1,), {}, [IMAGE]),
    ("GELU", ("tanh",), {}, [ROWS]),
    ("PixelShuffle", (2,), {}, [IMAGE]),
    ("PixelUnshuffle", (3,), {}, [x(2, 1, 6, 9)]),
    ("ChannelShuffle", (2,), {}, [IMAGE]),
    ("Upsample", (None, 2), {}, [IMAGE]),
    ("Upsample", ((5, 7),), {"mode": "bilinear"}, [IMAGE]),
    ("Unfold", (3,), {}, [IMAGE]),
    ("Fold", ((4, 5), 2), {}, [x(2, 8, 12)]),
    ("ZeroPad2d", (1,), {}, [IMAGE]),
    ("ConstantPad1d", ((1, 2), 3.5), {}, [LINE]),
    ("ReflectionPad2d", ((1, 2, 0, 3),), {}, [IMAGE]),
    ("ReplicationPad3d", (1,), {}, [VOLUME]),
    ("CircularPad1d", (2,), {}, [LINE]),
    ("CosineSimilarity", (), {}, [ROWS, x(6, 5)]),
    ("PairwiseDistance", (), {}, [ROWS, x(6, 5)]),
    *[
        (name, (), {}, [ROWS])
        for name in (
            "ReLU", "ReLU6", "SiLU", "Mish", "SELU", "CELU", "ELU", "LeakyReLU", "GELU", "Sigmoid", "Tanh", "LogSigmoid", "Softplus",
            "Softsign", "Softshrink", "Hardshrink", "Tanhshrink", "Hardsigmoid", "Hardswish",
        )
    ],
    *[
        (name, (), {"reduction": reduction}, inputs)
        for reduction in ("mean", "sum", "none")
        for name, inputs in (
            ("L1Loss", [ROWS, x(6, 5)]),
            ("MSELoss", [ROWS, x(6, 5)]),
            ("SmoothL1Loss", [ROWS, x(6, 5)]),
            ("HuberLoss", [ROWS, x(6, 5)]),
            ("CrossEntropyLoss", [ROWS, CLASSES]),
            ("NLLLoss", [ROWS, CLASSES]),
            ("BCELoss", [rng.random((6, 5)).astype(F32), rng.random((6, 5)).astype(F32)]),
            ("BCEWithLogitsLoss", [ROWS, rng.random((6, 5)).astype(F32)]),
            ("KLDivLoss", [ROWS, rng.random((6, 5)).astype(F32)]),
            ("PoissonNLLLoss", [ROWS, rng.random((6, 5)).astype(F32)]),
            ("GaussianNLLLoss", [ROWS, x(6, 5), rng.random((6, 5)).astype(F32) + 0.1]),
            ("SoftMarginLoss", [ROWS, np.sign(x(6, 5))]),
            ("HingeEmbeddingLoss", [ROWS, np.sign(x(6, 5))]),
            ("CosineEmbeddingLoss", [ROWS, x(6, 5), np.sign(x(6))]),
            ("MarginRankingLoss", [x(6), x(6), np.sign(x(6))]),
            ("MultiMarginLoss", [ROWS, CLASSES]),
            ("MultiLabelMarginLoss", [ROWS, np.array([[3, 0, -1, 1, 2]] * 6)]),
            ("MultiLabelSoftMarginLoss", [ROWS, (x(6, 5) > 0).astype(F32)]),
            ("TripletMarginLoss", [ROWS, x(6, 5), x(6, 5)]),
        )
    ],
    ("CrossEntropyLoss", (), {"label_smoothing": 0.1, "ignore_index": 2}, [ROWS, CLASSES]),
    ("CTCLoss", (), {}, [x(12, 2, 5), np.array([[1, 2, 3], [4, 1, 1]]), np.array([12, 10]), np.array([3, 2])]),
]


@pytest.mark.filterwarnings("ignore:Using a target size", "ignore:reduction. 'mean'", "ignore:Using padding='same'", "ignore:The given NumPy")
@pytest.mark.parametrize(
    ("name", "args", "options", "inputs"), MODULES, ids=[f"{m[0]}-{i}" for i, m in enumerate(MODULES)]
)
def test_module(name, args, options, inputs):
    mine, theirs = getattr(nn, name)(*args, **options), getattr(torch.nn, name)(*args, **options)
    assert repr(mine) == repr(theirs)
    a, b = mine.state_dict(), theirs.state_dict()
    assert list(a) == list(b)
    assert [tuple(v.shape) for v in a.values()] == [tuple(v.shape) for v in b.values()]
    mine.load_state_dict({k: ours.from_numpy(v.numpy().copy()) for k, v in b.items()})
    function = {"CTCLoss": "ctc_loss", "EmbeddingBag": "embedding_bag", "Upsample": "interpolate", "Fold": "fold", "Unfold": "unfold"}.get(name)
    if function is not None and not hasattr(nn.functional, function):
        pytest.skip(f"nn.functional.{function} is not there yet")
    pairs = [both(np.ascontiguousarray(i), k == 0 or name != "SoftMarginLoss") for k, i in enumerate(inputs)]
    for training in (True, False):
        mine.train(training)
        theirs.train(training)
        out_a, out_b = mine(*[p[0] for p in pairs]), theirs(*[p[1] for p in pairs])
        for i, (y, z) in enumerate(zip(*((o if isinstance(o, tuple) else (o,)) for o in (out_a, out_b)), strict=True)):
            check_same(y, z, f"output {i}", 2e-5, 2e-5)
            if z.requires_grad:
                w = np.random.default_rng(0).normal(size=tuple(z.shape)).astype(F32)
                y.backward(ours.tensor(w))
                z.backward(torch.tensor(w))
    for p, q in pairs:
        assert (p.grad is None) == (q.grad is None)
        if q.grad is not None:
            check_same(p.grad, q.grad, "gradient", 1e-4, 1e-4)
    for (n, p), q in zip(mine.named_parameters(), theirs.parameters(), strict=True):
        if q.grad is not None:
            check_same(p.grad, q.grad, n, 2e-4, 2e-4)
    for (n, p), q in zip(mine.state_dict().items(), theirs.state_dict().values(), strict=True):
        check_same(p, q, n, 1e-5, 1e-5)


def test_names():
    theirs = {n for n in dir(torch.nn) if isinstance(getattr(torch.nn, n), type)}
    missing = theirs - set(dir(nn))
    assert missing <= {"Container"}  # deprecated for years, and private


@pytest.mark.parametrize(
    "name", ["xavier_uniform_", "xavier_normal_", "kaiming_uniform_", "kaiming_normal_", "trunc_normal_", "ones_", "eye_", "zeros_", "normal_"]
)
def test_init(name):
    if not hasattr(ours, "erfinv") and name == "trunc_normal_":
        pytest.skip("needs erfinv")
    ours.manual_seed(0)
    torch.manual_seed(0)
    mine, theirs = ours.empty(200, 100), torch.empty(200, 100)
    getattr(nn.init, name)(mine)
    getattr(torch.nn.init, name)(theirs)
    a, b = mine.numpy(), theirs.numpy()
    assert abs(a.std() - b.std()) < 0.02 * max(b.std(), 1e-3)
    assert abs(a.max() - b.max()) < 0.3 * max(abs(b.max()), 1e-6)
    assert abs(a.min() - b.min()) < 0.3 * max(abs(b.min()), 1e-6)


def test_init_of_kernels():
    a, b = ours.zeros(4, 3, 3, 3), torch.zeros(4, 3, 3, 3)
    assert (nn.init.dirac_(a).numpy() == torch.nn.init.dirac_(b).numpy()).all()
    for gain in ("relu", "tanh", "leaky_relu", "selu", "sigmoid", "linear"):
        assert nn.init.calculate_gain(gain) == torch.nn.init.calculate_gain(gain)


def test_default_weights_have_the_same_spread():
    ours.manual_seed(0)
    for name, args in (("Linear", (300, 400)), ("Conv2d", (32, 64, 3)), ("Bilinear", (30, 30, 40)), ("Embedding", (300, 40))):
        for (n, p), q in zip(getattr(nn, name)(*args).named_parameters(), getattr(torch.nn, name)(*args).parameters(), strict=True):
            assert abs(p.detach().numpy().std() / q.detach().numpy().std() - 1) < 0.25, (name, n)
            assert p.abs().max().item() <= 1.2 * q.abs().max().item()


# ---------------------------------------------------------------------------------------- what PyTorch's own tests asked for
@pytest.mark.parametrize("order", [0.0, -0.1, -1.0, -2.0, -np.inf, 0.5, 1.0, 2.0, np.inf])
def test_clipping_by_any_norm(order):
    """The norm of the tensors' norms, which is not that of all elements where the order is not positive."""
    for first in ([1.0, 2.0, 3.0], [0.0, 1.0], [0.1, -0.1, 0.2]):
        found = []
        for lib in (ours, torch):
            params = [lib.nn.Parameter(lib.zeros(n)) for n in (len(first), 1)]
            params[0].grad, params[1].grad = lib.tensor(first), lib.tensor([-2.0])
            total = lib.nn.utils.clip_grad_norm_(params, 1.0, norm_type=order, error_if_nonfinite=True)
            found.append([total.item(), *params[0].grad.tolist(), *params[1].grad.tolist()])
        np.testing.assert_allclose(*found, rtol=1e-5)


@pytest.mark.parametrize("name", ["dropout2d", "dropout3d", "feature_alpha_dropout"])
def test_channel_dropout_of_any_number_of_dims(name):
    """What PyTorch takes with a warning is taken with one here."""
    for n in range(7):
        texts = []
        for lib in (ours, torch):
            with warnings.catch_warnings(record=True) as told:
                warnings.simplefilter("always")
                y = getattr(lib.nn.functional, name)(lib.ones([2] * n), 0.0, True)
            assert y.tolist() == lib.ones([2] * n).tolist()
            texts.append([str(w.message)[:50] for w in told])
        assert texts[0] == texts[1], n


@pytest.mark.parametrize("register", ["register_full_backward_hook", "register_full_backward_pre_hook", "register_forward_hook"])
def test_named_tuples_pass_hooks(register):
    pair = namedtuple("pair", "a b")
    for lib in (ours, torch):

        class Two(lib.nn.Module):
            def forward(self, x):
                return pair(x * 2, "text")

        module = Two()
        getattr(module, register)(lambda *_: None)
        result = module(lib.ones(2, requires_grad=True))
        assert type(result) is pair
        assert result.a.requires_grad
        assert result.b == "text"


def test_hooks_of_loading_do_not_keep_their_module():
    seen = []
    module = nn.Linear(2, 2)
    module.register_load_state_dict_pre_hook(lambda m, *_: seen.append(m))
    module.load_state_dict(copy.deepcopy(module).state_dict())
    assert seen == [module]
    seen.clear()
    gone = weakref.ref(module)
    enabled = gc.isenabled()
    gc.disable()
    try:
        del module
        assert gone() is None
    finally:
        if enabled:
            gc.enable()


@pytest.mark.parity
def test_state_dicts_of_spectral_norm_from_before_1_0():
    from .snippets import check

    code = (
        "m = nn.utils.spectral_norm(nn.{layer}); w = nn.utils.spectral_norm\n"
        "m.weight_orig.data.copy_(t.linspace(1, 9, m.weight_orig.numel()).sin().view_as(m.weight_orig))\n"
        "m.weight_u.copy_(t.linspace(0.1, 0.5, 4) / t.linspace(0.1, 0.5, 4).norm())\nfor _ in range(3):\n    m({x})\n"
        "sd = m.state_dict(); del sd['weight_v']; sd['weight'] = m.weight.detach().clone(); sd._metadata[''].pop('spectral_norm')\n"
        "n = w(nn.{layer}); n.load_state_dict(sd); r = (n.eval()({x}) - m.eval()({x})).abs().max().item() < 1e-4, sorted(n.state_dict())\n"
    )
    check({layer: code.format(layer=layer, x=x) for layer, x in (("Linear(3, 4)", "t.ones(2, 3)"), ("Conv1d(3, 4, 2)", "t.ones(2, 3, 5)"))})
    for given in ("{}", "{'weight': w}", "{'weight': w, 'weight_u': w[:, 0]}", "{'bias': w[:, 0], 'weight_orig': w, 'weight_v': w[0]}", "whole"):
        check({f"missing of {given}": "m = nn.utils.spectral_norm(nn.Linear(3, 4)); w = m.weight_orig.detach(); whole = dict(m.state_dict())\n"
               f"found = m.load_state_dict({given}, strict=False); r = found.missing_keys, found.unexpected_keys"})
    check({"of today, incomplete": "m = nn.utils.spectral_norm(nn.Linear(3, 4)); sd = m.state_dict(); del sd['weight_v']; m.load_state_dict(sd)"})


TO = {
    "a dtype": "m.to(t.complex64)", "a name": "m.to(dtype=t.complex128)", "a tensor's": "m.to(t.ones(1, dtype=t.complex64))",
    "nothing to cast": "n.to(t.complex64)",
    "twice": "m.to(t.complex64).to(t.complex64)",
    "real": "m.to(t.float64)", "type": "m.type(t.complex64)", "made so": "t.nn.Linear(2, 2, dtype=t.complex64)",
}  # fmt: skip


@pytest.mark.parity
@pytest.mark.parametrize("call", TO)
def test_what_warns_of_complex_modules(call):
    told = []
    for t in (torch, ours):
        with warnings.catch_warnings(record=True) as found:
            warnings.simplefilter("always")
            eval(TO[call], {"t": t, "m": t.nn.Linear(2, 2), "n": t.nn.ReLU()})
        told.append([(w.category, w.filename, str(w.message).split(". ")[0].rstrip(".")) for w in found])
    assert told[0] == told[1]
