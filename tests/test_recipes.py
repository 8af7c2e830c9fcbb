"""The recipes of CONTRIBUTING.md, followed in a copy of the package: what adding a thing takes, and that all of autograd finds it.

Each recipe names the files that it touches and what it writes there; nothing else is changed, and yet derivatives of both orders, `vmap`,
forward mode and `compile` work.
"""

from __future__ import annotations

import os
import re
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
            @pointwise(
                lambda y, cap: 1 - (y / cap) * (y / cap),
                lambda x, cap, y: (y - x * (1 - (y / cap) * (y / cap))) / cap,
                result="float", samples=((-2, 2), (0.5, 2)),
            )
            def softcap(x, cap):
                """y = cap · tanh(x / cap), x where it is small, no further than ±cap; softcap([0., 2.], 2.) = [0.0000, 1.5232]."""
                return cap * m.tanh(x / cap)
        ''',
    },
    "reduction": {
        "ops/reduce/sums.py": '''
            @reduction(SUM, finish=lambda total: m.sqrt(total), grad=lambda g, x, y: g * x / y)
            def length(x):
                """y = √Σx² over ``dim``; dy/dx = x/y; length([3., 4.]) = tensor(5.)."""
                return x * x
        ''',
    },
    "structured": {
        "kernels/reduce/scan.py": '''
            def decayed_sum(outer, n, inner, r, reverse, x, acc, out):
                """out[k] = x[k] + r · out[k - 1], or + r · out[k + 1] where ``reverse``."""
                for o in range(outer):
                    for i in range(inner):
                        acc[i] = 0
                        for k in range(n):
                            at = (o * n + (n - 1 - k if reverse else k)) * inner + i
                            acc[i] = x[at] + r * acc[i]
                            out[at] = acc[i]
        ''',
        "ops/reduce/scan.py": '''
            from ..core.recording import need_floats

            _DECAYED_SUM = launch.Kernel("reduce.scan", "decayed_sum")


            @structured(
                x=lambda g, d, r, reverse: _decayed_sum(g, d, r, not reverse),
                linear="jointly", batch="shift", dtypes="half float complex", samples="torch.decayed_sum(x(3, 4), 1, 0.5)",
            )
            def _decayed_sum(x, d, r, reverse):
                return _scanned(_DECAYED_SUM, d, (r, reverse), x)


            @public()
            def decayed_sum(input, dim, r: float):
                """yₖ = xₖ + r · yₖ₋₁ along ``dim``; decayed_sum([1., 1.], 0, 0.5) = [1.0000, 1.5000]."""
                x = tensor_argument(input, "decayed_sum")
                need_floats("decayed_sum", (x,))
                return _decayed_sum(x, wrap_dim(dim, x.ndim), float(r), False)
        ''',
    },
    "module": {
        "nn/modules/activation.py": '''
            from .. import init

            class SoftCap(Module):
                """cap · tanh(x / cap), with one cap for each of ``features``, which is learnt; SoftCap(2)([0., 1.]).detach() = [0.0000, 0.7616]."""

                def __init__(self, features: int, device: Any = None, dtype: Any = None) -> None:
                    super().__init__()
                    self.features, self.cap = features, parameter((features,), dtype, device)
                    self.reset_parameters()

                def reset_parameters(self) -> None:
                    """Set the caps to 1."""
                    init.ones_(self.cap)

                def forward(self, input: Tensor) -> Tensor:
                    return self.cap * (input / self.cap).tanh()

                def extra_repr(self) -> str:
                    return f"{self.features}"
        ''',
        "nn/modules/__init__.py": ("from .activation import (", "from .activation import (\n    SoftCap as SoftCap,"),
    },
    "optimizer": {
        "kernels/optim.py": '''
            def _lion_shared(T, lr, beta1, beta2):
                return (T(lr), T(1.0 - beta1), T(1.0 - beta2)), ()


            def _lion(shared, d, x, exp_avg):
                """Step along the signs of an average (Chen et al., 2023)."""
                rate, new1, new2 = shared
                return x - rate * np.sign(exp_avg + (d - exp_avg) * new1), exp_avg + (d - exp_avg) * new2


            lion = update(_lion_shared, _lion)
        ''',
        "optim/adaptive.py": '''
            __all__ += ["Lion"]
            _lion = Update("lion")


            class Lion(Fused):
                """p -= lr · sign(β₁ m + (1 - β₁) g), m the moving average of gradients with β₂ (Chen et al., 2023).

                >>> w = torch.ones(1, requires_grad=True)
                >>> w.sum().backward()
                >>> torch.optim.Lion([w], lr=0.1).step()
                >>> w.data
                tensor([0.9000])
                """

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
    "structured": "check(lambda t: t.decayed_sum(1, 0.5))",
    "module": "check(torch.nn.SoftCap(3).double())",
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

