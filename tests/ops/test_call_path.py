"""The one path of calls: what a new shape and a warm backward pass cost in Python calls, and that nothing has a path of its own."""

from __future__ import annotations

import ast
import gc
import json
import re
import subprocess
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest

import autograd_nb as torch
from autograd_nb import launch
from autograd_nb.autograd.torch_function import INTERCEPTION
from autograd_nb.graph import recurring

F = torch.nn.functional
PACKAGE = Path(torch.__file__).parent
pytestmark = pytest.mark.usefixtures("nobody_takes_calls_over")


@cache
def apart() -> subprocess.CompletedProcess[str]:
    """The tests that count calls, in a process of their own."""
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-k", "few_python_calls", __file__]
    return subprocess.run(command, capture_output=True, text=True, cwd=PACKAGE.parent, check=False)


@pytest.fixture(autouse=True)
def undisturbed(request):
    """Where other tests have made sparse tensors, for which calls are looked at from then on, calls are counted in another process."""
    if INTERCEPTION.count and "few_python_calls" in request.node.name:
        assert apart().returncode == 0, apart().stdout
        pytest.skip("passed in a process of its own")


def python_calls(step: Callable[[], object]) -> int:
    """How many Python functions a call of ``step`` runs, itself not among them."""
    count = 0

    def watch(frame, event, arg):
        nonlocal count
        count += event == "call"

    gc.disable()  # what others have left calls back when it goes
    sys.setprofile(watch)
    try:
        step()
    finally:
        sys.setprofile(None)
        gc.enable()
    return count - 1


def test_a_warm_backward_pass_takes_few_python_calls():
    w = torch.randn(8, requires_grad=True)

    def a_pass():
        return torch.tanh(w).sum().backward

    for _ in range(3):
        a_pass()()
    assert python_calls(a_pass()) + 1 <= 28  # two fewer where no test of this process has made a sparse tensor
    for _ in range(recurring.FIRST):  # from then on it is replayed
        a_pass()()
    assert python_calls(a_pass()) + 1 <= 12


X = torch.ones(1 << 12)
ROW, LONG, WEIGHT = torch.ones(4), torch.zeros(1 << 10, dtype=torch.int64), torch.ones(3, 4)


def rows(n: int):
    return X[: 4 * n].view(n, 4)


def leaf(n: int):
    return rows(n).detach().requires_grad_()


#: a step on n rows, and the Python calls that it may come to where n is new; without them it is some µs
NEW = {
    "view": (rows, 40),
    "tanh": (lambda n: rows(n).tanh(), 75),
    "add": (lambda n: rows(n) + rows(n), 85),
    "add a row": (lambda n: rows(n) + ROW, 100),
    "in place": (lambda n: rows(n).add_(0.0), 80),
    "transposed": (lambda n: rows(n).t() * 2.0, 120),
    "tanh, backward": (lambda n: leaf(n).tanh().sum().backward(), 225),
    "sum": (lambda n: rows(n).sum(), 110),
    "sum(0)": (lambda n: rows(n).sum(0), 110),
    "matmul": (lambda n: rows(n) @ WEIGHT.t(), 85),
    "linear": (lambda n: F.linear(rows(n), WEIGHT), 80),
    "softmax": (lambda n: F.softmax(rows(n), -1), 65),
    "layer_norm": (lambda n: F.layer_norm(rows(n), (4,)), 80),
    "cross_entropy": (lambda n: F.cross_entropy(rows(n), LONG[:n]), 90),
}


def calls_of_new_shapes() -> dict[str, tuple[int, int]]:
    """Of each step: the calls for a new shape, and for one that is known."""
    found = {}
    for name, (step, _) in NEW.items():
        for n in range(3, 6):
            step(n)
        launch.forget()
        step(6)
        found[name] = min(python_calls(lambda n=n: step(n)) for n in range(20, 24)), python_calls(lambda: step(20))
    return found


