"""The recipes of CONTRIBUTING.md, followed in a copy of the package: what adding a thing takes, and that all of autograd finds it.

Each recipe names the files that it touches and what it writes there; nothing else is changed, and yet derivatives of both orders, `vmap`,
forward mode and `compile` work.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

import autograd_nb

PACKAGE = Path(autograd_nb.__file__).parent

#: recipe -> file of the package -> what is written at its end, or (what is there, what stands there instead)
RECIPES: dict[str, dict[str, str | tuple[str, str]]] = {
    "pointwise": {
        "ops/elementwise/unary.py": '''
            @pointwise(lambda y, cap: 1 - (y / cap) * (y / cap))
            def softcap(x, cap):
                """cap · tanh(x / cap): x where it is small, no further than ±cap; dy/dx = 1 − (y/cap)²."""
                return cap * m.tanh(x / cap)
        ''',
    },
    "reduction": {
        "ops/reduce/sums.py": '''
            @reduction(SUM, finish=lambda total: m.sqrt(total), grad=lambda g, x, y: g * x / y)
            def length(x):
                """√Σx² over ``dim``; dy/dx = x/y."""
                return x * x
        ''',
    },
    "structured": {
        "kernels/reduce/scan.py": '''
            def alternating(outer, n, inner, x, out):
                """out[k] = x[0] − x[1] + … ± x[k]."""
                for r in range(outer):
                    for c in range(inner):
                        s, sign = x[r * n * inner + c], -1
                        out[r * n * inner + c] = s
                        for k in range(1, n):
                            s += sign * x[(r * n + k) * inner + c]
                            sign = -sign
                            out[(r * n + k) * inner + c] = s
        ''',
        "ops/reduce/scan.py": '''
            _ALTERNATING = launch.Kernel("reduce.scan", "alternating")


            @structured(x=lambda g, x_shape, d: _signs(g, x_shape, d) * _cumsum(g, d, True), linear="jointly", batch="shift")
            def _alternating(x, d):
                lay = x._layout.dense
                data = launch.empty(lay.size, lay.dtype.carrier)
                _ALTERNATING(x.dtype, *row_sizes(x.shape, d), dense(x), data)
                return make(data, lay, [0, 0])


            def _signs(like, shape, d):
                return 1 - 2 * ((_cumsum(new_full(shape, 1.0, like.dtype), d, False) - 1) % 2)


            @public()
            def alternating_sum(input, dim):
                """yₖ = x₀ − x₁ + … ± xₖ along ``dim``."""
                return _alternating(*_along("alternating_sum", input, dim, None))
        ''',
    },
    "module": {
        "nn/modules/activation.py": '''
            class SoftCap(Module):
                """cap · tanh(x / cap)."""

                def __init__(self, cap: float = 1.0) -> None:
                    super().__init__()
                    self.cap = cap

                def forward(self, input: Tensor) -> Tensor:
                    return self.cap * (input / self.cap).tanh()
        ''',
        "nn/modules/__init__.py": ("from .activation import (", "from .activation import (\n    SoftCap,"),
    },
    "optimizer": {
        "kernels/optim.py": '''
            def _lion_shared(T, lr, beta1, beta2):
                return (T(lr), T(1.0 - beta1), T(1.0 - beta2)), ()


            def _lion(shared, d, x, exp_avg):
                """p -= lr · sign(β₁ m + (1 − β₁) d) (Chen et al., 2023)."""
                rate, new1, new2 = shared
                return x - rate * np.sign(exp_avg + (d - exp_avg) * new1), exp_avg + (d - exp_avg) * new2


            lion = update(_lion_shared, _lion)
        ''',
        "optim/adaptive.py": '''
            __all__ += ["Lion"]
            _lion = Update("lion", beta1=lambda group: float(group["betas"][0]), beta2=lambda group: float(group["betas"][1]))


            class Lion(Fused):
                """p -= lr · sign(β₁ m + (1 − β₁) g), m the moving average of gradients with β₂ (Chen et al., 2023)."""

                def __init__(
                    self, params: ParamsT, lr: float | Tensor = 1e-4, betas: tuple[float, float] = (0.9, 0.99), weight_decay: float = 0,
                    foreach: bool | None = None, maximize: bool = False, capturable: bool = False, differentiable: bool = False,
                ) -> None:
                    super().__init__(params, locals())

                def _kernel(self, group: dict[str, Any]) -> Update:
                    return _lion
        ''',
    },
}

#: the aims: files that a recipe may touch
MOST = {"pointwise": 1, "reduction": 1, "structured": 2, "module": 2, "optimizer": 2}

#: what is done with what was added
USES = {
    "pointwise": "check(lambda t: t.softcap(2.0)); check(lambda t: torch.softcap(t, 2.0))",
    "reduction": "check(lambda t: t.length(1)); check(lambda t: torch.length(t))",
    "structured": "check(lambda t: t.alternating_sum(1))",
    "module": "check(torch.nn.SoftCap(2.0))",
    "optimizer": """
