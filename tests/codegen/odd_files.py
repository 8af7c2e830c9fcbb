"""What may stand in the place of a file: pipes, devices, folders, sockets, links."""

from __future__ import annotations

import os
import socket
from pathlib import Path

import pytest

KINDS = ("pipe", "link to a pipe", "device", "folder", "nothing", "socket", "link to itself")


def put(kind: str, file: Path, folder: Path) -> None:
    """Put something of this kind in the place of a file; ``folder``: where what a link leads to may stand."""
    file.unlink()
    if kind == "pipe":
        os.mkfifo(file, 0o600)
    elif kind == "link to a pipe":
        os.mkfifo(folder / "pipe", 0o600)
        file.symlink_to(folder / "pipe")
    elif kind == "device":
        try:
            os.mknod(file, 0o600 | 0o020000, os.makedev(1, 5))  # endless zeros
        except PermissionError:
            pytest.skip("devices cannot be made here")
    elif kind == "folder":
        file.mkdir()
    elif kind == "socket":
        before = Path.cwd()
        os.chdir(file.parent)  # a socket's path may not be long
        with socket.socket(socket.AF_UNIX) as server:
            server.bind(file.name)
        os.chdir(before)
    elif kind == "link to itself":
        file.symlink_to(file)
