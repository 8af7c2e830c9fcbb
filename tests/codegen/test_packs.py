"""Packs of kernels: what is written is read, what is damaged or another's is not, and programs that have one compile nothing."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import warnings
from pathlib import Path

import numpy as np
import pytest
from numba import config

from autograd_nb.__main__ import main
from autograd_nb.codegen.build import cache, machine_code, pack, packs
from autograd_nb.codegen.build.cache import CacheWarning, NotOurs, Store
from autograd_nb.codegen.build.pack import Pack, PackError
from autograd_nb.codegen.build.packs import Packs
from autograd_nb.codegen.processor import LEVELS, features
from tests.codegen import odd_files

posix = pytest.mark.skipif(os.name != "posix", reason="owners and permissions are POSIX's")
ROOT = pytest.mark.skipif(os.name == "posix" and os.geteuid() != 0, reason="only root can give files to others")
COMPILES = pytest.mark.skipif(bool(config.DISABLE_JIT), reason="nothing is compiled")
KERNELS = {f"{k * 7919:064x}": bytes([k]) * (40 + k) for k in range(9)}
STRANGER = 12345
TREE = Path(__file__).parents[2]


@pytest.fixture
def file(tmp_path):
    made = tmp_path / "some.pack"
    assert pack.write(made, {"level": "host"}, KERNELS) == made.stat().st_size
    return made


def used(file: Path | str, monkeypatch, tmp_path, about=None) -> tuple[dict[str, bytes | None], list[str]]:
    """What a process that a pack is named to finds in it, twice over, and what it warns of."""
    monkeypatch.setenv(packs.VARIABLE, str(file))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        found = Packs(Store(tmp_path / "cache"), lambda description: about)
        results = [{content: found.load(content) for content in KERNELS} for _ in range(2)]
    assert all(w.category is CacheWarning for w in caught)
    return results[1], [str(w.message) for w in caught]


NOTHING = dict.fromkeys(KERNELS)


# ------------------------------------------------------------------------------------------------------ the file


def test_what_is_written_is_read(file):
    opened = Pack(file)
    assert opened.about == {"level": "host"} and len(opened) == len(KERNELS)
    assert {content: opened.load(content) for content in KERNELS} == KERNELS
    assert all(content in opened for content in KERNELS)
    for absent in ("0" * 63 + "1", "f" * 64):
        assert absent not in opened and opened.load(absent) is None
    opened.verify()


def test_a_pack_of_nothing(tmp_path):
    pack.write(tmp_path / "empty.pack", {}, {})
    assert len(Pack(tmp_path / "empty.pack")) == 0
    assert Pack(tmp_path / "empty.pack").load("a" * 64) is None


def test_every_flipped_byte_is_refused(file):
    """In the first bytes, the checksum, the length, the description, the index and the payloads."""
    whole = file.read_bytes()
    for k in range(len(whole)):
        data = bytearray(whole)
        data[k] ^= 1 << k % 8
        file.write_bytes(data)
        with pytest.raises(PackError, match="damaged"):
            Pack(file).verify()
    file.write_bytes(whole)
    Pack(file).verify()


def test_every_file_cut_short_is_refused(file):
    whole = file.read_bytes()
    for length in range(0, len(whole), 3):
        file.write_bytes(whole[:length])
        with pytest.raises(PackError, match="damaged"):
            Pack(file)


def test_whole_heads_with_other_contents(file):
    for about in (b"[]", b"null", b"3", b"[" * 100_000, b"\xff", b""):
        head = len(about).to_bytes(4, "little") + about
        file.write_bytes(pack._HEAD.pack(pack.MAGIC, pack.hashed(head).digest(), len(head)) + head)
        if about != b"[]":
            with pytest.raises(PackError, match="damaged"):
                Pack(file)
    head = (1 << 31).to_bytes(4, "little") + b"{}"
    file.write_bytes(pack._HEAD.pack(pack.MAGIC, pack.hashed(head).digest(), len(head)) + head)
    with pytest.raises(PackError, match="damaged"):
        Pack(file)


def test_payloads_lie_within_the_file(file):
    """Places and lengths that a whole index names are looked at before anything is read."""
    for at, length in ((1 << 40, 1), (0, 8), (200, 1 << 60)):
        head = (2).to_bytes(4, "little") + b"{}" + pack._RECORD.pack(bytes(32), bytes(32), at, length)
        file.write_bytes(pack._HEAD.pack(pack.MAGIC, pack.hashed(head).digest(), len(head)) + head)
        with pytest.raises(PackError, match="damaged"):
            Pack(file)


def test_a_file_replaced_meanwhile_is_not_read(file, monkeypatch, tmp_path):
    opened = Pack(file)
    other = tmp_path / "other.pack"
    pack.write(other, {}, {content: b"x" * len(payload) for content, payload in KERNELS.items()})
    os.replace(other, file)
    with pytest.raises(PackError, match="replaced"):
        opened.load(next(iter(KERNELS)))


def test_damage_that_comes_later_ends_the_use_of_a_pack(file, monkeypatch, tmp_path):
    monkeypatch.setenv(packs.VARIABLE, str(file))
    found = Packs(Store(tmp_path / "cache"), lambda about: None)
    first, second = sorted(KERNELS)[:2]
    assert found.load(first) == KERNELS[first]
    os.truncate(file, file.stat().st_size - 1)
    with pytest.warns(CacheWarning, match="not used any more"):
        assert found.load(second) is None
    assert found.load(first) is None  # and no second warning


# ------------------------------------------------------------------------------------------------------ whose it is


@posix
@pytest.mark.parametrize("mode", [0o620, 0o602, 0o666, 0o777])
def test_files_that_others_may_write(file, monkeypatch, tmp_path, mode):
    assert used(file, monkeypatch, tmp_path) == (KERNELS, [])
    file.chmod(mode)
    found, (said,) = used(file, monkeypatch, tmp_path)
    assert found == NOTHING and "another user" in said and str(file) in said
    assert main(["cache", "add", str(file)]) == 1


@posix
@pytest.mark.parametrize("mode", [0o720, 0o702, 0o777, 0o1777])
def test_folders_that_others_may_write(file, monkeypatch, tmp_path, mode):
    monkeypatch.setattr(packs, "BROUGHT", tmp_path / "none")
    Store(tmp_path / "cache").save("a" * 64, b"", {})
    file.parent.chmod(mode)
    found, (said,) = used(file, monkeypatch, tmp_path)
    file.parent.chmod(0o700)
    assert found == NOTHING and "another user" in said


@ROOT
@posix
def test_files_and_folders_of_others(file, monkeypatch, tmp_path):
    for path in (file, file.parent):
        os.chown(path, STRANGER, STRANGER)
        found, (said,) = used(file, monkeypatch, tmp_path)
        assert found == NOTHING and "another user" in said
        os.chown(path, 0, 0)
    assert used(file, monkeypatch, tmp_path) == (KERNELS, [])


@ROOT
@posix
def test_a_wheels_pack_belongs_to_whom_the_package_does(file):
    own = file.parent / "__init__.py"
    own.touch()
    for path in (file, own, file.parent):
        os.chown(path, STRANGER, STRANGER)
    assert len(Pack(file, str(own))) == len(KERNELS)
    with pytest.raises(NotOurs):
        Pack(file)
    file.chmod(0o664)
    with pytest.raises(NotOurs):
        Pack(file, str(own))
    own.chmod(0o664)  # as pip leaves all files where the umask is 002
    assert len(Pack(file, str(own))) == len(KERNELS)
    os.chown(file, STRANGER + 1, STRANGER)
    with pytest.raises(NotOurs):
        Pack(file, str(own))


@posix
@pytest.mark.parametrize("kind", odd_files.KINDS)
def test_what_is_no_file_is_not_opened(file, monkeypatch, tmp_path, kind):
    odd_files.put(kind, file, tmp_path)
    signal.alarm(20)  # rather than hang
    try:
        found, (said,) = used(file, monkeypatch, tmp_path)
        assert found == NOTHING and str(file) in said
        assert main(["cache", "add", str(file)]) == 1
    finally:
        signal.alarm(0)


@posix
def test_a_link_to_a_pack_is_who_names_its_affair(file, monkeypatch, tmp_path):
    link = tmp_path / "link"
    link.symlink_to(file)
    assert used(link, monkeypatch, tmp_path) == (KERNELS, [])


# ------------------------------------------------------------------------------------------------------ which are used


def test_packs_are_asked_in_their_order(file, monkeypatch, tmp_path):
    store = Store(tmp_path / "cache")
    second, brought = tmp_path / "second.pack", tmp_path / "package"
    brought.mkdir(mode=0o700)
    contents = sorted(KERNELS)
    pack.write(second, {}, {contents[0]: b"second", "1" * 64: b"second"})
    pack.write(brought / "x86-64-v3.pack", {}, {"2" * 64: b"brought v3", "3" * 64: b"brought v3"})
    pack.write(brought / "x86-64-v4.pack", {}, {"2" * 64: b"brought v4", "1" * 64: b"brought"})
    monkeypatch.setattr(packs, "BROUGHT", brought)
    monkeypatch.setenv(packs.VARIABLE, f"{file}{os.pathsep}")
    Packs(store, lambda about: None).add(second)
    found = Packs(store, lambda about: None)
    assert [found.load(c) for c in (contents[0], "1" * 64, "2" * 64, "3" * 64, "4" * 64)] == [
        KERNELS[contents[0]], b"second", b"brought v4", b"brought v3", None,
    ]  # fmt: skip
    assert found.holds("3" * 64) and not found.holds("4" * 64)
    monkeypatch.setenv(packs.VARIABLE, "off")
    assert Packs(store, lambda about: None).load(contents[0]) is None


def test_a_pack_that_does_not_fit_is_passed_over_with_one_line(file, monkeypatch, tmp_path, caplog):
    found, said = used(file, monkeypatch, tmp_path, about="its Numba is 0.1, and this is 0.2")
    assert found == NOTHING and len(said) == 1
    assert "passed over: its Numba is 0.1, and this is 0.2" in said[0] and "\n" not in said[0]
    monkeypatch.setattr(packs, "BROUGHT", tmp_path)  # one that came with the package is nobody's wish: it is said to the log
    found, said = used("", monkeypatch, tmp_path, about="it is old")
    assert found == NOTHING and not said
    assert [r.message for r in caplog.records if r.name == "autograd_nb"] == [f"the pack of kernels {file} is passed over: it is old"]


def test_a_damaged_pack_is_refused(file, monkeypatch, tmp_path):
    data = bytearray(file.read_bytes())
    data[70] ^= 1
    file.write_bytes(data)
    for _ in range(2):  # each time that a kernel is asked for
        with pytest.raises(PackError, match="damaged: the checksum of its index"):
            used(file, monkeypatch, tmp_path)


@COMPILES
def test_what_a_pack_must_fit():
    machine_code.machine()
    here = machine_code.made_by()
    assert machine_code.unfit(here) is None
    assert machine_code.unfit(json.loads(json.dumps(here))) is None
    for name in ("kernels", "numba", "llvmlite", "numpy", "python", "platform", "switches"):
        assert str(here[name]) in (machine_code.unfit({**here, name: "0.1"}) or "")
        assert machine_code.unfit({k: v for k, v in here.items() if k != name})
    assert machine_code.unfit({**here, "features": here["features"][:3]}) is None  # a processor that has more
    assert "lacks warp" in (machine_code.unfit({**here, "features": [*here["features"], "warp"]}) or "")
    for strange in (None, "avx", 3, {}):
        assert machine_code.unfit({**here, "features": strange})


@COMPILES
def test_a_level_above_the_processors(tmp_path, monkeypatch, capsys):
    """Is refused before a program is run that would be killed for an instruction that is not there."""
    monkeypatch.setenv("AUTOGRAD_NB_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setitem(LEVELS, "x86-64-v4", ("avx", "warp"))
    assert main(["cache", "pack", str(tmp_path / "p.pack"), "--level", "x86-64-v4", "--run", str(tmp_path / "none.py")]) == 1
    assert "this processor lacks warp" in capsys.readouterr().err.replace("avx, ", "")
    assert not (tmp_path / "p.pack").exists()


def test_levels_grow():
    assert set(LEVELS["x86-64-v3"]) < set(LEVELS["x86-64-v4"])
    assert "+avx2" in features("x86-64-v3").split(",") and "+avx512f" not in features("x86-64-v3").split(",")


# ------------------------------------------------------------------------------------------------------ programs

PROGRAM = """
import autograd_nb as torch
x = torch.tensor([1.0, 2.0, 3.0], requires_grad=True)
w = torch.ones(3, 2, requires_grad=True)
(x * x).sum().backward()
(x @ w).sum().backward()
assert x.grad.tolist() == [4.0, 6.0, 8.0] and w.grad.tolist() == [[1.0, 1.0], [2.0, 2.0], [3.0, 3.0]]
from autograd_nb.codegen.build import notice
print("compiled", notice.count())
"""


def ran(*words: str, **environment: str) -> subprocess.CompletedProcess:
    """A process of this Python, which compiles by itself."""
    given = {**os.environ, "AUTOGRAD_NB_COMPILE_WORKERS": "0", **environment}
    return subprocess.run([sys.executable, *words], env=given, capture_output=True, text=True, check=False)


@pytest.fixture(scope="module")
def room(tmp_path_factory):
    """A folder with a program, its pack for the least processor that a level is for, and an empty cache."""
    made = tmp_path_factory.mktemp("packs")
    (made / "program.py").write_text(PROGRAM)
    level = "x86-64-v3" if set(LEVELS["x86-64-v3"]) <= set(machine_code.made_by()["features"]) else "host"
    done = ran("-m", "autograd_nb", "cache", "pack", f"{made}/p.pack", "--level", level, "--run", f"{made}/program.py")
    assert done.returncode == 0, done.stderr
    assert f"kernels for {level}" in done.stdout and done.stderr == ""
    return made


@COMPILES
def test_a_program_with_a_pack_compiles_nothing(room, tmp_path, monkeypatch, capsys):
    program, fresh = str(room / "program.py"), {"AUTOGRAD_NB_CACHE_DIR": str(tmp_path)}
    done = ran(program, AUTOGRAD_NB_PACK=str(room / "p.pack"), **fresh)
    assert (done.stdout, done.stderr) == ("compiled 0\n", "")
    assert list(tmp_path.iterdir()) == []
    assert ran("-m", "autograd_nb", "cache", "add", str(room / "p.pack"), **fresh).returncode == 0
    assert ran(program, **fresh).stdout == "compiled 0\n"
    monkeypatch.setenv("AUTOGRAD_NB_CACHE_DIR", fresh["AUTOGRAD_NB_CACHE_DIR"])
    assert main(["cache", "info"]) == 0
    assert f"{room / 'p.pack'}: {len(Pack(room / 'p.pack'))} kernels" in capsys.readouterr().out
    assert main(["cache", "remove", str(room / "p.pack")]) == 0
    capsys.readouterr()
    assert main(["cache", "info"]) == 0
    assert "p.pack" not in capsys.readouterr().out


@COMPILES
def test_a_program_with_a_pack_needs_no_numba(room, tmp_path):
    """Where the pack was made with the same texts of kernels; with others they are defined to tell what they are."""
    code = f"import runpy, sys; runpy.run_path({str(room / 'program.py')!r}); print('numba' in sys.modules)"
    whole, other = Pack(room / "p.pack"), tmp_path / "other.pack"
    pack.write(other, {**whole.about, "texts": "0" * 64}, {k.hex(): whole.load(k.hex()) for k, *_ in whole._records()})
    fresh = {"AUTOGRAD_NB_CACHE_DIR": str(tmp_path / "cache")}
    for path, numba in ((room / "p.pack", False), (other, True), (room / "p.pack", False)):
        done = ran("-c", code, AUTOGRAD_NB_PACK=str(path), **fresh)
        assert (done.stdout, done.stderr) == (f"compiled 0\n{numba}\n", "")


@COMPILES
def test_what_is_told_without_numba_is_the_same():
    machine_code.machine()
    told, made = machine_code._told_without_numba(), machine_code.made_by()
    assert set(made.pop("features")) <= set(told.pop("features"))
    assert told == {name: made[name] for name in told} and set(machine_code._MUST_BE) - set(told) == {"switches"}


@COMPILES
def test_a_program_with_a_pack_of_another_version(room, tmp_path):
    other = tmp_path / "other.pack"
    whole = Pack(room / "p.pack")
    pack.write(other, {**whole.about, "numba": "0.1"}, {k.hex(): whole.load(k.hex()) for k, *_ in whole._records()})
    program = "import autograd_nb as torch; print((torch.ones(3) * 2).tolist(), (torch.ones(3) + 2).tolist())"
    done = ran("-c", program, AUTOGRAD_NB_PACK=str(other), AUTOGRAD_NB_CACHE_DIR=str(tmp_path / "cache"))  # a cache is looked at first
    assert done.stdout == "[2.0, 2.0, 2.0] [3.0, 3.0, 3.0]\n"
    assert done.stderr.count("passed over: its Numba is 0.1") == 1
    done = ran("-m", "autograd_nb", "cache", "add", str(other))
    assert done.returncode == 1 and "passed over: its Numba is 0.1" in done.stderr


@COMPILES
def test_a_program_with_a_damaged_pack(room, tmp_path):
    broken = tmp_path / "broken.pack"
    shutil.copy(room / "p.pack", broken)
    data = bytearray(broken.read_bytes())
    data[100] ^= 1
    broken.write_bytes(data)
    done = ran(str(room / "program.py"), AUTOGRAD_NB_PACK=str(broken), AUTOGRAD_NB_CACHE_DIR=str(tmp_path / "cache"))
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1].startswith(f"autograd_nb.codegen.build.pack.PackError: the pack of kernels {broken} is damaged")
    done = ran("-m", "autograd_nb", "cache", "add", str(broken))
    assert done.returncode == 1 and "damaged" in done.stderr


@COMPILES
def test_a_pack_of_what_is_in_the_cache(room, tmp_path):
    fresh = {"AUTOGRAD_NB_CACHE_DIR": str(tmp_path / "cache")}
    made = str(tmp_path / "all.pack")
    done = ran("-m", "autograd_nb", "cache", "pack", made, **fresh)
    assert done.returncode == 1 and "no kernels" in done.stderr
    program = "import autograd_nb as torch; from autograd_nb.codegen.build import notice; (torch.ones(3) * 2).sum(); print(notice.count())"
    assert int(ran("-c", program, **fresh).stdout) > 0
    tmp_path.chmod(0o777)
    done = ran("-m", "autograd_nb", "cache", "pack", made, **fresh)
    assert done.returncode == 0 and ("would not be used" in done.stderr or os.name != "posix")
    tmp_path.chmod(0o700)
    assert ran("-c", program, AUTOGRAD_NB_PACK=made, AUTOGRAD_NB_CACHE_DIR=str(tmp_path / "other")).stdout == "0\n"
    assert ran("-c", program, AUTOGRAD_NB_CACHE_DIR=str(tmp_path / "third")).stdout != "0\n"


def test_packs_that_were_added_are_listed_by_the_user_alone(file, tmp_path):
    store = Store(tmp_path / "cache")
    Packs(store, lambda about: None).add(file)
    listed = tmp_path / "cache" / packs.ADDED
    assert listed.stat().st_mode & 0o777 == 0o600 or os.name != "posix"
    listed.chmod(0o666)
    assert Packs(store, lambda about: None).added() == [] or os.name != "posix"
    listed.chmod(0o600)
    for text in ("", "[", "3", "[3, null]", "[" * 100_000):
        listed.write_text(text)
        assert Packs(store, lambda about: None).added() == []
    assert cache.describe(listed) is None


@COMPILES
@pytest.mark.slow
@posix
def test_a_wheel_with_a_pack(room, tmp_path):
    """Installed beside the libraries of this environment, it is found there, and a program compiles nothing."""
    folder = tmp_path / "to_carry"
    folder.mkdir()
    shutil.copy(room / "p.pack", folder / "some.pack")
    pip = ("-m", "pip", "-q", "--disable-pip-version-check", "--no-input")
    assert ran(*pip, "wheel", "--no-deps", "--wheel-dir", str(tmp_path), str(TREE), AUTOGRAD_NB_WHEEL_PACKS=str(folder)).returncode == 0
    (wheel,) = tmp_path.glob("*.whl")
    assert wheel.name.split("-")[2] == f"cp{sys.version_info[0]}{sys.version_info[1]}" and "none-any" not in wheel.name
    place = tmp_path / "environment"
    assert ran("-m", "venv", "--without-pip", str(place)).returncode == 0
    (libraries,) = place.glob("lib/python*/site-packages")
    assert ran(*pip, "install", "--no-deps", "--no-index", "--target", str(libraries), str(wheel)).returncode == 0
    (libraries / "others.pth").write_text(f"{Path(np.__file__).parents[1]}\n")
    fresh = {"AUTOGRAD_NB_CACHE_DIR": str(tmp_path / "empty"), "PYTHONPATH": "", "PATH": os.environ["PATH"]}
    for installed_so in (None, 0o666):  # as by pip where the umask lets everybody write
        if installed_so is not None:
            for path in (libraries / "autograd_nb/packs/some.pack", libraries / "autograd_nb/__init__.py"):
                path.chmod(installed_so)
        python = subprocess.run([place / "bin/python", "program.py"], env=fresh, cwd=room, capture_output=True, text=True, check=False)
        assert (python.stdout, python.stderr) == ("compiled 0\n", "")
    where = subprocess.run([place / "bin/python", "-m", "autograd_nb", "cache", "info"], env=fresh, cwd=room, capture_output=True, text=True, check=True)
    assert f"{libraries}/autograd_nb/packs/some.pack" in where.stdout and "(the package)" in where.stdout
    whole = Pack(room / "p.pack")
    pack.write(
        libraries / "autograd_nb/packs/some.pack", {**whole.about, "llvmlite": "0.1"}, {k.hex(): whole.load(k.hex()) for k, *_ in whole._records()}
    )  # fmt: skip
    python = subprocess.run([place / "bin/python", "program.py"], env=fresh, cwd=room, capture_output=True, text=True, check=False)
    assert python.stdout != "compiled 0\n" and python.returncode == 0
    assert len(python.stderr.splitlines()) == 1 and "passed over: its llvmlite is 0.1" in python.stderr
