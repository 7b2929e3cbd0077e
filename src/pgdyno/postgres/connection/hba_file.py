"""HBA file of a scratch server; lines can be appended for tests while the server runs.

It replaces pg_hba.conf in the data directory. The servers' account can write there, and so can libraries
that the server loads: they could replace that file by a link before a line is appended.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from pgdyno.base.errors import RefusedError

_METHOD = re.compile(r"[a-z0-9-]+")
_SHOWN_CHARACTERS = 40  # arbitrary; a name may have thousands
_READABLE = 0o644  # the servers' account can read it, but not write it


@dataclass(frozen=True)
class LoginRules:
    """An open file that a server uses as its ``hba_file``."""

    path: Path
    file: IO[str]

    def append(self, methods: Iterable[str]) -> None:
        """Append a line for each authentication method.

        Raises: RefusedError, before anything is written, for an invalid method name.
        """
        methods = sorted(methods)
        for method in methods:
            _require_name(method)
        self.file.writelines(f"host all all 127.0.0.1/32 {method}\n" for method in methods)
        self.file.flush()


@contextmanager
def login_rules(directory: Path) -> Iterator[LoginRules]:
    """Create the file in a directory owned by the caller. It trusts all connections over the socket."""
    path = directory / "pg_hba.conf"
    with path.open("x", encoding="utf-8") as file:
        os.fchmod(file.fileno(), _READABLE)
        file.write("local all all trust\n")
        file.flush()
        yield LoginRules(path, file)


def _require_name(method: str) -> None:
    if not _METHOD.fullmatch(method):
        raise RefusedError(
            f"the server reports an invalid authentication method: {method[:_SHOWN_CHARACTERS]!a}",
            detail="method names consist of lower-case letters, digits and hyphens",
            hint="nothing was changed; see SELECT auth_method FROM pg_hba_file_rules",
        )
