"""Login rules file of a scratch server; lines are tried while the server runs.

It takes the place of the data directory's pg_hba.conf, which belongs to the account that runs the server,
together with all libraries that it loads: they could have put a link there before a line is appended.
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
_SHOWN_CHARACTERS = 40  # arbitrary: of a name that may have thousands
_READABLE = 0o644  # the server's account reads it, and cannot write it


@dataclass(frozen=True)
class LoginRules:
    """An open file that a server is given as its ``hba_file``."""

    path: Path
    file: IO[str]

    def append(self, methods: Iterable[str]) -> None:
        """Write a line with each authentication method.

        Raises: RefusedError, before anything is written, for what is not the name of a method.
        """
        methods = sorted(methods)
        for method in methods:
            _require_name(method)
        self.file.writelines(f"host all all 127.0.0.1/32 {method}\n" for method in methods)
        self.file.flush()


@contextmanager
def login_rules(directory: Path) -> Iterator[LoginRules]:
    """Make the file in a directory of the caller's own; everybody may log in over the socket."""
    path = directory / "pg_hba.conf"
    with path.open("x", encoding="utf-8") as file:
        os.fchmod(file.fileno(), _READABLE)
        file.write("local all all trust\n")
        file.flush()
        yield LoginRules(path, file)


def _require_name(method: str) -> None:
    if not _METHOD.fullmatch(method):
        raise RefusedError(
            f"the server shows an authentication method that cannot be one: {method[:_SHOWN_CHARACTERS]!a}",
            detail="a method is written with lower-case letters, digits and hyphens",
            hint="nothing was changed; see what SELECT auth_method FROM pg_hba_file_rules shows",
        )