@pytest.fixture(scope="module")
def counted() -> dict[str, tuple[int, int]]:
    """`calls_of_new_shapes` of a process in which nothing else has run."""
    program = "import json; from tests.ops.test_call_path import calls_of_new_shapes; print(json.dumps(calls_of_new_shapes()))"
    done = subprocess.run([sys.executable, "-c", program], cwd=PACKAGE.parent, capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


@pytest.mark.parametrize("name", NEW)
def test_a_new_shape_takes_few_python_calls(name, counted):
    new, known = counted[name]
    assert new <= NEW[name][1]
    assert known < new


SQUARE, AT, PLANE, HEADS = torch.ones(8, 8), torch.arange(8) % 5, torch.ones(1, 2, 6, 6), torch.ones(2, 2, 4, 8)
WIDE = torch.ones(100, 100)
MASK, CELL, SCRATCH = SQUARE > 0, torch.nn.LSTMCell(8, 8), torch.zeros(4)

#: a call that is known, and the Python calls that it may come to; each is a tenth of a microsecond
KNOWN = {
    "sort": (lambda: SQUARE.sort(1), 8),
    "topk": (lambda: SQUARE.topk(3, 1), 8),
    "index_add": (lambda: SQUARE.index_add(0, AT, SQUARE), 24),
    "adaptive_avg_pool2d": (lambda: F.adaptive_avg_pool2d(PLANE, 1), 16),
    "padded with zeros": (lambda: F.pad(SQUARE, (1, 1)), 12),
    "padded by reflection": (lambda: F.pad(PLANE, (2, 2, 2, 2), mode="reflect"), 22),
    "softmax of 40 kB": (lambda: WIDE.softmax(1), 2),
    "log-softmax of 40 kB": (lambda: WIDE.log_softmax(0), 2),
    "attention": (lambda: F.scaled_dot_product_attention(HEADS, HEADS, HEADS), 8),
    "chunk by keyword": (lambda: SQUARE.chunk(2, dim=1), 3),
    "view by a list": (lambda: SQUARE.view([4, -1]), 4),
    "transpose in words": (lambda: SQUARE.transpose(dim1=0, dim0=1), 2),
    "columns picked": (lambda: SQUARE[:, AT], 6),
    "pairs picked": (lambda: SQUARE[AT, AT], 8),
    "picked by a list": (lambda: SQUARE[[0, 2]], 10),
    "picked by a mask": (lambda: SQUARE[MASK], 8),
    "nonzero": (lambda: MASK.nonzero(), 11),
    "where with a number": (lambda: torch.where(MASK, SQUARE, 0.0), 1),
    "addcmul": (lambda: torch.addcmul(SQUARE, SQUARE, SQUARE, value=0.5), 4),
    "add with alpha": (lambda: torch.add(SQUARE, SQUARE, alpha=2), 2),
    "max": (lambda: SQUARE.max(), 4),
    "LSTMCell": (lambda: CELL(SQUARE), 22),
    "randint": (lambda: torch.randint(0, 4, (4,)), 3),  # (draws are finished by a call more once inference mode was used)
    "rand_like": (lambda: torch.rand_like(SQUARE), 3),
    "randperm": (lambda: torch.randperm(4), 4),
    "normal_": (lambda: SCRATCH.normal_(), 3),
    "in place by itself": (lambda: SCRATCH.mul_(SCRATCH), 1),
    "equal": (lambda: torch.equal(SQUARE, SQUARE), 2),
    "bincount": (lambda: torch.bincount(AT), 22),
    "nll_loss": (lambda: F.nll_loss(SQUARE, AT), 4),
}


@pytest.mark.parametrize("name", KNOWN)
def test_a_known_call_takes_few_python_calls(name):
    call, most = KNOWN[name]
    with torch.no_grad():
        for _ in range(4 * recurring.FIRST):
            call()
        assert python_calls(call) <= most


#: writes nodes: the one generator, the class of nodes, and compiled programs, whose nodes stand for many
WRITERS = {"graph/node.py", "compiler/run/backward.py"}


def test_nodes_are_written_in_one_place():
    """No op gives nodes their age and place by itself."""
    found = {
        str(p.relative_to(PACKAGE)) for p in PACKAGE.rglob("*.py") if re.search(r"\.seq = (seq = )?sequence\(\)|(?<!_)(?<!def )\bspare\(", p.read_text())
    }
    assert found <= WRITERS


def test_only_one_place_asks_for_observers_before_plans_are_kept():
    for path in sorted((PACKAGE / "ops").rglob("*.py")):
        text = path.read_text(encoding="utf-8")
        assert not re.search(r"observing\(?\)?:\n\s+(return )?(launch\.)?keep\(", text), path


ALONG_A_DIM = {"softmax": lambda x, d: F.softmax(x, d), "sum": lambda x, d: x.sum(d), "log_softmax": lambda x, d: x.log_softmax(d)}


@pytest.mark.parametrize("name", ALONG_A_DIM)
def test_a_float_is_no_dim_though_it_is_equal_to_one(name):
    """1.0 is equal to 1, and no dim, also where a plan for 1 is known."""
    x, call = torch.ones(2, 3), ALONG_A_DIM[name]
    call(x, 1)
    with pytest.raises(TypeError):
        call(x, 1.0)


def test_errors_have_no_context_of_the_search_for_a_plan():
    """What is refused was not raised within the search for a plan."""
    with pytest.raises(ValueError, match="batch_size") as found:
        F.cross_entropy(torch.ones(2, 3), torch.zeros(3, dtype=torch.int64))
    assert found.value.__context__ is None


def test_an_observer_sees_calls_whose_plans_are_known():
    x = torch.ones(3, 4)
    seen = []

    def look(call, args):
        seen.append(call.name)
        call.entry(*args)

    for step in (lambda: F.softmax(x, -1), lambda: x.sum(), lambda: x @ x.t(), lambda: F.layer_norm(x, (4,)), lambda: F.linear(x, x, x[:, 0])):
        step()
        before = len(seen)
        with launch.observe(look):
            step()
            step()
        assert len(seen) >= before + 2
        step()


def test_nodes_of_known_calls_have_the_users_line():
    x = torch.ones(2, 3, requires_grad=True)
    for step in (lambda: x.sum(), lambda: F.softmax(x, 1), lambda: x @ x.t(), lambda: x.view(-1), lambda: F.linear(x, x), lambda: x.tanh()):
        for _ in range(2):
            assert step().grad_fn.code.co_filename == __file__


#: functions with a memo of their own, and why it is none of calls: what they keep has values, or there are only so many
OWN_CACHES = {
    "ops/nn/interpolate.py": {"_nearest_index", "_tables", "_byte_tables", "_operation"},  # tables that kernels have written; an op for each mode
}

#: dicts that are filled while the program runs: what is in them depends on dtypes and kinds of loops only, of which there are few
OF_KINDS = {
    "ops/creation/cast.py": {"_casts"}, "ops/creation/create.py": {"_ONES"}, "ops/random/draws.py": {"texts"},
    "ops/reduce/fused_reduction.py": {"folds"}, "optim/fused.py": {"_readers"},
}  # fmt: skip


def families() -> list[tuple[str, ast.Module]]:
    """What is above the core of ops: families of ops, and the optimizers."""
    paths = sorted([*(PACKAGE / "ops").rglob("*.py"), *(PACKAGE / "optim").rglob("*.py"), *(PACKAGE / "nn").glob("*.py")])
    named = [(p.relative_to(PACKAGE).as_posix(), ast.parse(p.read_text(encoding="utf-8"))) for p in paths]
    return [(name, tree) for name, tree in named if not name.startswith("ops/core/")]


def test_plans_are_kept_in_memos_alone():
    """No family has tables of plans that it makes, fills or looks up by itself: that is what `ops.core.memo` is for."""
    users = {
        p.relative_to(PACKAGE).as_posix()
        for p in PACKAGE.rglob("*.py")
        if re.search(r"\blaunch\.(keep|remember)\b|import .*\bremember\b", p.read_text(encoding="utf-8"))
    }
    assert users == {"ops/core/memo.py"}
    bounded = {}
    for name, tree in families():
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef):
                marks = [ast.unparse(d) for d in node.decorator_list]
                if any("lru_cache" in mark for mark in marks):
                    bounded.setdefault(name, set()).add(node.name)
    assert bounded == OWN_CACHES


