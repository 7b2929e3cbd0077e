"""A load host: a python3 here, to which a script of the shell is sent in a driver's place."""

from __future__ import annotations

import os
import shlex
import socket
import sys
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest
from tests.fix_servers import wait_until

from pgdyno.base.errors import GeneratorFailedError
from pgdyno.load.driver_process import Distance, DriverProcess
from pgdyno.model.cells.cell import CellHost, HostRole
from pgdyno.remote.load_driver import DriverSending, driver_sending

HOST = CellHost("client1", HostRole.LOAD, "client1")
SAYS_ITS_VERSION = '#!/bin/sh\n[ "$1" = --version ] && echo pgdyno-driver 9 && exit 0\n'
OBEDIENT = """
read job; echo '{"event": "ready"}'
read stop; echo '{"event": "phase", "arms": []}'
seq 100000 >1.3; echo "$* $PGPASSWORD $OF_THE_LOGIN" >0.0
echo '{"event": "end"}'
"""


def sending(
    directory: Path, script: str, lifetime_s: float = 60.0, owner: str = "pgdyno-load-7"
) -> DriverSending:
    """Return how the script is sent to this machine, whose python3 is that of these tests."""
    program = directory / "pgdyno-driver"
    program.write_text(script)
    one = driver_sending(HOST, None, [str(program), "serve"], {"PGPASSWORD": "s3cret"}, lifetime_s, owner)
    return replace(one, argv=[sys.executable, *shlex.split(one.argv[-1])[1:]])


def there(directory: Path) -> Path:
    """Return the directory of temporary files of the load host."""
    path = directory / "there"
    path.mkdir(exist_ok=True)
    return path


def driver(directory: Path, sent: DriverSending, **environment: str) -> DriverProcess:
    """Return the driver, not started yet."""
    return driver_in(there(directory), directory, sent, **environment)


def driver_in(temporary: Path, directory: Path, sent: DriverSending, **environment: str) -> DriverProcess:
    """Return the driver that works below a given directory."""
    prefixes = [directory / "first", directory / "second"]
    distance = Distance("client1", sent.first, sent.greeting, prefixes)
    place: Mapping[str, str] = {"PATH": os.environ["PATH"], "TMPDIR": str(temporary), **environment}
    return DriverProcess(sent.argv, list, place, directory / "output", distance)


def failure(directory: Path, sent: DriverSending) -> GeneratorFailedError:
    """Return how a driver fails."""
    return failure_of(driver(directory, sent))


def failure_of(process: DriverProcess) -> GeneratorFailedError:
    """Start and stop a driver that fails; return how."""
    with closing(process), pytest.raises(GeneratorFailedError) as caught:
        run_of(process)
    return caught.value


def run_of(process: DriverProcess) -> None:
    """Start a driver and stop it."""
    process.start("{}")
    process.stop()


def _is_bound(taken: socket.socket, address: str) -> bool:
    """Bind a socket to an address; False if it is taken."""
    with suppress(OSError):
        taken.bind(address)
        return True
    return False


@contextmanager
def alone_on_this_machine() -> Iterator[None]:
    """Wait until no other test has a load here: the load host that this machine stands for takes one."""
    with socket.socket(socket.AF_UNIX) as taken:
        wait_until(partial(_is_bound, taken, "\0pgdyno-test-load"))
        yield
