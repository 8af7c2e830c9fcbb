"""Weights from the net, which this library does not fetch: the names that programs import, with errors that tell the remedy.

Source: https://docs.pytorch.org/docs/stable/hub.html
"""

from __future__ import annotations

from typing import Any


def _offline(*args: Any, **kwargs: Any) -> Any:
    what = f" ({args[0]!r})" if args else ""
    raise NotImplementedError(f"nothing is downloaded by this library{what}: fetch the file by other means and read it with load(path)")


load_state_dict_from_url = load_url = download_url_to_file = load = list = help = _offline  # noqa: A001