p = torch.nn.Parameter(torch.tensor([1.0, -1.0, 0.2]))
optimizer = torch.optim.Lion([p], lr=0.1)
def step():
    optimizer.zero_grad()
    (p * p).sum().backward()
    optimizer.step()
step()
compiled = torch.compile(step)
compiled(), compiled()
assert torch.allclose(p, torch.tensor([0.7, -0.7, -0.1])), p
assert list(optimizer.state_dict()["state"][0]) == ["exp_avg"]
""",
}

CHECK = """
import autograd_nb as torch
from autograd_nb.autograd import forward_ad
from autograd_nb.func import jvp, vmap

def check(f):
    x = torch.tensor([[0.3, -0.7, 1.2], [0.1, 2.0, -1.0]], dtype=torch.float64)
    assert torch.autograd.gradcheck(f, (x.clone().requires_grad_(),))
    assert torch.autograd.gradgradcheck(f, (x.clone().requires_grad_(),))
    assert torch.allclose(vmap(f)(torch.stack([x, x + 0.1]))[1], f(x + 0.1))
    _, tangent = jvp(f, (x,), (torch.ones_like(x),))
    with forward_ad.dual_level():
        dual = f(forward_ad.make_dual(x, torch.ones_like(x)))
        assert torch.allclose(forward_ad.unpack_dual(dual).tangent, tangent)
    compiled = torch.compile(f)
    for _ in range(3):
        a, b = x.clone().requires_grad_(), x.clone().requires_grad_()
        f(a).sum().backward(), compiled(b).sum().backward()
        assert torch.allclose(a.grad, b.grad)
"""


@pytest.mark.parametrize("recipe", RECIPES)
def test_recipes_touch_few_files(recipe):
    assert len(RECIPES[recipe]) <= MOST[recipe]


@pytest.mark.slow
@pytest.mark.parametrize("recipe", RECIPES)
def test_what_a_recipe_adds_works_everywhere(recipe, tmp_path):
    copy = tmp_path / PACKAGE.name
    shutil.copytree(PACKAGE, copy, ignore=shutil.ignore_patterns("__pycache__"))
    for name, text in RECIPES[recipe].items():
        file = copy / name
        before = file.read_text(encoding="utf-8")
        if isinstance(text, tuple):
            assert before.count(text[0]) == 1
            file.write_text(before.replace(*text), encoding="utf-8")
        else:
            file.write_text(before + "\n\n" + textwrap.dedent(text).strip("\n") + "\n", encoding="utf-8")
    environment = {**os.environ, "PYTHONPATH": str(tmp_path), "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run(
        [sys.executable, "-c", CHECK + USES[recipe]], capture_output=True, text=True, cwd=tmp_path, env=environment, timeout=300
    )
    assert done.returncode == 0, done.stderr
