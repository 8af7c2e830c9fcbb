"""The hash by which kernels are found and files are checked."""

from __future__ import annotations

from typing import Any

# as `hashlib` gives it, whose import loads OpenSSL: as long as 1 % of a second process
try:
    from _blake2 import blake2b
except ImportError:  # a Python whose hashes are elsewhere
    from hashlib import blake2b


def hashed(data: bytes | memoryview = b"") -> Any:
    """Return a BLAKE2b hash of 32 bytes that has taken in ``data``, as `hashlib` makes them (RFC 7693)."""
    return blake2b(data, digest_size=32)
