"""The former bytes of ``postgresql.auto.conf``, as a receipt keeps them. Pure."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Mapping

from pgdyno.base.errors import StorageError

_BYTES, _HASH = "auto_conf", "auto_conf_sha256"


def kept(content: bytes) -> dict[str, str]:
    """Return the part of a receipt's state that holds a file."""
    return {_BYTES: base64.b64encode(content).decode(), _HASH: hashlib.sha256(content).hexdigest()}


def former_content(state: Mapping[str, str]) -> bytes | None:
    """Return the file that a receipt holds; None if it could not be read at the time.

    Raises: StorageError if the bytes are not those that were put in.
    """
    if _BYTES not in state:
        return None
    content = base64.b64decode(state[_BYTES], validate=True)
    if hashlib.sha256(content).hexdigest() != state[_HASH]:
        raise StorageError("the receipt's copy of postgresql.auto.conf does not fit its checksum")
    return content
