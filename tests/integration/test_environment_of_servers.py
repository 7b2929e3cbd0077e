"""What of an environment reaches a scratch server, and when."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest
from tests.fix_servers import RealServer

from pgdyno.host.processes.running import output_of
from pgdyno.measure.arenas.attached_server import find_remote_server
from pgdyno.postgres.process.account import current_account
from pgdyno.postgres.process.installation import installation_at
from pgdyno.postgres.process.instance import Instance, initialise
from pgdyno.postgres.process.workspace import Workspace

pytestmark = pytest.mark.server

ELSEWHERE = {
    "PGHOSTADDR": "192.0.2.7",  # RFC 5737: nobody has this address
    "PGOPTIONS": "-c synchronous_commit=off",
    "PGSERVICE": "nowhere",
    "PGREQUIREAUTH": "scram-sha-256",
    "PGTARGETSESSIONATTRS": "standby",
    "PGCLIENTENCODING": "LATIN1",
}


SECRET = "of-root-alone"  # noqa: S105 — that is the test


@contextmanager
def started(
    bin_directory: Path, home: Path, environment: dict[str, str], settings: dict[str, str] | None = None
) -> Iterator[Instance]:
    """Start a server, pinned to a CPU, with an environment of its own."""
    account = current_account()
    installation, workspace = installation_at(bin_directory, account), Workspace(home, account)
    with workspace.scratch() as scratch, workspace.sockets(scratch) as sockets:
        initialise(installation, account, scratch / "data")
        cpu = min(os.sched_getaffinity(0))
        instance = Instance(installation, account, scratch / "data", sockets, 5997, cpus=(cpu,))
        instance.environment, instance.settings = environment, settings or {}
        instance.start()
        try:
            yield instance
        finally:
            instance.stop(is_immediate=True)


@pytest.fixture
def elsewhere(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in ELSEWHERE.items():
        monkeypatch.setenv(name, value)


def test_a_preloaded_library_is_loaded_by_the_server_alone(pg18_bin: Path, home: Path) -> None:
    """ld.so says of every program that is started with one which is missing that it has ignored it."""
    with started(pg18_bin, home, {"LD_PRELOAD": "libjemalloc.so.99", "MALLOC_ARENA_MAX": "2"}) as server:
        log = server.log_file.read_text()
        assert log.count("libjemalloc.so.99' from LD_PRELOAD cannot be preloaded") == 1
        assert b"MALLOC_ARENA_MAX=2" in Path(f"/proc/{server.pid}/environ").read_bytes().split(b"\0")


@pytest.mark.usefixtures("elsewhere")
def test_variables_of_libpq_neither_lead_elsewhere_nor_reach_the_server(pg18_bin: Path, home: Path) -> None:
    with started(pg18_bin, home, {}) as server, closing(server.connect()) as connection:
        shown = connection.execute("SHOW synchronous_commit").fetchone()
        assert (shown, connection.info.encoding) == (("on",), "utf-8")
        variables = Path(f"/proc/{server.pid}/environ").read_text().split("\0")
    assert [one for one in variables if one.startswith("PG") and not one.startswith("PGDYNO_")] == []
    assert {name: os.environ[name] for name in ELSEWHERE} == ELSEWHERE


def test_secrets_in_the_callers_environment_reach_no_server(
    pg18_bin: Path, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The account that servers run as could read them in /proc."""
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "s3cret")
    monkeypatch.setenv("LC_MESSAGES", "C")
    with started(pg18_bin, home, {}) as server:
        variables = Path(f"/proc/{server.pid}/environ").read_text().split("\0")
    names = {one.partition("=")[0] for one in variables if one}
    assert names >= {"PATH", "LC_MESSAGES"}
    assert "AWS_SECRET_ACCESS_KEY" not in names
    assert ("HOME" in names) != server.account.is_other


@pytest.mark.root
def test_a_secret_of_root_does_not_reach_what_is_built(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("AWS_SECRET_ACCESS_KEY", "https_proxy", "HOME", "TMPDIR"):
        monkeypatch.setenv(name, SECRET)
    said = output_of(["cat", "/proc/self/environ"], current_account().run_as)
    assert sorted(pair.partition("=")[0] for pair in said.rstrip("\0").split("\0")) == [
        "DEBIAN_FRONTEND", "LC_ALL", "PATH",
    ]  # fmt: skip


@pytest.mark.root
def test_a_secret_of_root_does_not_reach_programs_that_say_their_version(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The servers' account runs them, and its other processes can read the environment of each."""
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", SECRET)
    account = current_account()
    with tempfile.TemporaryDirectory(prefix="pgdyno-asked-") as place:
        Path(place).chmod(0o755)
        for program in ("postgres", "pg_config"):
            seen = Path(place, f"{program}.seen")
            seen.touch()
            seen.chmod(0o666)
            Path(place, program).write_text(f"#!/bin/sh\nenv > {seen}\necho 'postgres (PostgreSQL) 18.0'\n")
            Path(place, program).chmod(0o755)
        installation_at(Path(place), account).build_configuration(account)
        seen_by = {one.stem: one.read_text() for one in Path(place).glob("*.seen")}
    assert set(seen_by) == {"postgres", "pg_config"}
    for text in seen_by.values():
        assert "PATH=" in text
        assert SECRET not in text


def test_no_setting_makes_a_private_server_a_public_one(pg18_bin: Path, home: Path) -> None:
    public = {"listen_addresses": "*", "port": "5432", "unix_socket_directories": "/tmp"}
    with started(pg18_bin, home, {}, public) as server, closing(server.connect()) as connection:
        assert connection.execute("SHOW listen_addresses").fetchone() == ("",)


@pytest.mark.parametrize(
    ("of_environment", "of_string", "expected"),
    [
        ("-c jit=off", "", {"PGOPTIONS": "-c jit=off"}),
        ("-c jit=off", "options='-c work_mem=8MB'", {"PGOPTIONS": "-c work_mem=8MB"}),
        ("-c jit=off", "options=''", {"PGOPTIONS": ""}),
        ("", "options='-c work_mem=8MB'", {"PGOPTIONS": "-c work_mem=8MB"}),
    ],
)
def test_generators_have_the_options_of_the_control_connection(
    pg18: RealServer,
    monkeypatch: pytest.MonkeyPatch,
    of_environment: str,
    of_string: str,
    expected: dict[str, str],
) -> None:
    if of_environment:
        monkeypatch.setenv("PGOPTIONS", of_environment)
    _, environment = find_remote_server(f"{pg18.dsn} {of_string}")
    assert {name: value for name, value in environment.items() if name == "PGOPTIONS"} == expected
