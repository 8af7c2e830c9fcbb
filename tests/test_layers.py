"""Imports only point down the list of layers, and importing the package loads nothing heavy."""

from __future__ import annotations

import ast
import functools
import importlib
import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

import autograd_nb

#: from the ground up; modules of one layer may import each other
LAYERS: tuple[tuple[str, ...], ...] = (
    ("errors", "config", "dtypes", "shapes", "strides", "return_types", "overriding", "locks"),
    ("codegen",),
    ("kernels", "checked"),
    ("launch",),
    ("graph",),
    ("tensor",),
    ("ops",),
    ("autograd",),
    ("compiler",),
    ("display", "linalg", "fft", "special", "random", "masked", "signal", "sparse", "testing", "types", "distributed"),
    ("nn",),
    ("optim",),
    ("utils", "func", "serialization", "distributions", "profiler", "viz"),
    ("compat",),
    ("__init__", "cache", "__main__"),
)

#: the layers inside of a folder, from the ground up, by file or folder; what a row does not name is on top of all
ROOMS: dict[str, tuple[tuple[str, ...], ...]] = {
    "codegen": (
        ("processor", "formula"),
        ("templates",),
        ("translate",),
        (
            "interpreted", "plain_math", "frontend", "library", "jit", "vectors", "runtime", "arrays", "lanes", "tiles", "elementary",
            "iterative",
        ),
        ("build",),
    ),
    "ops": (
        ("core",), ("creation",), ("elementwise",), ("shape",), ("indexing",), ("reduce",), ("random", "signal", "products"), ("linalg",),
        ("nn",),
    ),
    "kernels": (("products", "indexing", "reduce", "random", "fft", "updates"), ("linalg", "nn", "optim")),
    "kernels.linalg": (("lapack", "ldl", "batched", "matrix_exp"), ("jacobi", "least_squares")),
    "distributed": (
        ("failures", "reduce_op", "mpi", "rendezvous", "trail", "waiting"), ("futures",), ("buffers", "work"), ("thread",), ("watch", "courier"), ("ending",),
        ("group",), ("agreement", "checks"), ("compiled",), ("collectives",), ("exchanges", "messages", "parts", "barriers", "joining", "comm_hooks"),
        ("objects", "nn", "launcher", "power_sgd", "tensor"), ("functional",),
    ),
    "distributed.tensor": (("mesh",), ("layout",), ("calls", "names", "products"), ("rules",), ("dtensor",)),
    "codegen.formula": (("namespace",), ("symbols",), ("primitives",), ("complexes",), ("vecmath",)),
    "codegen.translate": (("text", "marks"), ("inference",), ("lowering",), ("front",)),
    "codegen.build": (
        ("hashed",), ("apart", "cache", "digest", "files", "linking", "notice", "workers"), ("pack", "requests"), ("entry_point", "packs"),
        ("machine_code", "pipeline"), ("compilation", "llvm_text"), ("ahead",),
    ),
    # a stage knows the stages before it and what they hand on (`ir`), never what is made of its work
    "compiler": (
        ("live_numbers", "remedies", "stance"),
        ("nested", "ir"),
        ("addresses",),
        ("guards",),
        ("capture",),
        ("passes",),
        ("lower",),
        ("run",),
        ("trace",),
        ("snapshot",),
        ("outcome", "derivatives"),
        ("session",),
        ("dispatch",),
    ),
    "compiler.guards": (
        ("bytecode", "carried_state", "dict_marks", "holders"),
        ("places", "watch"),
        ("interpreter",),
        ("memory_words",),
        ("reach",),
        ("guard",),
    ),
    "compiler.capture": (("recorder",), ("effects", "sections")),
    "compiler.passes": (
        ("pointwise_step", "together"),
        ("simplify", "copy_elision", "gemm_epilogue", "shared_factor", "fusion_group"),
        ("row_plan", "buffer_reuse"),
        ("row_parts", "fused_kernel"),
        ("rematerialize", "loop_fusion"),
        ("row_fusion",),
        ("pipeline",),
    ),
    "compiler.lower": (("driver", "parallel_records", "memory_plan"), ("executable",)),
    "compiler.run": (
        ("restored", "records"), ("again", "initial_gradients", "serving", "single"), ("backward",), ("variant",), ("fast_path", "profile", "check"),
    ),
    "compiler.trace": (("picture", "source"), ("graph",), ("stored", "numba_function")),
}

#: imports inside functions that may point up: (layer's module, what it imports) -> why
ALLOWED: dict[tuple[str, str], str] = {}

#: kernels see bare arrays: what they may import besides the standard library; Numba finds BLAS and LAPACK in scipy
KERNELS_MAY_IMPORT = {"numba", "numpy", "llvmlite", "scipy", "autograd_nb.kernels", "autograd_nb.codegen"}

PACKAGE = Path(autograd_nb.__file__).parent
LEVEL = {name: level for level, names in enumerate(LAYERS) for name in names}


@dataclass(frozen=True)
class Import:
    """One imported module: where, what, and whether it happens only when a function is called."""

    path: Path
    line: int
    importer: str  # dotted, relative to the package
    imported: str  # dotted; absolute
    deferred: bool

    @property
    def layers(self) -> tuple[str, str]:
        inside = self.imported.split(".")[1:]
        return self.importer.split(".")[0], inside[0] if inside else "__init__"

    def __str__(self) -> str:
        return f"{self.path.relative_to(PACKAGE.parent)}:{self.line} imports {self.imported}"


def dotted(path: Path) -> str:
    parts = path.relative_to(PACKAGE).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" and len(parts) > 1 else parts)


def is_module(name: str) -> bool:
    path = PACKAGE.parent.joinpath(*name.split("."))
    return path.is_dir() or path.with_suffix(".py").is_file()


def only_for_types(node: ast.AST) -> bool:
    return isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test)


def imports_of(path: Path) -> Iterator[Import]:
    importer = dotted(path)
    package = [PACKAGE.name, *path.relative_to(PACKAGE).parts[:-1]]

    def visit(node: ast.AST, deferred: bool) -> Iterator[Import]:
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield Import(path, node.lineno, importer, alias.name, deferred)
        elif isinstance(node, ast.ImportFrom):
            above = package[: len(package) - node.level + 1] if node.level else []
            base = ".".join([*above, *([node.module] if node.module else [])])
            for alias in node.names:  # `from . import x` may name a module or something in the package's __init__
                inner = f"{base}.{alias.name}"
                named = inner if inner.startswith(PACKAGE.name) and is_module(inner) else base
                yield Import(path, node.lineno, importer, named, deferred)
        elif not only_for_types(node):
            deferred = deferred or isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda))
            for child in ast.iter_child_nodes(node):
                yield from visit(child, deferred)

    yield from visit(ast.parse(path.read_text(encoding="utf-8")), False)


FILES = sorted(PACKAGE.rglob("*.py"))


@functools.cache
def all_imports() -> list[Import]:
    return [i for path in FILES for i in imports_of(path)]


@functools.cache
def imports_inside() -> list[Import]:
    """Those of the package's own modules."""
    return [i for i in all_imports() if i.imported.split(".")[0] == PACKAGE.name]


def points_up(i: Import) -> bool:
    importer, imported = i.layers
    return LEVEL.get(imported, 0) > LEVEL.get(importer, 0)  # modules without a place fail the test above


def test_every_module_has_a_layer():
    unknown = {path.relative_to(PACKAGE).parts[0].removesuffix(".py") for path in FILES} - set(LEVEL)
    assert not unknown, f"give {sorted(unknown)} a place in LAYERS"


def test_the_root_holds_rooms_not_things():
    """What only a few programs want has its folder (compat for PyTorch's names, ops, nn, …); a file in the root is for everybody."""
    entries = [p.name for p in PACKAGE.iterdir() if p.name not in ("__pycache__", "README.md")]
    assert len(entries) <= 41, sorted(entries)


def test_imports_point_down():
    wrong = [str(i) for i in imports_inside() if points_up(i) and not (i.deferred and i.layers in ALLOWED)]
    assert not wrong, "these imports point up the layers:\n" + "\n".join(wrong)


def room_and_layers(i: Import) -> Iterator[tuple[str, int, int]]:
    """The rooms that both ends of an import are in, with the layers of the importer and of the imported."""
    imported = i.imported.removeprefix(PACKAGE.name + ".")
    for room, layers in ROOMS.items():
        inside = room + "."
        if i.importer.startswith(inside) and imported.startswith(inside):
            level = {name: n for n, names in enumerate(layers) for name in names}
            a, b = (name.removeprefix(inside).split(".")[0] for name in (i.importer, imported))
            if a != b:
                yield room, level.get(a, len(layers)), level.get(b, len(layers))


def test_imports_point_down_inside_of_folders():
    """Also those that wait for a call."""
    wrong = [f"{room}: {i}" for i in imports_inside() for room, importer, imported in room_and_layers(i) if imported > importer]
    assert not wrong, "these imports point up the layers of a folder:\n" + "\n".join(wrong)


def test_rooms_name_what_is_there():
    for room, layers in ROOMS.items():
        folder = PACKAGE.joinpath(*room.split("."))
        missing = [n for names in layers for n in names if not (folder / n).is_dir() and not (folder / f"{n}.py").is_file()]
        assert not missing, f"{room} has no {missing}"


def circles(imports: list[Import]) -> list[list[str]]:
    """The groups of modules that import one another, each sorted (Tarjan's strongly connected components)."""
    edges: dict[str, set[str]] = {}
    for i in imports:
        edges.setdefault(i.importer, set()).add(i.imported.removeprefix(PACKAGE.name + "."))
    number: dict[str, int] = {}
    low: dict[str, int] = {}
    stack: list[str] = []
    found: list[list[str]] = []

    def visit(module: str) -> None:
        number[module] = low[module] = len(number)
        stack.append(module)
        for other in sorted(edges.get(module, ())):
            if other not in number:
                visit(other)
                low[module] = min(low[module], low[other])
            elif other in stack:
                low[module] = min(low[module], number[other])
        if low[module] == number[module]:
            at = stack.index(module)
            found.append(sorted(stack[at:]))
            del stack[at:]

    for module in sorted(edges):
        if module not in number:
            visit(module)
    return [group for group in found if len(group) > 1]


def test_no_modules_import_one_another():
    """Not even by imports that wait for a call: what a lower module needs of a higher one is handed in."""
    assert circles([i for i in imports_inside() if "." in i.imported]) == []


def test_allowed_is_no_longer_than_needed():
    used = {i.layers for i in imports_inside() if points_up(i)}
    assert not set(ALLOWED) - used, f"nothing uses {sorted(set(ALLOWED) - used)} any more: take it out of ALLOWED"


def test_kernels_know_arrays_only():
    wrong = [
        str(i)
        for i in all_imports()
        if i.layers[0] == "kernels"
        and i.imported.split(".")[0] not in sys.stdlib_module_names
        and not any(i.imported == name or i.imported.startswith(name + ".") for name in KERNELS_MAY_IMPORT)
    ]
    assert not wrong, "kernels may import numba, numpy, BLAS and codegen only:\n" + "\n".join(wrong)


def test_kernels_find_what_they_import_in_their_checked_form():
    """A file of kernels that imports something new of `codegen` finds it in `checked.codegen` too, for graphs that come from files."""
    root = Path(autograd_nb.__file__).parent / "kernels"
    for path in sorted(root.rglob("[a-z]*.py")):
        importlib.import_module(".".join(["autograd_nb.checked.kernels", *path.relative_to(root).with_suffix("").parts]))


def test_the_walk_sees_every_form_of_import(tmp_path, monkeypatch):
    """A test of this test: what the walk finds in a launch.py with every form of import."""
    package = tmp_path / "autograd_nb"
    for name in ("graph", "ops"):
        (package / name).mkdir(parents=True)
    (package / "tensor.py").touch()
    (package / "launch.py").write_text(
        "from typing import TYPE_CHECKING\n"
        "from . import graph\n"
        "from .graph import node\n"
        "import autograd_nb.ops\n"
        "if TYPE_CHECKING:\n"
        "    from .tensor import Tensor\n"
        "try:\n"
        "    from . import __version__\n"
        "except ImportError:\n"
        "    pass\n"
        "def f():\n"
        "    from .tensor import Tensor\n"
    )
    monkeypatch.setitem(globals(), "PACKAGE", package)
    found = list(imports_of(package / "launch.py"))
    assert [(i.imported.removeprefix("autograd_nb."), i.deferred, points_up(i)) for i in found[1:]] == [
        ("graph", False, True),
        ("graph", False, True),
        ("ops", False, True),
        ("autograd_nb", False, True),
        ("tensor", True, True),
    ]


# ------------------------------------------------------------------------------------------------ importing is cheap

HEAVY = ("numba", "llvmlite", "scipy")


def run_python(*arguments: str) -> subprocess.CompletedProcess[str]:
    # as on a user's machine, where Python keeps the compiled modules: without them it compiles every file at each import
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    return subprocess.run(
        [sys.executable, *arguments], capture_output=True, text=True, check=True, cwd=PACKAGE.parent, env=environment
    )


def test_import_loads_neither_numba_nor_scipy():
    loaded = run_python("-c", "import autograd_nb, sys; print(*sys.modules, sep='\\n')").stdout.split()
    assert "autograd_nb" in loaded
    assert not [name for name in HEAVY if name in loaded]


def test_compile_does_not_read_the_tables_of_pytorchs_other_names():
    """They are read when a name is asked for that stands nowhere else, as a module not yet loaded is by ``from package import module``."""
    loaded = run_python("-c", "import autograd_nb.compiler.session, sys; print(*sys.modules, sep='\\n')").stdout.split()
    assert "autograd_nb.compiler.session" in loaded
    assert not {"autograd_nb.compat.absent", "autograd_nb.compat.documented", "multiprocessing"} & {*loaded}


#: what an import runs does not depend on the machine, nor on what else it does
IMPORT = """
import sys
import numpy

before, calls, texts = len(sys.modules), 0, 0
def count(frame, event, argument):
    global calls
    calls += event == "call"
def hear(event, arguments):
    global texts
    texts += event == "compile"

sys.addaudithook(hear)
sys.setprofile(count)
import autograd_nb
sys.setprofile(None)
print(calls, len(sys.modules) - before, texts)
"""


