"""What programs do at every step leaves nothing to Python's collector of cycles: a program may run with it switched off."""

from __future__ import annotations

import ast
import copy
import gc
import io
import pickle
from pathlib import Path

import pytest

import autograd_nb as torch
import autograd_nb.nn.functional as F
from autograd_nb import nn

from .functions import Square

X, V = torch.linspace(0.1, 1, 12).reshape(4, 3), torch.tensor([0.1, 0.5, 2.0])
MODEL = nn.Sequential(nn.Linear(3, 4), nn.Sequential(nn.Tanh(), nn.Linear(4, 2)))
OPTIMIZER = torch.optim.Adam(MODEL.parameters())
DATA = torch.utils.data.TensorDataset(X)


def train():
    OPTIMIZER.zero_grad()
    F.mse_loss(MODEL(X), X[:, :2]).backward()
    nn.utils.clip_grad_norm_(MODEL.parameters(), 1.0)
    OPTIMIZER.step()


STATE: dict = {}
MOMENTS: dict = {}


@pytest.fixture(scope="module", autouse=True)
def trained():
    """A step, so that there are moments, which are kept with the weights."""
    train()
    STATE.update(MODEL.state_dict())
    MOMENTS.update(OPTIMIZER.state_dict())


def f(x):
    return (x.sin() * x).sum()


def leaf():
    return V.detach().requires_grad_()


def hooks():
    y = leaf() * 1
    y.register_hook(lambda g: g * 2)
    y.retain_grad()
    y.sum().backward()


def saved_hooks():
    with torch.autograd.graph.saved_tensors_hooks(lambda t: t, lambda t: t):
        f(leaf()).backward()


def backward_twice():
    y = f(leaf())
    y.backward()
    with pytest.raises(RuntimeError):
        y.backward()


def refused():
    for call in (lambda: X + V[:2], lambda: X @ V[:2], lambda: X.view(5, 5), lambda: X[9], lambda: MODEL.load_state_dict({})):
        try:
            call()
        except (RuntimeError, IndexError):
            continue
        raise AssertionError


def saved():
    file = io.BytesIO()
    torch.save(STATE, file)
    file.seek(0)
    torch.load(file)


def second_order():
    v = leaf()
    (g,) = torch.autograd.grad(f(v), v, create_graph=True)
    torch.autograd.grad(g.sum(), v)


CALLS = {
    "a training step": train,
    "vmap": lambda: torch.vmap(f)(X),
    "grad": lambda: torch.func.grad(f)(V),
    "vmap of grad": lambda: torch.vmap(torch.func.grad(f))(X),
    "jacrev": lambda: torch.func.jacrev(torch.sin)(V),
    "jacfwd": lambda: torch.func.jacfwd(torch.sin)(V),
    "hessian": lambda: torch.func.hessian(f)(V),
    "vjp": lambda: torch.func.vjp(f, V)[1](torch.tensor(1.0)),
    "jvp": lambda: torch.func.jvp(f, (V,), (V,)),
    "functional_call": lambda: torch.func.functional_call(MODEL, dict(MODEL.named_parameters()), (X,)),
    "autograd.functional": lambda: torch.autograd.functional.hessian(f, V),
    "state_dict": MODEL.state_dict,
    "load_state_dict": lambda: MODEL.load_state_dict(STATE),
    "an optimizer's state": lambda: OPTIMIZER.load_state_dict(MOMENTS) or OPTIMIZER.state_dict(),
    "deepcopy": lambda: copy.deepcopy(MODEL),
    "to": lambda: MODEL.to(torch.float32),
    "making a module": lambda: nn.Sequential(nn.Linear(3, 4), nn.ReLU()),
    "making an optimizer": lambda: torch.optim.SGD(MODEL.parameters(), 0.1),
    "second order": second_order,
    "a Function": lambda: Square.apply(leaf()).sum().backward(),
    "hooks": hooks,
    "saved_tensors_hooks": saved_hooks,
    "checkpoint": lambda: torch.utils.checkpoint.checkpoint(f, leaf(), use_reentrant=False).backward(),
    "backward twice": backward_twice,
    "refused calls": refused,
    "save and load": saved,
    "pickle": lambda: pickle.loads(pickle.dumps(X)),
    "printing": lambda: (repr(X), repr(MODEL)),
    "a DataLoader": lambda: list(torch.utils.data.DataLoader(DATA, batch_size=2)),
    "einsum": lambda: torch.einsum("ij,kj,lj->ikl", X, X, X),
    "multi_dot": lambda: torch.linalg.multi_dot([X, X.t(), X]),
}


def left_behind(call):
    """How many objects a third call leaves to the collector."""
    for _ in range(2):
        call()
    gc.collect()
    gc.disable()
    try:
        call()
        return gc.collect()
    finally:
        gc.enable()


@pytest.mark.parametrize("name", CALLS)
def test_no_cycles(name):
    assert left_behind(CALLS[name]) == 0


W = torch.linspace(-1, 1, 9).reshape(3, 3).requires_grad_()


def refused_by_compile(x):
    return x * 2 if x.sum().item() > 0 else x


#: functions that are compiled anew; what each is for
COMPILED = {
    "a loop": lambda: (X * W[0]).sin().sum().backward(),
    "a product with what follows it": lambda: ((X @ W).relu() * 3).sum().backward(),
    "rows": lambda: F.layer_norm(F.softmax(X @ W, -1), (3,)).sum().backward(),
    "factors that passes share": lambda: (F.gelu(X * W[0]) * F.tanh(X * W[0])).sum().backward(),
    "reductions": lambda: (W.std(0) + W.amax(1)).sum().backward(),
    "convolutions": lambda: F.conv2d(X.reshape(1, 1, 4, 3), W[None, None, :2, :2]).exp().sum().backward(),
    "random numbers": lambda: (torch.rand(3) * W).sum().backward(),
    "a kernel that Python calls": lambda: torch.fft.fft(X).abs().sum(),
    "second order": second_order,
    "a training step": train,
    "what compile refuses": lambda: refused_by_compile(X),
}


@pytest.mark.filterwarnings("ignore:compile")
@pytest.mark.parametrize("name", COMPILED)
def test_no_cycles_for_a_compiled_function(name):
    """Nor does a function that is compiled anew: its capture, its program and three calls."""
    function = COMPILED[name]

    def call():
        step = torch.compile(lambda: function())
        for _ in range(3):
            step()

    assert left_behind(call) == 0


#: nested functions that may call themselves by name, as they are made once
ONCE = {
    ("ops/nn/interpolate.py", "resize"), ("compat/overriding.py", "call"), ("ops/core/registry.py", "renaming"), ("ops/core/repeated.py", "call"),
    ("ops/core/foreign.py", "ask"), ("ops/creation/cast.py", "there"),
    ("autograd/marked_operands.py", "seen_otherwise"),
}  # fmt: skip


def test_no_inner_function_refers_to_itself():
    """Such a function is a cycle with its own closure, left behind by each call of what makes it."""
    package, found = Path(torch.__file__).parent, set()
    for path in package.rglob("*.py"):
        for outer in ast.walk(ast.parse(path.read_text())):
            if not isinstance(outer, ast.FunctionDef):
                continue
            for inner in ast.walk(outer):
                if inner is not outer and isinstance(inner, ast.FunctionDef) and not isinstance(outer, ast.ClassDef):
                    names = {n.id for part in inner.body for n in ast.walk(part) if isinstance(n, ast.Name)}
                    if inner.name in names:
                        found.add((str(path.relative_to(package)), inner.name))
    assert found <= ONCE
