"""Compiling and keeping kernels: what must hit, what must miss, and what must not stop a program."""

from __future__ import annotations

import ctypes
import errno
import gc
import linecache
import os
import random
import re
import signal
import subprocess
import sys
import textwrap
import threading
import warnings
import weakref
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest

from autograd_nb.__main__ import main
from autograd_nb.cache import warm
from autograd_nb.codegen.build import cache, compilation, digest, linking, machine_code, requests
from autograd_nb.codegen.build.cache import CacheWarning, Store

ROOT = Path(__file__).parents[2]
POSIX = pytest.mark.skipif(os.name != "posix", reason="needs fork")

PRELUDE = """
import os, sys, warnings
import numpy as np
from autograd_nb.codegen.build import compilation
made = []
compile_ = compilation._compile
compilation._compile = lambda function, *rest: made.append(function.__name__) or compile_(function, *rest)
def run(source, n=4, argtypes=("float32[:]", "float32[:]"), name="kernel"):
    x = np.arange(1, n + 1, dtype=np.float32)
    y = np.zeros_like(x)
    compilation.build(source, name, argtypes)(x, y)
    return y.tolist()
"""
DOUBLE = """
def kernel(x, y):
    for i in range(y.size):
        y[i] = x[i] * 2
"""


def environment(folder: Path | str, **extra: str) -> dict[str, str]:
    env = {k: v for k, v in os.environ.items() if not k.startswith("NUMBA_")}
    path = os.pathsep.join([str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])])
    return {**env, "PYTHONPATH": path, "AUTOGRAD_NB_CACHE_DIR": str(folder), **extra}