#: what was added, whose docstring has an example
ADDED = {
    "pointwise": "softcap", "reduction": "length", "structured": "decayed_sum", "module": "nn.SoftCap", "optimizer": "optim.Lion",
}  # fmt: skip

EXAMPLE = """
import doctest, inspect
test = doctest.DocTestParser().get_doctest(inspect.getdoc(torch.{0}), {{"torch": torch}}, "{0}", None, None)
assert test.examples and doctest.DocTestRunner().run(test).failed == 0
"""

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


def test_the_page_shows_these_recipes():
    """Line by line, but for imports, comments, and what goes into a list that is there."""
    shown = {line.split("  #")[0].strip() for line in (PACKAGE.parent / "CONTRIBUTING.md").read_text(encoding="utf-8").splitlines()}
    for recipe in set(RECIPES) - {"pointwise"}:  # whose text shows an op that is there, tanh
        for text in RECIPES[recipe].values():
            if isinstance(text, str):
                lines = [line.strip() for line in text.splitlines()]
                missing = [line for line in lines if line not in shown and not line.startswith(("from ", "__all__"))]
                assert not missing, recipe


@pytest.mark.slow
@pytest.mark.parametrize("recipe", RECIPES)
def test_what_a_recipe_adds_works_everywhere(recipe, tmp_path):
    followed(recipe, tmp_path)
    python("-c", CHECK + USES[recipe] + EXAMPLE.format(ADDED[recipe]), folder=tmp_path)


@pytest.mark.slow
def test_the_samples_of_the_added_op_are_tested(tmp_path):
    """As they are by the tests of all structured ops, in which nothing names it."""
    followed("structured", tmp_path)
    tests = tmp_path / "tests" / "ops"
    tests.mkdir(parents=True)
    for name in ("samples.py", "test_samples.py", "__init__.py"):
        shutil.copy(Path(__file__).parent / "ops" / name, tests)
    (tests.parent / "__init__.py").touch()
    options = ("-q", "-n", "0", "-p", "no:cacheprovider", "--rootdir", str(tmp_path), "-k", "decayed_sum")
    passed = re.search(r"^(\d+) passed", python("-m", "pytest", *options, str(tests), folder=tmp_path), re.MULTILINE)
    assert passed is not None and int(passed[1]) >= 6


def followed(recipe: str, folder: Path) -> None:
    """A copy of the package in which a recipe was followed."""
    copy = folder / PACKAGE.name
    shutil.copytree(PACKAGE, copy, ignore=shutil.ignore_patterns("__pycache__"))
    for name, text in RECIPES[recipe].items():
        file = copy / name
        before = file.read_text(encoding="utf-8")
        if isinstance(text, tuple):
            assert before.count(text[0]) == 1
            file.write_text(before.replace(*text), encoding="utf-8")
        else:
            file.write_text(before + "\n\n" + textwrap.dedent(text).strip("\n") + "\n", encoding="utf-8")


def python(*arguments: str, folder: Path) -> str:
    """What a program prints that runs with the package of a folder."""
    environment = {**os.environ, "PYTHONPATH": str(folder), "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run([sys.executable, *arguments], capture_output=True, text=True, cwd=folder, env=environment, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout
