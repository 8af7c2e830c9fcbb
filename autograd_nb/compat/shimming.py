"""``python -m autograd_nb shim``: a ``torch`` in an environment that leads to this library, for programs that are run without a launcher.

Two folders are written beside the installed packages: the package ``torch``, and the entry under which `importlib.metadata` and pip find
it, with a list of all that was written. `remove` goes by that list.
"""

from __future__ import annotations

import argparse
import base64
import hashlib
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

SHIM = Path(__file__).parent / "shim"
INSTALLER = "autograd_nb"

_ASK = (
    "import importlib.util as u, json, sysconfig; found = u.find_spec('torch');"
    "print(json.dumps([sysconfig.get_paths()['purelib'], found.origin if found else None, u.find_spec('autograd_nb') is not None]))"
)


class ShimError(Exception):
    """The shim cannot be written to a place, or is not there."""


def add_to(commands: Any) -> None:
    """Add the words to a parser."""
    shim = commands.add_parser(
        "shim",
        help="let `import torch` give this library in a whole environment",
        description="Write a package `torch` that leads to this library, and its entry for importlib.metadata, into an environment, so that "
        "`python train.py`, pytest and notebooks need no launcher; or remove both. Where PyTorch is installed, nothing is written.",
    )
    actions = shim.add_subparsers(title="actions", required=True, metavar="action")
    for word, run, text in (("install", install, "write them"), ("remove", remove, "remove what `install` wrote")):
        p = actions.add_parser(word, help=text)
        place = p.add_mutually_exclusive_group()
        place.add_argument("--python", metavar="PATH", help="the interpreter of the environment (default: this one)")
        place.add_argument("--target", metavar="DIR", type=Path, help="a folder, to be named in PYTHONPATH")
        p.set_defaults(run=_command(run))


def _command(action: Any) -> Any:
    def run(options: argparse.Namespace) -> int:
        try:
            print(action(python=options.python, target=options.target))
        except ShimError as error:
            print(error, file=sys.stderr)
            return 1
        return 0

    return run


def _entry(folder: Path) -> Path | None:
    """Return the shim's entry for `importlib.metadata` in a folder of packages, None where there is none."""
    for entry in folder.glob("torch-*.dist-info"):
        written = entry / "INSTALLER"
        if written.is_file() and written.read_text().strip() == INSTALLER:
            return entry
    return None


def _environment(python: str | None) -> tuple[Path, str | None, bool]:
    """Return an interpreter's folder of packages, the file that ``import torch`` finds there, and whether it has this library."""
    if python is None:
        python = sys.executable
    try:  # (-I: what is there for every program, whatever the current folder and PYTHONPATH add)
        answer = subprocess.run([python, "-I", "-c", _ASK], capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError) as error:
        raise ShimError(f"shim: cannot ask the interpreter {python} ({error}); name another with --python") from None
    folder, found, ours = json.loads(answer.stdout)
    return Path(folder), found, ours


def _place(python: str | None, target: Path | None) -> tuple[Path, str | None]:
    """Return the folder of packages, and the file of another ``torch`` that is imported there."""
    if target is not None:
        found, folder = target / "torch", target
        origin: str | None = str(found) if found.exists() else None
    else:
        folder, origin, _ = _environment(python)
    return folder, None if _entry(folder) is not None else origin


def install(python: str | None = None, target: Path | None = None) -> str:
    """Write the shim into the environment of an interpreter (this one, if none is named) or a folder, and return what was done in words.

    Errors: ShimError where PyTorch is installed, or where this library is not.
    """
    folder, other = _place(python, target)
    if other is None:
        other = next((str(e) for e in folder.glob("torch-*.dist-info") if e != _entry(folder)), None)
    if other is not None:
        raise ShimError(f"shim install: another torch is there ({other}); uninstall it first, or run programs by `python -m autograd_nb run`")
    if target is None and not _environment(python)[2]:
        raise ShimError(f"shim install: {python or sys.executable} does not find autograd_nb; install it there first")
    if _entry(folder) is not None:
        remove(target=folder)
    files = sorted(p.relative_to(SHIM) for p in SHIM.rglob("*") if p.is_file() and p.parent != SHIM and "__pycache__" not in p.parts)
    entry = next(p.parent for p in files if p.parent.suffix == ".dist-info")
    contents = {p: (SHIM / p).read_bytes() for p in files}
    contents[entry / "INSTALLER"] = f"{INSTALLER}\n".encode()
    lines = [f"{p.as_posix()},sha256={_digest(data)},{len(data)}" for p, data in contents.items()]
    contents[entry / "RECORD"] = "\n".join([*lines, f"{(entry / 'RECORD').as_posix()},,", ""]).encode()
    for p, data in contents.items():
        (folder / p).parent.mkdir(parents=True, exist_ok=True)
        (folder / p).write_bytes(data)
    return f"`import torch` gives autograd_nb in {folder}"


def _digest(data: bytes) -> str:
    return base64.urlsafe_b64encode(hashlib.sha256(data).digest()).decode().rstrip("=")


def remove(python: str | None = None, target: Path | None = None) -> str:
    """Remove what `install` wrote, with what Python compiled of it, and return what was done in words. ShimError where there is nothing of it."""
    folder, _ = _place(python, target)
    entry = _entry(folder)
    if entry is None:
        raise ShimError(f"shim remove: there is no shim in {folder}")
    files = [folder / line.split(",")[0] for line in (entry / "RECORD").read_text().splitlines() if line]
    for file in files:
        for compiled in (file.parent / "__pycache__").glob(f"{file.stem}.*.pyc"):
            compiled.unlink()
        file.unlink(missing_ok=True)
    folders = {file.parent for file in files}
    for place in sorted({*folders, *(f / "__pycache__" for f in folders)}, key=lambda p: -len(p.parts)):
        if place.is_dir() and not any(place.iterdir()):
            place.rmdir()
    return f"removed `torch` from {folder}"
