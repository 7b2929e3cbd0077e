"""A driver on another host: what it is given first, and how its logs come here."""

from __future__ import annotations

import base64
import os
import re
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pgdyno.model.errors import GeneratorFailedError

_FILE = re.compile(r"([0-9]{1,4})\.([0-9]{1,4})", re.ASCII)
_MOST_PART_BYTES = 1 << 20  # the program there sends an eighth of that


@dataclass(frozen=True)
class Distance:
    """What is between pgdyno and a driver on another host.

    ``first`` is sent before the job; ``greeting`` is the line that says that it has arrived. ``log_prefixes``
    are where the transactions of each arm are to be here: there, they are logged by the arm's number.
    """

    host: str
    first: bytes = field(repr=False)
    greeting: str
    log_prefixes: Sequence[Path]

    def keep(self, event: Mapping[str, Any]) -> None:
        """Append a part of a log. Raises: GeneratorFailedError for what is none, or of no arm."""
        try:
            arm, thread = map(int, _matched(event["file"]))
            prefix = self.log_prefixes[arm]
            unpacking = zlib.decompressobj()
            part = unpacking.decompress(base64.b64decode(event["part"], validate=True), _MOST_PART_BYTES)
        except (KeyError, IndexError, TypeError, ValueError, zlib.error) as error:
            raise GeneratorFailedError(f"{self.host} sends a log that is none of pgdyno-driver's") from error
        with open(prefix.with_name(f"{prefix.name}.{thread}"), "ab", opener=_open_own) as file:
            file.write(part)


def _matched(name: str) -> Sequence[str]:
    found = _FILE.fullmatch(name)
    if found is None:
        raise ValueError(name)
    return found.groups()


def _open_own(path: str, flags: int) -> int:
    """Open a log to append to; the generators' user, whose directory it is, could have put a link there."""
    return os.open(path, flags | os.O_NOFOLLOW | os.O_NONBLOCK, 0o600)