def filled_dicts(tree: ast.Module) -> set[str]:
    """The names of dicts, of the module or of an object, that begin empty and get their entries in functions."""

    def name_of(node: ast.AST) -> str:
        return node.id if isinstance(node, ast.Name) else node.attr if isinstance(node, ast.Attribute) else ""

    empty = set()
    outside = [n for n in tree.body if isinstance(n, (ast.Assign, ast.AnnAssign))]
    attributes = [
        n for n in ast.walk(tree) if isinstance(n, (ast.Assign, ast.AnnAssign))
        and any(isinstance(t, ast.Attribute) for t in (n.targets if isinstance(n, ast.Assign) else [n.target]))
    ]  # fmt: skip
    for node in [*outside, *attributes]:
        value = node.value
        if (isinstance(value, ast.Dict) and not value.keys) or (isinstance(value, ast.Call) and name_of(value.func) in ("dict", "OrderedDict")):
            empty.update(name_of(t) for t in (node.targets if isinstance(node, ast.Assign) else [node.target]))
    filled = set()
    for function in (n for n in ast.walk(tree) if isinstance(n, (ast.FunctionDef, ast.Lambda))):
        for node in ast.walk(function):
            if isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Store):
                filled.add(name_of(node.value))
            elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "setdefault":
                filled.add(name_of(node.func.value))
    return empty & filled