def start(folder: Path | str, code: str, **extra: str) -> subprocess.Popen:
    # warnings are errors: nothing may be said about a cache that works
    command = [sys.executable, "-W", "error::UserWarning", "-c", PRELUDE + textwrap.dedent(code)]
    return subprocess.Popen(
        command, env=environment(folder, **extra), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


def finish(process: subprocess.Popen) -> str:
    out, err = process.communicate(timeout=120)
    assert process.returncode == 0, err
    return out.strip()


def python(folder: Path | str, code: str, **extra: str) -> str:
    """What a fresh process prints that runs ``code`` with its kernels in ``folder``."""
    return finish(start(folder, code, **extra))


@pytest.fixture
def store(tmp_path, monkeypatch):
    """A store of its own for the kernels that this process builds."""
    mine = Store(tmp_path / "kernels")
    monkeypatch.setattr(machine_code, "store", mine)
    return mine


def kernels(folder: Path) -> list[Path]:
    return sorted(folder.glob("*.kernel"))


def leftovers(folder: Path) -> list[Path]:
    return [p for p in folder.iterdir() if p.suffix not in (".kernel", requests.SUFFIX)]


# ------------------------------------------------------------------------------------------- a cold and a warm start


def test_warm_process_compiles_nothing(tmp_path):
    code = f"""
    print(run({DOUBLE!r}))
    import autograd_nb as torch
    x = torch.tensor([[1.0, 2.0], [3.0, 4.0]], requires_grad=True)
    (x @ x).sum(0).exp().sum().backward()  # generated, hand-written, and BLAS as an external function
    print(x.grad.tolist())
    print(len(made))
    """
    *cold, compiled = python(tmp_path, code).splitlines()
    assert int(compiled) == len(kernels(tmp_path)) > 3
    *warm, again = python(tmp_path, code).splitlines()
    assert warm == cold
    assert warm[0] == "[2.0, 4.0, 6.0, 8.0]"
    assert again == "0"
    assert int(compiled) == len(kernels(tmp_path))
    assert not leftovers(tmp_path)


def test_importing_does_not_import_numba(tmp_path):
    assert python(tmp_path, "print('numba' in sys.modules)") == "False"


@pytest.mark.slow
def test_loading_does_not_import_what_only_compiling_needs(tmp_path):
    code = f"run({DOUBLE!r}); print(made, 'scipy.linalg' in sys.modules)"
    assert python(tmp_path, code).startswith("['kernel']")
    assert python(tmp_path, code) == "[] False"


def test_files_are_the_users_alone(tmp_path):
    folder = tmp_path / "new" / "kernels"
    python(folder, f"os.umask(0); run({DOUBLE!r})")
    (path,) = kernels(folder)
    if os.name == "posix":
        assert path.stat().st_mode & 0o777 == 0o600
        assert folder.stat().st_mode & 0o777 == 0o700


# ---------------------------------------------------------------------------------------------- nothing is ever stale


@pytest.mark.slow
def test_changed_source_is_another_kernel(tmp_path):
    source = "import numpy as np\nk = {}\ntable = np.array([{}, 7.0])\ndef kernel(x, y):\n    y[0] = x[0] * k + table[0]\n"
    code = f"print([run(s)[0] for s in {[source.format(*v) for v in ((2, 0.0), (3, 0.0), (2, 0.5))]!r}], len(made))"
    assert python(tmp_path, code) == "[2.0, 3.0, 2.5] 3"
    assert python(tmp_path, code) == "[2.0, 3.0, 2.5] 0"


@pytest.mark.slow
def test_edited_helper_in_another_file(tmp_path):
    (tmp_path / "kernels").mkdir()
    modules = {
        "extra_kernel": """
            import numpy as np
            from autograd_nb.codegen.jit import helper
            from autograd_nb.kernels import extra_far
            from autograd_nb.kernels.extra_near import near
            def entry(x, y):
                for i in range(y.size):
                    y[i] = near(x[i]) + extra_far.OFFSET
            """,
        "extra_near": """
            from autograd_nb.codegen.jit import helper
            from .extra_far import far
            @helper
            def near(x):
                return far(x) + 1
            """,
        "extra_far": """
            from autograd_nb.codegen.jit import helper
            OFFSET = 0
            @helper
            def far(x):
                return x * 2
            """,
    }
    for name, text in modules.items():
        (tmp_path / f"{name}.py").write_text(textwrap.dedent(text))
    code = f"""
    import autograd_nb.kernels
    autograd_nb.kernels.__path__.append({str(tmp_path)!r})
    sys.dont_write_bytecode = True
    from autograd_nb.kernels.extra_kernel import entry
    x, y = np.ones(1, np.float32), np.zeros(1, np.float32)
    compilation.build_function(entry, ("float32[:]", "float32[:]"))(x, y)
    print(y[0], len(made))
    """
    folder = tmp_path / "kernels"
    assert python(folder, code) == "3.0 1"
    assert python(folder, code) == "3.0 0"
    far = tmp_path / "extra_far.py"
    for old, new, expected in (
        ("x * 2", "x * 5", 6.0),
        ("OFFSET = 0", "OFFSET = 10", 16.0),
        ("@helper", "@helper(fastmath=[])", 16.0),
    ):
        far.write_text(far.read_text().replace(old, new))
        assert python(folder, code) == f"{expected} 1"
    assert python(folder, code) == "16.0 0"


@pytest.mark.slow
def test_boundscheck_and_plain_python(tmp_path):
    outside = "def kernel(x, y):\n    y[0] = x[y.size + 3]\n"
    code = f"""
    try:
        run({outside!r})
    except IndexError as error:
        import traceback
        print("IndexError", "y[0] = x[y.size + 3]" in traceback.format_exc())
    print(run({DOUBLE!r}), len(made))
    """
    doubled = "[2.0, 4.0, 6.0, 8.0]"
    assert python(tmp_path, code) == f"{doubled} 2"
    assert python(tmp_path, code, NUMBA_BOUNDSCHECK="1") == f"IndexError False\n{doubled} 2"
    # plain Python shows the generated line where it failed
    assert python(tmp_path, code, NUMBA_DISABLE_JIT="1") == f"IndexError True\n{doubled} 0"


@pytest.mark.slow
def test_errors_of_helpers(tmp_path):
    # a message with numbers in it is made of objects that the helper refers to: those of a kernel just compiled, and of one loaded
    source = """
from autograd_nb.codegen.jit import helper

@helper
def checked(x):
    if x > 2:
        raise ValueError("too large", x)
    return x

def kernel(x, y):
    for i in range(y.size):
        y[i] = checked(x[i])
"""
    code = f"""
    print(run({source!r}, 2))
    try:
        run({source!r}, 3)
    except ValueError as error:
        print(error.args, len(made))
    """
    for compiled in (1, 0):
        assert python(tmp_path, code) == f"[1.0, 2.0]\n('too large', 3.0) {compiled}"


def key(function, *more) -> str:
    found = digest.Digest()
    found.add(more)
    found.add(function)
    return found.hexdigest()


def defined(text: str, **names):
    space = {"__name__": "somewhere", "np": np, **names}
    exec(textwrap.dedent(text), space)
    return space["f"]


def variants():
    from autograd_nb.codegen.jit import helper

    body = "def f(x): return x * {}"
    yield from (
        defined(body.format(c)) for c in ("1", "1.0", "True", "0.0", "-0.0", "1j", "(1, 2)", "(1.0, 2)", "'1'", "b'1'", "None")
    )
    use = "def f(x): return x * k"
    yield from (
        defined(use, k=k)
        for k in (2, 2.0, True, 0.0, -0.0, np.float32(2), np.float64(2), np.int64(2), (2,), [2], np.float32, np.float64)
    )
    arrays = np.zeros(2), np.ones(2), np.zeros(2, np.float32), np.zeros((2, 1)), np.zeros((1, 2)), np.zeros(2, ">f8")
    yield from (defined("def f(x): return x + k[0]", k=k) for k in arrays)
    yield from (defined(f"def f(x, a={a}): return x + a") for a in (1, 2, 1.5))
    yield from (defined(f"def g(k):\n    def f(x): return x * k\n    return f\nf = g({k})") for k in (1, 2, 2.5))
    yield from (defined("def f(x): return g(x)", g=defined(f"def f(x): return x * {k}")) for k in (3, 4))
    yield from (defined("def f(x): return g(x)", g=helper(defined(f"def f(x): return x * {k}"))) for k in (3, 4))
    yield defined("def f(x): return g(x)", g=helper(defined("def f(x): return x * 3"), fastmath={"reassoc"}))
    inner = (defined("def f(x): return h(x)", h=helper(defined(f"def f(x): return x - {k}"))) for k in (5, 6))
    yield from (defined("def f(x): return g(x)", g=helper(i)) for i in inner)
    yield from (
        defined(f"def f(x):\n    a = x\n    {line}\n    return a") for line in ("a += 1", "a -= 1", "a = a.real", "a = a.imag")
    )
    yield from (defined(f"def f(x): return np.{name}(x)") for name in ("exp", "log", "empty", "zeros"))


def test_keys_are_unique():
    # every variant is its own, and a copy of it made anew is the same
    first, second = ([key(f) for f in variants()] for _ in range(2))
    assert first == second
    assert len(set(first)) == len(first)
    f = defined("def f(x): return x")
    assert (
        len({key(f, ("float32[:]",), {"nogil": True}), key(f, ("float64[:]",), {"nogil": True}), key(f, ("float32[:]",), {})})
        == 3
    )


def test_recursion_and_unknown_objects():
    assert key(defined("def f(x): return f(x - 1) if x > 0 else x")) != key(
        defined("def f(x): return f(x - 2) if x > 0 else x")
    )
    with pytest.raises(digest.Unknown):
        key(defined("def f(x): return k.real", k=object()))


def test_what_has_no_key_is_compiled_and_not_kept(store):
    address = ctypes.CFUNCTYPE(ctypes.c_double, ctypes.c_double)(lambda x: x + 2)  # valid in this process alone
    function = defined("def f(x):\n    x[0] = k(x[0])", k=address)
    with pytest.raises(digest.Unknown):
        key(function)
    x = np.ones(1)
    compilation.build_function(function, ("float64[:]",))(x)
    assert x[0] == 3
    assert not list(store.files())


# ------------------------------------------------------------------------------------------- processes and threads


@pytest.mark.slow
def test_processes_at_once(tmp_path):
    sources = [DOUBLE.replace("* 2", f"* {k}") for k in (2, 3)]
    started = [start(tmp_path, f"print([run(s) for s in {sources!r}])") for _ in range(4)]
    assert {finish(p) for p in started} == {"[[2.0, 4.0, 6.0, 8.0], [3.0, 6.0, 9.0, 12.0]]"}
    assert len(kernels(tmp_path)) == 2
    assert not leftovers(tmp_path)


def test_threads_at_once(store):
    sources = [DOUBLE.replace("* 2", f"* {k}") for k in (21, 22)]
    found: dict[int, list] = {}
    gate = threading.Barrier(4)

    def work(k):
        gate.wait()
        found[k] = [compilation.build(s, "kernel", ("float32[:]", "float32[:]")) for s in (sources if k % 2 else sources[::-1])]

    threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert found[1] == found[3] == found[0][::-1] == found[2][::-1]
    x, y = np.ones(2, np.float32), np.zeros(2, np.float32)
    for entry, expected in zip(found[1], (21, 22), strict=True):
        entry(x, y)
        assert y.tolist() == [expected] * 2
    assert len(list(store.files())) == 2


# a helper too big to be inlined, made by a factory: equal names, different bodies, as Numba's own implementations have
COLLIDING = """
import math
from autograd_nb.codegen.jit import helper
def make(k):
    @helper
    def body(x):
        {lines}
        return x
    return body
body = make({k})
def kernel(x, y):
    for i in range(y.size):
        y[i] = body(x[i]) + body(x[i] * 0)
"""


def colliding(k: int) -> str:
    lines = "\n        ".join(["x = (x * 3.5 + math.floor(x / 7.25) * 1.5) % 1000.0 if x < 1e6 else x - 1e6"] * 30)
    return COLLIDING.format(lines=lines + "\n        x = x * 0 + k", k=k)


@pytest.mark.slow
def test_equal_names_of_helpers_do_not_collide(tmp_path):
    # each is compiled as the first kernel of a process, so that all of Numba's counters agree
    sources = [colliding(k) for k in (5, 7)]
    for s in sources:
        python(tmp_path, f"run({s!r})")
    assert python(tmp_path, f"print([run(s, 1) for s in {sources!r}], made)") == "[[10.0], [14.0]] []"


@pytest.mark.slow
@POSIX
def test_fork(tmp_path):
    # children compile different kernels from one state of Numba, while a thread of the parent compiles too
    sources = [colliding(k) for k in (1, 2, 3)]
    code = f"""
    import signal, threading
    sources = {sources!r}
    run({DOUBLE!r})
    inside, plain = threading.Event(), compilation._compile
    compilation._compile = lambda *rest: inside.set() or plain(*rest)
    thread = threading.Thread(target=run, args=(sources[0],))
    thread.start()
    inside.wait()
    children = []
    for s in sources[1:]:
        warnings.simplefilter("ignore", DeprecationWarning)
        child = os.fork()
        if not child:
            signal.alarm(60)  # rather than wait for ever, should it inherit a lock that is held
            expected = 2.0 * (1 + sources.index(s))
            os._exit(0 if run(s, 1) == [expected] and run({DOUBLE!r}, 1) == [2.0] else 1)
        children.append(child)
    thread.join()
    print([os.waitpid(c, 0)[1] for c in children], run(sources[0], 1))
    """
    assert python(tmp_path, code) == "[0, 0] [2.0]"
    again = f"print([run(s, 1) for s in {sources!r}], run({DOUBLE!r}), made)"
    assert python(tmp_path, again) == "[[2.0], [4.0], [6.0]] [2.0, 4.0, 6.0, 8.0] []"


@POSIX
def test_kill_while_writing(tmp_path):
    store = Store(tmp_path)
    payloads = {f"{k:064x}": bytes([k]) * 3_000_000 for k in range(4)}
    rng = random.Random(0)
    for _ in range(25):
        child = _forked(lambda: [store.save(k, p, {}) for _ in range(1000) for k, p in payloads.items()])
        threading.Event().wait(rng.uniform(0.002, 0.03))
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        for path, _ in store.files():
            assert store.load(path.stem) == payloads[path.stem]
    assert store.save(f"{9:064x}", b"x", {})
    store.sweep(0)
    assert not leftovers(tmp_path)


def _forked(work) -> int:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        child = os.fork()
    if not child:
        try:
            work()
        finally:
            os._exit(0)
    return child


# ---------------------------------------------------------------------------------------------------- damaged files


def test_damage_is_noticed(tmp_path):
    store, name = Store(tmp_path), "ab" * 32
    payload = random.Random(1).randbytes(500)
    assert store.save(name, payload, {"name": "k"})
    path = tmp_path / f"{name}.kernel"
    whole = path.read_bytes()
    assert store.load(name) == payload
    assert cache.describe(path) == {"key": name, "name": "k"}
    for at in range(len(whole)):
        path.write_bytes(whole[:at] + bytes([whole[at] ^ (1 << at % 8)]) + whole[at + 1 :])
        assert store.load(name) is None
        path.write_bytes(whole[:at])
        assert store.load(name) is None
    path.write_bytes(whole + b"\0")
    assert store.load(name) is None
    path.write_bytes(whole)
    path.rename(tmp_path / f"{'cd' * 32}.kernel")  # a whole file, of another kernel
    assert store.load("cd" * 32) is None


@pytest.mark.slow
def test_damaged_kernel_is_compiled_again_and_replaced(tmp_path):
    code = f"print(run({DOUBLE!r}), len(made))"
    assert python(tmp_path, code) == "[2.0, 4.0, 6.0, 8.0] 1"
    (path,) = kernels(tmp_path)
    size = path.stat().st_size
    path.write_bytes(path.read_bytes()[: size // 2])
    assert python(tmp_path, code) == "[2.0, 4.0, 6.0, 8.0] 1"
    assert path.stat().st_size > size // 2
    # whole, but not what is expected: the pickle of something else
    assert Store(tmp_path).save(path.stem, b"\x80\x04N.", {"name": "kernel"})
    assert python(tmp_path, code) == "[2.0, 4.0, 6.0, 8.0] 1"
    assert python(tmp_path, code) == "[2.0, 4.0, 6.0, 8.0] 0"


# ----------------------------------------------------------------------------------------- folders that cannot be used


def attempts(store: Store) -> list[str]:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for k in range(3):
            assert not store.save(f"{k:064x}", b"payload", {})
            assert store.load(f"{k:064x}") is None
    assert all(w.category is CacheWarning for w in caught)
    return [str(w.message) for w in caught]


def test_folder_below_a_file(tmp_path):
    (tmp_path / "file").write_text("")
    (message,) = attempts(Store(tmp_path / "file" / "kernels"))
    assert "cannot be made" in message
    assert "AUTOGRAD_NB_CACHE_DIR" in message


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EROFS, errno.EACCES])
@pytest.mark.parametrize("where", ["open", "replace"])
def test_folder_that_cannot_be_written(tmp_path, monkeypatch, where, code):
    def refuse(*args, **kwargs):
        raise OSError(code, os.strerror(code))

    store = Store(tmp_path)
    assert store.folder
    monkeypatch.setattr(cache.os, where, refuse)
    (message,) = attempts(store)
    assert os.strerror(code) in message
    assert not list(tmp_path.iterdir())


@POSIX
def test_folder_open_to_others(tmp_path):
    (tmp_path / "shared").mkdir()
    (tmp_path / "shared").chmod(0o777)
    (message,) = attempts(Store(tmp_path / "shared"))
    assert "another user" in message
    assert not list((tmp_path / "shared").iterdir())


@POSIX
def test_file_open_to_others(tmp_path):
    store = Store(tmp_path)
    store.save("ab" * 32, b"x", {})
    (tmp_path / f"{'ab' * 32}.kernel").chmod(0o666)
    with pytest.warns(CacheWarning, match="another user"):
        assert store.load("ab" * 32) is None


@pytest.mark.slow
def test_a_process_goes_on_without_a_folder(tmp_path):
    (tmp_path / "file").write_text("")
    code = f"""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        print(run({DOUBLE!r}), run({DOUBLE.replace("2", "3")!r}), [w.category.__name__ for w in caught])
    """
    expected = "[2.0, 4.0, 6.0, 8.0] [3.0, 6.0, 9.0, 12.0] ['CacheWarning']"
    assert python(tmp_path / "file" / "kernels", code) == expected


@pytest.mark.slow
def test_another_numba(tmp_path):
    code = f"""
    import numba
    {{}}
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        print(run({DOUBLE!r}), len(made), [w.category.__name__ for w in caught])
    """
    doubled = "[2.0, 4.0, 6.0, 8.0]"
    assert python(tmp_path, code.format("")) == f"{doubled} 1 []"
    assert python(tmp_path, code.format("numba.__version__ = '99.0'")) == f"{doubled} 1 []"  # its kernels are its own
    assert len(kernels(tmp_path)) == 2
    lacking = code.format("from numba.core.codegen import CPUCodegen; del CPUCodegen.magic_tuple")
    assert python(tmp_path, lacking) == f"{doubled} 1 ['CacheWarning']"


def test_default_folder(monkeypatch, tmp_path):
    monkeypatch.setenv("AUTOGRAD_NB_CACHE_DIR", str(tmp_path))
    assert cache.default_folder() == tmp_path
    monkeypatch.delenv("AUTOGRAD_NB_CACHE_DIR")
    if sys.platform.startswith("linux"):
        monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
        assert cache.default_folder() == tmp_path / "autograd_nb"
        monkeypatch.setenv("XDG_CACHE_HOME", "relative")
        monkeypatch.setenv("HOME", str(tmp_path))
        assert cache.default_folder() == tmp_path / ".cache" / "autograd_nb"


# ------------------------------------------------------------------------------------------------- the command line


def test_commands(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("AUTOGRAD_NB_CACHE_DIR", str(tmp_path))
    store = Store()
    for k in range(3):
        store.save(f"{k:064x}", b"payload", {"name": "kernel", "numba": "0.0.1"})
    (tmp_path / "notes.txt").write_text("mine")
    (tmp_path / f".{0:064x}.0123456789abcdef.tmp").write_text("left behind")
    assert main(["cache", "info"]) == 0
    assert re.search(r"kernels +3\n", text := capsys.readouterr().out)
    assert str(tmp_path) in text
    assert "3 by Numba 0.0.1" in text
    assert main(["cache", "clear"]) == 0
    assert "removed 3 kernels" in capsys.readouterr().out
    assert [p.name for p in tmp_path.iterdir()] == ["notes.txt"]
    with pytest.raises(SystemExit):
        main(["cache", "unheard-of"])


@pytest.mark.parametrize("tqdm", [True, False])
def test_warm_reports_and_goes_on(tmp_path, monkeypatch, capsys, tqdm):
    monkeypatch.setenv("AUTOGRAD_NB_CACHE_DIR", str(tmp_path))
    ran = []
    usual = [("good", lambda: ran.append(1)), ("bad", lambda: 1 / 0), ("good", lambda: ran.append(2))]
    monkeypatch.setattr(warm, "usual_kernels", lambda: usual)
    if not tqdm:
        monkeypatch.setitem(sys.modules, "tqdm", None)
    assert main(["cache", "warm", "--jobs", "1"]) == 1
    assert ran == [1, 2]
    assert "bad: ZeroDivisionError" in capsys.readouterr().err


def test_warm_uses_processes(tmp_path, monkeypatch, capsys):
    """Each of them does its share, told by its own module; one that ends early is told of."""
    shares = tmp_path / "shares.py"
    shares.write_text(
        "import sys\npart, parts = map(int, sys.argv[-2:])\n"
        "for name in ('a', 'b', 'c', 'd', 'e')[part::parts]: print('failed c: ValueError' if name == 'c' else 'done ' + name)\n"
        "sys.exit(3 * part)\n"
    )
    monkeypatch.setattr(warm, "usual_kernels", lambda: [(name, print) for name in "abcde"])
    heard = []

    @contextmanager
    def listening(total, unit):
        assert total == 5
        yield heard.append

    monkeypatch.setattr(warm, "progress", listening)
    failed = warm.compile_all(2, [sys.executable, str(shares)])
    assert sorted(heard) == ["a", "b", "c", "d", "e"]
    assert sorted(failed) == ["c: ValueError", "process 2 of 2 ended with status 3"]


@pytest.mark.slow
def test_the_usual_kernels_are_all_found_again(tmp_path):
    given = {**os.environ, "AUTOGRAD_NB_CACHE_DIR": str(tmp_path), "AUTOGRAD_NB_COMPILE_WORKERS": "0"}
    command = [sys.executable, "-m", "autograd_nb", "cache", "warm"]
    first = subprocess.run(command, env=given, capture_output=True, text=True, check=True)
    assert int(re.search(r"compiled (\d+) kernels", first.stdout)[1]) > 100
    second = subprocess.run(command, env=given, capture_output=True, text=True, check=True)
    assert "compiled 0 kernels" in second.stdout


# ---------------------------------------------------------------------------------------------- what kernels call


def test_source_is_shown_to_debuggers(store):
    source = "# a line that only this text has\n" + DOUBLE
    compilation.build(source, "kernel", ("float32[:]", "float32[:]"))
    shown = [name for name, entry in linecache.cache.items() if len(entry) > 2 and "".join(entry[2]) == source]
    assert len(shown) == 1
    assert re.fullmatch(r"<autograd_nb:kernel:[0-9a-f]{8}>", shown[0])
    linecache.checkcache()
    assert linecache.getline(shown[0], 1) == "# a line that only this text has\n"


WALK = """
from autograd_nb.codegen.runtime import advance, entry, position, row, start, steps
def kernel(dims, x, out):
    place = start(2)
    k = 0
    for _ in range(steps(dims, 0, 3)):
        for again in range(2):
            for _ in range(steps(dims, 3, 6)):
                out[k] = position(place, 0)
                out[k + 1] = position(place, 1) + row(x, position(place, 0), 1, 1)[0] + entry(dims, 5)
                k += 2
                advance(place, dims, 2, 3, 6)
        advance(place, dims, 2, 0, 3)
    out[k] = position(place, 0) + position(place, 1)
"""


def test_walk():
    sizes, a, b = (2, 1, 3, 2, 2, 3), (100, 7, 30, 0, 3, 1), (5, 4, 3, 2, 1, 1000)
    dims, x = np.array([*sizes, *a, *b]), np.arange(300)
    expected = []
    for outer in np.ndindex(sizes[:3]):
        for _ in range(2):
            for inner in np.ndindex(sizes[3:]):
                at = np.array(outer + inner)
                expected += [at @ a, at @ b + x[at @ a] + sizes[5]]
    out = np.full(len(expected) + 1, -1)
    compilation.build(WALK, "kernel", ("int64[:]",) * 3)(dims, x, out)
    assert out.tolist() == [*expected, 0]


@pytest.mark.slow
def test_texts_are_the_same_in_every_process():
    """What a kernel is found by on disk must not depend on the order of a set."""
    code = """
        import hashlib
        import autograd_nb as torch
        from autograd_nb import nn
        from autograd_nb.codegen.build import compilation
        torch.manual_seed(0)
        model = nn.Sequential(nn.Embedding(5, 4), nn.LayerNorm(4), nn.Dropout(0.5), nn.Linear(4, 3), nn.GELU(), nn.Linear(3, 3))
        optimizer = torch.optim.AdamW(model.parameters())
        @torch.compile
        def step(x, y):
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(model(x), y, ignore_index=2, label_smoothing=0.1)
            (loss + model(x).softmax(1).var() + model(x).std(0).logsumexp(0)).backward()
            optimizer.step()
        for _ in range(3):
            step(torch.tensor([0, 1, 2]), torch.tensor([0, 1, 2]))
        texts = sorted(w[0] for w in compilation._built if isinstance(w[0], str))
        print(len(texts), hashlib.sha256("".join(texts).encode()).hexdigest())
    """
    printed = set()
    for seed in "123":
        done = subprocess.run(
            [sys.executable, "-c", textwrap.dedent(code)], env={**os.environ, "PYTHONHASHSEED": seed}, capture_output=True, text=True,
            check=True,
        )  # fmt: skip
        printed.add(done.stdout)
    assert len(printed) == 1, printed


def test_entry_points_take_what_they_were_built_for():
    text = "def taken(a, n, f, t, b, out):\n    for i in range(out.size):\n        out[i] = a[i] * n + f + t[1] + (1 if b else 0)\n"
    entry = compilation.build(text, "taken", ("float64[:]", "int64", "float64", "(3)", "bool", "float64[:]"))
    a, out = np.arange(4.0), np.empty(4)

    class Sizes(tuple):
        pass

    for args in ((2, 0.5, (1, 10, 3), True), (np.int32(2), np.float64(0.5), Sizes((1, np.int64(10), 3)), np.True_)):
        entry(a, *args, out)
        assert out.tolist() == [11.5, 13.5, 15.5, 17.5]
    entry(a, -1, -1.0, (1, -1, 3), False, out)
    assert out.tolist() == [-2.0, -3.0, -4.0, -5.0]
    large, copy = np.arange(5000.0), np.empty(5000)  # other threads may run meanwhile
    entry(large, 1, 0, (0, 0, 0), False, copy)
    assert (large == copy).all()
    good = (a, 2, 0.5, (1, 10, 3), True, out)
    for place, bad in (
        (0, None),
        (0, np.float64(1)),
        (0, np.array(1.0)),
        (0, a.reshape(2, 2)),
        (2, "x"),
        (2, 1j),
        (3, (1, 2)),
        (3, [1, 2, 3]),
    ):
        with pytest.raises(TypeError):
            entry(*good[:place], bad, *good[place + 1 :])
    with pytest.raises(TypeError):
        entry(*good[:-1])
    with pytest.raises(OverflowError):
        entry(a, 1 << 70, *good[2:])


def test_entry_points_take_lists_and_complex_numbers_and_raise_what_kernels_raise():
    text = (
        "from autograd_nb.codegen.arrays import count, nth\n"
        "def listed(a, b, z, out):\n"
        "    if count(a) != 2:\n        raise IndexError('two are wanted')\n"
        "    for k in range(count(a)):\n"
        "        x = nth(a, k)\n        y = nth(b, k)\n"
        "        for i in range(x.size):\n            out[k] += x[i] * y[i]\n"
        "    out[2] = z.real\n    out[3] = z.imag\n"
    )
    entry = compilation.build(text, "listed", ("[float64]", "[float64]", "complex128", "float64[:]"))
    a, b, out = [np.arange(3.0), np.arange(2.0)], [np.ones(3), np.full(2, 2.0)], np.zeros(4)
    for z in (1 - 2j, np.complex64(1 - 2j)):
        out[:] = 0
        entry(a, b, z, out)
        assert out.tolist() == [3.0, 2.0, 1.0, -2.0]
    with pytest.raises(IndexError, match="two are wanted"):
        entry(a + a, b + b, 1j, out)
    large = [np.ones(4000), np.ones(4000)]
    with pytest.raises(IndexError, match="two are wanted"):  # raised where other threads may have run
        entry(large + large, large + large, 1j, out)
    out[:] = 0
    entry(large, large, 1j, out)
    assert out.tolist() == [4000.0, 4000.0, 0.0, 1.0]
    for wrong in ((a, b[:1], 1j, out), (a, (b[0], b[1]), 1j, out), (a, [b[0], None], 1j, out), (a, [b[0], np.ones((2, 1))], 1j, out), (a, b, object(), out)):
        with pytest.raises(TypeError):
            entry(*wrong)


def test_what_the_interpreter_reads_of_a_function_is_never_freed(monkeypatch):
    """It looks for garbage once more at its end, after modules have been emptied: a function whose description was freed crashes it."""
    made = []

    class Method(linking.Method):
        def __init__(self, *fields):
            super().__init__(*fields)
            made.append(weakref.ref(self))

    monkeypatch.setattr(linking, "Method", Method)
    for table in ("_built", "_by_key", "_linked", "_alive"):
        monkeypatch.setattr(compilation, table, type(getattr(compilation, table))())
    entry = compilation.build("def kernel(x):\n    x[0] = 41.5\n", "kernel", ("float64[:]",))
    for table in (compilation._built, compilation._by_key, compilation._linked, compilation._alive):
        table.clear()
    gc.collect()
    assert [m() for m in made] != [None] and len(made) == 1
    assert callable(entry)
