"""Whose files the cache loads machine code from: owners, permissions, links, pipes, and what is damaged."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
import warnings
from pathlib import Path

import pytest

from autograd_nb.codegen.build import cache
from autograd_nb.codegen.build.cache import CacheWarning, Store
from tests.codegen import odd_files

pytestmark = pytest.mark.skipif(os.name != "posix", reason="owners and permissions are POSIX's")
ROOT = pytest.mark.skipif(os.name == "posix" and os.geteuid() != 0, reason="only root can give files to others")
KEY, PAYLOAD, STRANGER = "ab" * 32, b"payload", 12345


def loaded(folder: Path) -> tuple[bytes | None, list[str]]:
    """What a new store finds in a folder, three times over, and what it warns of."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        store = Store(folder)
        found = {store.load(KEY) for _ in range(3)}
    assert len(found) == 1 and all(w.category is CacheWarning for w in caught)
    return found.pop(), [str(w.message) for w in caught]


@pytest.fixture
def folder(tmp_path):
    made = tmp_path / "kernels"
    assert Store(made).save(KEY, PAYLOAD, {"name": "kernel"})
    return made


@pytest.fixture
def file(folder):
    return folder / f"{KEY}.kernel"


def test_folders_are_made_for_the_user_alone(tmp_path):
    before = os.umask(0)
    try:
        assert Store(tmp_path / "a" / "b" / "kernels").save(KEY, PAYLOAD, {})
    finally:
        os.umask(before)
    for made in ("a", "a/b", "a/b/kernels"):
        assert (tmp_path / made).stat().st_mode & 0o777 == 0o700


@pytest.mark.parametrize("mode", [0o620, 0o602, 0o666, 0o777])
def test_files_that_others_may_write(file, mode):
    file.chmod(mode)
    found, (said,) = loaded(file.parent)
    assert found is None and "another user" in said and str(file) in said


@pytest.mark.parametrize("mode", [0o720, 0o702, 0o777, 0o1777])
def test_folders_that_others_may_write(folder, mode):
    folder.chmod(mode)
    found, (said,) = loaded(folder)
    assert found is None and "another user" in said
    folder.chmod(0o755)
    assert loaded(folder) == (PAYLOAD, [])


@ROOT
def test_files_and_folders_of_others(folder, file):
    os.chown(file, STRANGER, STRANGER)
    found, (said,) = loaded(folder)
    assert found is None and "another user" in said
    os.chown(file, 0, 0)
    assert loaded(folder) == (PAYLOAD, [])
    os.chown(folder, STRANGER, STRANGER)
    found, (said,) = loaded(folder)
    assert found is None and "another user" in said


@ROOT
def test_a_folder_of_root_serves_everybody(folder, file, tmp_path):
    folder.chmod(0o755)
    file.chmod(0o644)
    for above in [tmp_path, *tmp_path.parents]:
        if above.stat().st_mode & 0o005 != 0o005 and above.stat().st_uid == 0:
            above.chmod(above.stat().st_mode | 0o055)
        if above.name.startswith("pytest-of"):
            break
    child = os.fork()
    if not child:
        code = 1
        try:
            os.setgid(STRANGER)
            os.setuid(STRANGER)
            found, said = loaded(folder)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                saved = Store(folder).save("cd" * 32, b"x", {})
            code = 0 if found == PAYLOAD and not said and not saved else 2
        finally:
            os._exit(code)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def test_links_are_not_followed(folder, file, tmp_path):
    file.rename(tmp_path / "elsewhere")
    file.symlink_to(tmp_path / "elsewhere")
    found, (said,) = loaded(folder)
    assert found is None and "link" in said
    link = tmp_path / "link"  # of the folder itself: its owner's business
    link.symlink_to(folder)
    file.unlink()
    (tmp_path / "elsewhere").rename(file)
    assert loaded(link) == (PAYLOAD, [])


@pytest.mark.parametrize("kind", [kind for kind in odd_files.KINDS if kind != "nothing"])
def test_what_is_no_file_is_not_opened(folder, file, tmp_path, kind):
    odd_files.put(kind, file, tmp_path)
    signal.alarm(20)  # rather than hang
    try:
        found, (said,) = loaded(folder)
        assert found is None and str(file) in said
        assert cache.describe(file) is None
        assert list(Store(folder).files()) == []
        if kind != "folder":
            assert Store(folder).save(KEY, PAYLOAD, {})  # takes its place
            assert loaded(folder) == (PAYLOAD, [])
    finally:
        signal.alarm(0)


@pytest.mark.parametrize("given", ["pipe", "/dev/zero", "pipe/below"])
def test_a_folder_that_is_a_pipe_or_a_device(tmp_path, given):
    os.mkfifo(tmp_path / "pipe")
    signal.alarm(20)
    try:
        found, (said,) = loaded(tmp_path / given)
    finally:
        signal.alarm(0)
    assert found is None and "kernel cache" in said


def test_whole_files_with_other_contents(folder, file):
    for about in (b"[]", b"null", b"3", b'{"key": 1}', b"[" * 100_000, b"\xff", b""):
        rest = len(about).to_bytes(4, "little") + about + PAYLOAD
        file.write_bytes(cache.MAGIC + cache.hashed(rest).digest() + rest)
        assert loaded(folder) == (None, [])
    rest = (1 << 31).to_bytes(4, "little") + b"{}"
    file.write_bytes(cache.MAGIC + cache.hashed(rest).digest() + rest)
    assert loaded(folder) == (None, [])
    with open(file, "wb") as large:
        large.truncate(1 << 40)  # a terabyte of nothing
    assert loaded(folder) == (None, [])


def test_every_flipped_byte(folder, file):
    whole = file.read_bytes()
    for k in range(len(whole)):
        data = bytearray(whole)
        data[k] ^= 1 << k % 8
        file.write_bytes(data)
        assert Store(folder).load(KEY) is None, k
    file.write_bytes(whole)
    assert Store(folder).load(KEY) == PAYLOAD


WRITER = """
import sys
from pathlib import Path
from autograd_nb.codegen.build.cache import Store
store = Store(Path(sys.argv[1]))
k = 0
print("ready", flush=True)
while True:
    store.save(f"{k % 5:064x}", bytes([k % 5]) * 200_000, {})
    k += 1
"""


@pytest.mark.slow
def test_readers_and_killed_writers(tmp_path):
    """Three writers of one folder are killed at random moments: a reader never sees a part of a file."""
    reader = Store(tmp_path)
    for _ in range(3):
        writers = [
            subprocess.Popen([sys.executable, "-c", WRITER, str(tmp_path)], stdout=subprocess.PIPE) for _ in range(3)
        ]  # fmt: skip
        for w in writers:
            assert w.stdout is not None and w.stdout.readline() == b"ready\n"
        end = time.monotonic() + 0.3
        while time.monotonic() < end:
            for k in range(5):
                found = reader.load(f"{k:064x}")
                assert found is None or found == bytes([k]) * 200_000
        for w in writers:
            w.kill()
            w.communicate()
    for k in range(5):
        found = reader.load(f"{k:064x}")
        assert found is None or found == bytes([k]) * 200_000
    reader.sweep(0)
    assert all(p.suffix == ".kernel" for p in tmp_path.iterdir())