def test_no_family_keeps_calls_in_dicts_of_its_own():
    found = {name: filled_dicts(tree) for name, tree in families() if name.startswith("ops/") or name == "optim/fused.py"}
    assert {name: dicts for name, dicts in found.items() if dicts} == OF_KINDS


def test_a_dict_of_its_own_is_found():
    """The test above can fail."""
    text = "seen = {}\nclass Op:\n    def __init__(self):\n        self.plans = {}\n    def run(self, x):\n        self.plans[x] = 1\n"
    assert filled_dicts(ast.parse(text)) == {"plans"}
    assert filled_dicts(ast.parse(text + "def call(x):\n    return seen.setdefault(x, 2)\n")) == {"plans", "seen"}


@pytest.mark.parametrize("call, one, other", [
    (torch.full, ((2,), 1), ((2,), 1.0)), (torch.full, ((2,), True), ((2,), 1)), (torch.full, ((2,), 0.0), ((2,), -0.0)),
    (torch.arange, (1, 3.0), (1.0, 3)), (torch.arange, (0, 4, 1), (0, 4.0, 1)), (torch.arange, (1.0, 3, 1), (1, 3, 1)),
])  # fmt: skip
def test_equal_numbers_are_not_the_same_argument(call, one, other):
    """What is made for 1 is not given for 1.0 or True, nor 0.0 for -0.0, whichever came first."""
    for args in (one, other, one, other):
        launch.forget()
        anew = call(*args)
        for given in (one, other, args):
            again = call(*given)
        assert again.dtype is anew.dtype
        assert repr(again) == repr(anew)


def test_an_index_is_not_what_it_is_equal_to():
    x = torch.arange(6).view(2, 3)
    assert x[1].tolist() == [3, 4, 5] and x[True].shape == (1, 2, 3) and x[1].shape == (3,)
    assert x[0, 1].item() == 1 and x[[0, 1]].shape == (2, 3) and x[0, 1].ndim == 0
    x[1] = 7
    x[True] = 8
    x[1] = 9
    assert x.tolist() == [[8, 8, 8], [9, 9, 9]]


def test_plans_have_one_bound(monkeypatch):
    """Whatever they belong to; what is big counts for more."""
    monkeypatch.setattr(launch, "KEPT", 300)
    launch.forget()
    for n in range(1, 90):
        torch.zeros(n + 20), torch.arange(500 + n), torch.ones(n)[0], torch.cat((torch.ones(n), torch.ones(2))), torch.ones(2, n).t()
    assert launch._held == sum(weight for *_, weight in launch._order) <= 300
    assert all(key in table for table, key, _ in launch._order)


def test_functions_can_be_left_for_c_code_that_imports():
    """It asks the globals of the Python function that runs for how to import, as Numba's binding of BLAS does at the first product."""
    functions = {f"{home.__name__}.{name}": value for home in (torch, F, torch.linalg, torch.fft, torch.Tensor) for name, value in vars(home).items()}
    assert sum(hasattr(f, "__globals__") for f in functions.values()) > 500
    assert not [name for name, f in functions.items() if hasattr(f, "__globals__") and "__builtins__" not in f.__globals__]
