"""Machine code on disk: what Numba makes of a kernel, written to the cache and read from it."""

from __future__ import annotations

import functools
import pickle
import sys
from collections.abc import Iterable
from importlib.util import MAGIC_NUMBER
from typing import Any

import numpy as np

from . import notice
from .cache import Store
from .hashed import hashed
from .linking import Code
from .packs import Packs
from .requests import Requests, numba_version, texts, untouched, words_of

store: Store = Store()
requests: Requests = Requests(store)
_content_of: dict[str, str] = {}  # by the key of a kernel that this process has asked for

ABI = 12  #: raised when machine code that was kept must not be used any more (what a change of `compilation` may require)

_machine_known: tuple[Any, ...] | None = None


def machine() -> tuple[Any, ...] | None:
    """Return what besides its text decides a kernel's machine code; None when this Numba has no way to keep machine code."""
    global _machine_known
    if _machine_known is None:
        _machine_known = _tuples(requests.find("machine"))
    if _machine_known is None:
        import llvmlite
        import numba
        from numba import config

        try:
            from numba.core.bytecode import FunctionIdentity
            from numba.core.registry import cpu_target

            known = FunctionIdentity._unique_ids
            processor = cpu_target.target_context.codegen().magic_tuple()
        except (ImportError, AttributeError) as error:
            _machine_known = ()
            store.warn(f"this version of Numba ({numba.__version__}) keeps no machine code ({error})")
            return None
        del known
        switches = ("OPT", "LOOP_VECTORIZE", "SLP_VECTORIZE", "BOUNDSCHECK", "DEBUGINFO_DEFAULT", "LLVM_REFPRUNE_PASS")
        _machine_known = (
            ("python", sys.implementation.cache_tag, *sys.version_info, sys.platform),
            ("numpy", np.__version__, "numba", numba.__version__, "llvmlite", llvmlite.__version__),
            tuple(str(part) for part in processor),
            tuple((switch, repr(getattr(config, switch, None))) for switch in switches),
        )
        requests.note(_machine_known, "machine")
    return _machine_known or None


def _tuples(value: Any) -> Any:
    """Return what JSON has made lists of."""
    return tuple(map(_tuples, value)) if isinstance(value, list) else value


@functools.cache
def made_here() -> str:
    """Return a short name of `machine`: the same for all kernels that this process may load and keep."""
    return hashed(repr(machine()).encode()).hexdigest()[:16]


def key_of(content: str) -> str:
    """Return the name of a kernel in the cache: of its content, compiled for this processor by these versions."""
    key = hashed(f"{content} {made_here()}".encode()).hexdigest()
    _content_of[key] = content
    return key


def used() -> dict[str, str]:
    """Return the kernels that this process has asked for: content by key."""
    return dict(_content_of)


def made_by() -> dict[str, Any]:
    """Return what the machine code that this process makes is made by and for, as the description of a pack says it.

    Versions of NumPy and Python are named as far as machine code and pickles depend on them.
    """
    known = machine()
    assert known is not None
    _, libraries, (triple, cpu, features), switches = known
    numpy, numba, llvmlite = libraries[1::2]
    return {
        "kernels": ABI, "numba": numba, "llvmlite": llvmlite, "numpy": numpy.partition(".")[0],
        "python": _PYTHON, "platform": f"{sys.platform} {triple}",
        "switches": [list(pair) for pair in switches], "processor": cpu,
        "features": sorted(f[1:] for f in features.split(",") if f.startswith("+")),
    }  # fmt: skip


_PYTHON = f"{sys.implementation.cache_tag}-{MAGIC_NUMBER.hex()}"

#: what a pack must have been made by, and how a message calls it
_MUST_BE = {
    "kernels": "version of the kernels", "numba": "Numba", "llvmlite": "llvmlite", "numpy": "NumPy", "python": "Python", "platform": "platform",
    "switches": "setting of Numba",
}  # fmt: skip


def _told_without_numba() -> dict[str, Any]:
    """Return what `made_by` does, but for the switches, where Numba has not been imported, and nobody has told it to do otherwise than by itself."""
    import llvmlite
    from llvmlite import binding

    features = binding.get_host_cpu_features()
    return {
        "kernels": ABI, "numba": numba_version(), "llvmlite": llvmlite.__version__, "numpy": np.__version__.partition(".")[0],
        "python": _PYTHON, "platform": f"{sys.platform} {binding.get_process_triple()}", "features": [f for f, has in features.items() if has],
    }  # fmt: skip


