"""``torch`` in environments of their own: written there, used without a launcher, removed without a trace."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

import autograd_nb
from autograd_nb.compat import shimming
from autograd_nb.compat.as_torch import SHIM, TORCH_VERSION

ROOT = Path(autograd_nb.__file__).parent.parent
#: what this library needs, for environments that have no packages of their own
NEEDED = [str(ROOT), sysconfig.get_paths()["purelib"]]

PROGRAM = """
import importlib.metadata, pickle, sys
import torch
import torch.nn.functional as F
import torch.multiprocessing as mp
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

assert torch.__name__ == torch.Tensor.__module__ == type(torch.float32).__module__ == "torch"
assert nn.Parameter.__module__ == "torch.nn.parameter" and repr(torch.Tensor) == "<class 'torch.Tensor'>"
assert importlib.metadata.version("torch") == "2.13.0" and torch.__version__ >= (2, 13) and isinstance(torch.__version__, str)
assert sys.modules["torch"] is __import__("autograd_nb")
by_name = pickle.loads(b"ctorch.nn.modules.linear\\nLinear\\n.")
assert by_name is nn.Linear and pickle.loads(b"ctorch\\nTensor\\n.") is torch.Tensor
kept = pickle.loads(pickle.dumps([nn.Linear(2, 1), torch.ones(2), torch.Tensor, torch.float16, torch.Size([2])]))
assert kept[2:] == [torch.Tensor, torch.float16, torch.Size([2])] and isinstance(kept[0], nn.Linear)

def in_child(queue, x):
    import torch
    queue.put((torch.__name__, F.relu(x).tolist()))

if __name__ == "__main__":
    loader = DataLoader(TensorDataset(torch.arange(4.0)), batch_size=2)
    print([x.sum().item() for (x,) in loader])
    queue = mp.SimpleQueue()
    child = mp.Process(target=in_child, args=(queue, torch.tensor([-1.0, 2.0])))
    child.start()
    print(queue.get())
    child.join()
"""
PRINTED = "[1.0, 5.0]\n('torch', [0.0, 2.0])\n"


def run(*command: str, path: list[str], cwd: Path) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(path)}
    return subprocess.run([*command], capture_output=True, text=True, cwd=cwd, env=environment, check=False)


def test_a_folder_on_the_path(tmp_path):
    target, program = tmp_path / "packages", tmp_path / "train.py"
    program.write_text(PROGRAM)
    assert "import torch" in shimming.install(target=target)
    done = run(sys.executable, str(program), path=[str(target), *NEEDED], cwd=tmp_path)
    assert (done.stdout, done.returncode) == (PRINTED, 0), done.stderr
    run(sys.executable, "-m", "compileall", "-q", str(target), path=[], cwd=tmp_path)
    shimming.install(target=target)  # again, over itself
    shimming.remove(target=target)
    assert list(target.iterdir()) == []
    with pytest.raises(shimming.ShimError, match="no shim in"):
        shimming.remove(target=target)


def test_pytest_needs_no_launcher(tmp_path):
    shimming.install(target=tmp_path / "packages")
    (tmp_path / "test_it.py").write_text("import torch\n\ndef test_it():\n    assert torch.__name__ == 'torch' and torch.ones(2).sum() == 2\n")
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_it.py"]
    done = run(*command, path=[str(tmp_path / "packages"), *NEEDED], cwd=tmp_path)
    assert done.returncode == 0, done.stdout


def test_an_environment(tmp_path):
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(tmp_path / "env")], check=True)
    python = str(tmp_path / "env" / "bin" / "python")
    packages = next((tmp_path / "env").glob("lib/python*/site-packages"))
    shim = [sys.executable, "-m", "autograd_nb", "shim"]
    refused = run(*shim, "install", "--python", python, path=[str(ROOT)], cwd=tmp_path)
    assert refused.returncode == 1, refused.stdout
    assert "install it there first" in refused.stderr
    (packages / "needed.pth").write_text(str(ROOT) + "\n")
    before = sorted(packages.rglob("*"))
    done = run(*shim, "install", "--python", python, path=[], cwd=ROOT)
    assert done.returncode == 0, done.stderr
    listed = run(python, "-c", "import importlib.metadata as m; d = m.distribution('torch'); print(d.version, len(d.files))", path=[], cwd=tmp_path)
    assert listed.stdout.split() == [TORCH_VERSION, "7"], listed.stderr
    found = run(python, "-c", "import importlib.util as u; print(u.find_spec('torch').origin)", path=[], cwd=tmp_path)
    assert found.stdout.strip() == str(packages / "torch" / "__init__.py")
    assert run(*shim, "remove", "--python", python, path=[], cwd=ROOT).returncode == 0
    assert sorted(packages.rglob("*")) == before


def test_another_torch_is_left_alone(tmp_path):
    (tmp_path / "torch").mkdir()
    (tmp_path / "torch" / "__init__.py").write_text("theirs = True\n")
    with pytest.raises(shimming.ShimError, match="another torch is there"):
        shimming.install(target=tmp_path)
    assert [p.name for p in tmp_path.rglob("*")] == ["torch", "__init__.py"]
    (tmp_path / "torch" / "__init__.py").unlink()
    (tmp_path / "torch").rmdir()
    (tmp_path / "torch-1.0.dist-info").mkdir()
    with pytest.raises(shimming.ShimError, match=r"torch-1\.0"):
        shimming.install(target=tmp_path)


@pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="PyTorch is not installed")
def test_pytorch_is_left_alone():
    with pytest.raises(shimming.ShimError, match="another torch is there"):
        shimming.install()
    with pytest.raises(shimming.ShimError, match="no shim in"):
        shimming.remove()


def test_an_interpreter_that_is_none():
    with pytest.raises(shimming.ShimError, match="cannot ask the interpreter"):
        shimming.install(python="/nowhere/python")


def test_the_entry_has_the_version_that_programs_see():
    entry = next(SHIM.glob("torch-*.dist-info"))
    assert entry.name == f"torch-{TORCH_VERSION}.dist-info"
    assert f"Version: {TORCH_VERSION}\n" in (entry / "METADATA").read_text()


def test_as_torch_in_one_process(tmp_path):
    """Without anything installed: also processes that it starts find ``torch``."""
    program = tmp_path / "train.py"
    program.write_text("import autograd_nb\nautograd_nb.as_torch()\n" + PROGRAM)
    done = run(sys.executable, "-m", "autograd_nb", "run", str(program), path=NEEDED, cwd=tmp_path)
    assert (done.stdout, done.returncode) == (PRINTED, 0), done.stderr
