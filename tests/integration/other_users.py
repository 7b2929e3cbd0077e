"""Does something as another user of the operating system, in a process of its own."""

from __future__ import annotations

import os
import pwd
from collections.abc import Callable

import pytest

from pgdyno.base.errors import PgdynoError


def as_user(name: str, action: Callable[[], str]) -> str:
    """Return what an action says, or its error, in a process of that user."""
    if os.geteuid() != 0:
        pytest.skip("becoming another user takes root")
    action()  # imports what it needs, which the other user might not be able to read
    user = pwd.getpwnam(name)
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.setgroups([])
            os.setgid(user.pw_gid)
            os.setuid(user.pw_uid)
            said = action()
        except (PgdynoError, OSError) as error:
            said = str(error)
        os.write(writing, said.encode())
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading) as answer:
        said = answer.read()
    os.waitpid(child, 0)
    return said