def unfit(about: dict[str, Any]) -> str | None:
    """Return why kernels of a pack cannot be used by this process, from its description; None where they can."""
    if "numba" not in sys.modules and untouched() and about.get("plain") is True:
        here = _told_without_numba()
    elif machine() is None:
        return "this version of Numba keeps no machine code"
    else:
        here = made_by()
    for name, called in _MUST_BE.items():
        if name in here and about.get(name) != here[name]:
            return f"its {called} is {about.get(name)}, and this is {here[name]}"
    wanted = about.get("features")
    if not isinstance(wanted, list):
        return "it does not say which processor it is for"
    missing = _missing(map(str, wanted), here["features"])
    return f"it is for {about.get('processor')}, and this processor lacks {missing}" if missing else None


def _missing(features: Iterable[str], here: Iterable[str]) -> str:
    missing = sorted(set(features) - set(here))
    return ", ".join(missing[:5]) + (", …" if missing[5:] else "")


def lacking(features: Iterable[str]) -> str:
    """Return which of the features the processor compiled for has not, as a message names them; empty where it has all."""
    return _missing(features, made_by()["features"])


packs: Packs = Packs(store, unfit)


def holds(key: str) -> bool:
    """Return whether a kernel is on disk, in the cache or in a pack, whole or not."""
    return store.holds(key) or (key in _content_of and packs.holds(_content_of[key]))


_swept = False


def save(key: str, code: Code, result: Any, name: str, argtypes: tuple[str, ...]) -> None:
    """Keep a kernel's machine code, if another process can use it: ``result`` is what Numba knows of it."""
    global _swept
    if store.folder is None or not _is_whole(code, result):
        return
    import numba

    if not _swept:
        _swept = True
        store.sweep()
    about = {"name": name, "argtypes": list(argtypes), "numba": numba.__version__}
    if key in _content_of:
        about |= {"content": _content_of[key], "made": made_here()}
    if key in notice.compiled:
        about |= {"op": notice.compiled[key].op, "seconds": round(notice.compiled[key].seconds, 4)}
    store.save(key, pickle.dumps(tuple(code), 5), about)


def _is_whole(code: Code, result: Any) -> bool:
    """Return whether machine code needs nothing but what the linker knows in any process: no addresses and objects of this one."""
    from numba.core.environment import lookup_environment

    if result.lifted or result.objectmode or result.reload_init or result.library.has_dynamic_globals or _UNRESOLVED in code.kernel[1]:
        return False
    return not any(lookup_environment(symbol).consts for symbol in code.environments)


_UNRESOLVED = b".numba.unresolved$"  # in the names of functions that call themselves, which Numba links


def load(key: str) -> Code | None:
    """Return a kernel's machine code from the cache, else from a pack: what was compiled for this very processor comes first."""
    payload = store.load(key)
    if payload is None and key in _content_of:
        payload = packs.load(_content_of[key])
    return _code(payload)


def keep(content: str, code: bytes, name: str) -> None:
    """Keep what is no kernel of Numba's, where other processes would look for it."""
    if _named():
        key = key_of(content)
        store.save(key, code, {"name": name, "argtypes": [], "numba": numba_version(), "content": content, "made": made_here()})


def kept(content: str) -> bytes | None:
    """Return what `keep` has kept, in the cache or a pack; None where there is nothing."""
    found = store.load(key_of(content)) if _named() else None
    return packs.load(content) if found is None else found


def _named() -> bool:
    """Return whether names in the cache can be told, or else could only be by importing Numba."""
    return "numba" in sys.modules or requests.find("machine") is not None


def answer(*words: Any) -> Any:
    """Return what was noted of these words, in the cache or a pack; None where nothing was, or Numba is there to find it out."""
    found = requests.find(*words)
    if found is None and "numba" not in sys.modules:
        found = packs.answer(texts(), words_of(*words))
    return found


def packed(content: str) -> Code | None:
    """Return a kernel's machine code from a pack."""
    return _code(packs.load(content))


def _code(payload: bytes | None) -> Code | None:
    if payload is None:
        return None
    try:
        return Code(*pickle.loads(payload))
    except Exception:  # whole, yet of no use here: compile it, and replace the file
        return None