def test_import_runs_few_functions():
    """What an op or a module needs is made when it is first called, as far as that is not needed to know it; and few modules are needed."""
    run_python("-c", IMPORT)  # Python keeps the compiled modules
    calls, modules, texts = map(int, run_python("-c", IMPORT).stdout.split())
    assert 10_000 < calls < 67_000
    assert 200 < modules < 285
    assert 10 < texts < 220


def test_import_takes_numpy_from_near_the_ground():
    """Deep within, where a frame no longer fits into CPython's piece of stack, each of its calls had asked the system for another one."""
    code = """if True:
        import sys

        class Seen:
            def find_spec(self, name, path=None, target=None):
                if name == "numpy":
                    frame = sys._getframe()
                    while "importlib" in frame.f_code.co_filename or frame.f_code is Seen.find_spec.__code__:
                        frame = frame.f_back
                    print(frame.f_globals["__name__"])

        sys.meta_path.insert(0, Seen())
        import autograd_nb
    """
    assert run_python("-c", code).stdout.strip() == "autograd_nb"


def test_import_leaves_the_collector_as_it_was():
    """It sets aside what it makes, also for Python's end, but only where a program had hardly anything before that might be garbage one day."""
    own = int(run_python("-c", "import gc; print(gc.get_freeze_count())").stdout)  # Python 3.12 sets some aside itself
    says = f"print(gc.isenabled(), gc.get_freeze_count() > 20_000, gc.get_freeze_count() > {own})"
    assert run_python("-c", f"import gc, autograd_nb; {says}").stdout == "True True True\n"
    assert run_python("-c", f"import gc; gc.disable(); import autograd_nb; {says}").stdout == "False True True\n"
    assert run_python("-c", f"import gc; kept = [[] for _ in range(200_000)]; import autograd_nb; {says}").stdout == "True False False\n"
    assert run_python("-c", f"import gc; gc.freeze(); import autograd_nb; {says}").stdout == "True False True\n"

ENDING = """
{}
class Loop:
    def __init__(self, **own):
        self.__dict__.update(own, loop=self)
def lines():
    try:
        yield
    finally:
        print("last line")
{}
"""


@pytest.mark.parametrize(
    "alive, said",
    [
        ("kept = open(1, 'w', closefd=False); kept.write('written')", "written"),
        ("kept = Loop(file=open(1, 'w', closefd=False)); kept.file.write('written')", "written"),
        ("Loop.__del__ = lambda loop: print('farewell'); kept = Loop()", "farewell\n"),
        ("kept = Loop(lines=lines()); next(kept.lines)", "last line\n"),
    ],
)
def test_files_are_written_and_finalizers_run_as_python_ends(alive, said):
    """Those of the program's own variables, too, which the import has set aside with all else, or a very large graph that still lives."""
    assert run_python("-c", ENDING.format("", alive)).stdout == said  # as without the package
    assert run_python("-c", ENDING.format("import autograd_nb", alive)).stdout == said
    large = "import autograd_nb; y = autograd_nb.ones(1, requires_grad=True)\nfor _ in range(140_000): y = y + 1"
    assert run_python("-c", ENDING.format(large, alive)).stdout == said


def test_free_threaded_builds_are_refused():
    """Before anything else is imported: their objects lie otherwise in memory."""
    code = """
import importlib.machinery, sys
importlib.machinery.EXTENSION_SUFFIXES.insert(0, ".cpython-{}{}t-x86_64-linux-gnu.so".format(*sys.version_info))
try:
    import autograd_nb
except ImportError as error:
    print("numpy" in sys.modules, error)
"""
    assert run_python("-c", code).stdout.startswith("False autograd_nb does not run on free-threaded builds of Python")


def test_import_that_fails_leaves_the_collector_on():
    fails = "import gc, sys; sys.modules['numpy'] = None\ntry: import autograd_nb\nexcept ImportError: print('fails')\nprint(gc.isenabled())"
    assert run_python("-c", fails).stdout == "fails\nTrue\n"


def test_a_very_large_graph_is_set_aside_while_it_lives():
    """Also in a program whose import was; one that has set objects aside itself is left alone."""
    chain = """
import gc, autograd_nb as torch
{}
y, before = torch.ones(1, requires_grad=True), gc.get_freeze_count()
for _ in range(140_000):
    y = y + 1
grown = gc.get_freeze_count() > before + 100_000
del y
print(grown, gc.get_freeze_count() > 0)
"""
    assert run_python("-c", chain.format("")).stdout == "True False\n"
    assert run_python("-c", chain.format("kept = [[] for _ in range(100_000)]; gc.freeze()")).stdout == "False True\n"


if __name__ == "__main__":
    sys.exit(pytest.main([__file__]))
