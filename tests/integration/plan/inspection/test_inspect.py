"""``pgdyno inspect`` end to end: real servers, the real command line, what people read."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from tests.fix_debian import DebianCluster
from tests.fix_servers import RealServer, wait_until

from pgdyno.base.errors import ConnectionFailedError, DataDirectoryError, UsageError
from pgdyno.base.facts import Fact, Unknown
from pgdyno.host.host import Host
from pgdyno.plan.engine.resources import Figures, StorageKind
from pgdyno.plan.inspection.inspect import (
    InspectedServer,
    Inspection,
    inspect_data_directory,
    inspect_dsn,
    inspect_here,
)

pytestmark = pytest.mark.server

NOTHING_STATED = Figures()


@pytest.fixture(autouse=True)
def no_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Keep the developer's own libpq settings out."""
    for name in [name for name in os.environ if name.startswith("PG")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("PGPASSFILE", str(tmp_path / "no-such-file"))


@pytest.fixture
def elsewhere(tmp_path: Path) -> Path:
    """Return the root of a host on which no server runs."""
    (tmp_path / "host/proc/1").mkdir(parents=True)
    (tmp_path / "host/proc/1/status").write_text("Name:\tinit\nPid:\t1\nNSpid:\t1\n")
    return tmp_path / "host"


@pytest.fixture
def plain_role(pg18: RealServer) -> Iterator[str]:
    """Return a role without any privilege."""
    pg18.execute("CREATE ROLE inspect_e2e LOGIN")
    yield "inspect_e2e"
    pg18.execute("DROP ROLE inspect_e2e")


def server_of(found: Inspection) -> InspectedServer:
    assert isinstance(found.inspected, InspectedServer)
    return found.inspected


def host_of(found: Inspection) -> Host:
    assert isinstance(found.host, Host)
    return found.host


def pgdyno(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "pgdyno", "inspect", *arguments],
        capture_output=True,
        text=True,
        check=False,
        timeout=250,
    )


def document(arguments: Sequence[str]) -> dict[str, Any]:
    done = pgdyno(*arguments, "--json")
    assert done.returncode == 0, done.stderr
    parsed = json.loads(done.stdout)
    assert isinstance(parsed, dict)
    assert parsed["schema_version"] == 1
    return parsed


def test_a_server_on_this_host_is_proven_and_its_host_is_read(pg18: RealServer) -> None:
    found = inspect_dsn(pg18.dsn, NOTHING_STATED)
    inspected = server_of(found)
    assert inspected.server.is_colocated.value is True
    assert inspected.target == f"host={pg18.directory} port={pg18.port} dbname=postgres user=postgres"
    assert host_of(found).limits.rlimits.source == f"/proc/{pg18.pid}/limits"
    assert inspected.resources.memory_bytes.is_known


def test_what_the_postmaster_runs_and_was_started_with_is_read(
    scratch_pg18: RealServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    scratch_pg18.stop()
    monkeypatch.setenv("MALLOC_ARENA_MAX", "3")
    scratch_pg18.start()
    program = server_of(inspect_dsn(scratch_pg18.dsn, NOTHING_STATED)).server.program
    assert program.allocator.value == "glibc"
    assert program.malloc_variables.or_else({})["MALLOC_ARENA_MAX"] == "3"
    assert program.atomics.is_known == (os.uname().machine == "aarch64")


def test_a_server_that_runs_elsewhere_has_no_host_facts(pg18: RealServer, elsewhere: Path) -> None:
    found = inspect_dsn(pg18.dsn, NOTHING_STATED, root=elsewhere)
    assert isinstance(found.host, Unknown)
    assert found.host.reason.startswith(
        "the server is not proven to run here: no process here has the backend's process id"
    )
    inspected = server_of(found)
    assert not inspected.server.is_colocated.is_known
    assert inspected.resources.memory_bytes.value == Unknown(
        "no host was inspected; state it with --ram"
    )  # fmt: skip


def test_what_is_stated_takes_the_place_of_what_cannot_be_read(pg18: RealServer, elsewhere: Path) -> None:
    stated = Figures(memory_bytes=16 << 30, cpu_count=8, storage=StorageKind.NVME)
    resources = server_of(inspect_dsn(pg18.dsn, stated, root=elsewhere)).resources
    assert resources.memory_bytes == Fact(16 << 30, "--ram")
    assert resources.cpu_count == Fact(8, "--cpus")
    assert resources.storage == Fact(StorageKind.NVME, "--storage")


def test_more_memory_than_the_proven_host_has_is_refused(pg18: RealServer) -> None:
    with pytest.raises(UsageError, match="is more than the"):
        inspect_dsn(pg18.dsn, Figures(memory_bytes=1 << 60))


def test_an_ordinary_role_gives_no_proof_without_the_data_directory(
    pg18: RealServer, plain_role: str
) -> None:
    found = inspect_dsn(pg18.dsn_for(plain_role), NOTHING_STATED)
    assert found.host == Unknown(
        "the server is not proven to run here: the server does not show its data directory to this role"
    )


def test_a_data_directory_that_is_named_proves_it_for_an_ordinary_role(
    pg18: RealServer, plain_role: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PGUSER", plain_role)
    monkeypatch.setenv("PGDATABASE", "postgres")
    found = inspect_data_directory(pg18.data_directory, NOTHING_STATED)
    assert server_of(found).server.is_colocated.value is True
    assert found.data_directory is not None
    assert found.data_directory.major == 18


def test_a_data_directory_without_a_server_tells_what_its_files_tell(scratch_pg15: RealServer) -> None:
    scratch_pg15.execute("ALTER SYSTEM SET work_mem = '9MB'")
    scratch_pg15.stop()
    found = inspect_data_directory(scratch_pg15.data_directory, NOTHING_STATED)
    assert found.inspected == Unknown("not running: there is no postmaster.pid")
    directory = found.data_directory
    assert directory is not None
    assert (directory.major, directory.owner) == (15, scratch_pg15.directory.owner())
    last = {setting.name: setting for setting in directory.settings.or_else(())}
    assert last["port"].value == str(scratch_pg15.port)
    assert (last["work_mem"].value, Path(last["work_mem"].file).name) == ("9MB", "postgresql.auto.conf")
    assert isinstance(found.host, Host)


def test_root_is_let_in_as_the_owner_where_everybody_is_who_the_kernel_says(
    scratch_pg18: RealServer,
) -> None:
    if os.geteuid() != 0:
        pytest.skip("only root is another user than the server's")
    (scratch_pg18.data_directory / "pg_hba.conf").write_text("local all all peer\n")
    os.kill(scratch_pg18.pid, signal.SIGHUP)
    wait_until(lambda: not scratch_pg18.takes_connections())
    found = inspect_data_directory(scratch_pg18.data_directory, NOTHING_STATED).inspected
    assert isinstance(found, InspectedServer)
    assert found.target.endswith(f" user={scratch_pg18.data_directory.owner()}")
    assert os.geteuid() == 0


def test_a_running_data_directory_that_lets_nobody_in_is_an_error(scratch_pg18: RealServer) -> None:
    (scratch_pg18.data_directory / "pg_hba.conf").write_text("local all all reject\n")
    os.kill(scratch_pg18.pid, signal.SIGHUP)
    wait_until(lambda: not scratch_pg18.takes_connections())
    with pytest.raises(ConnectionFailedError) as caught:
        inspect_data_directory(scratch_pg18.data_directory, NOTHING_STATED)
    owner = scratch_pg18.data_directory.owner()
    assert caught.value.detail is not None
    assert f'pg_hba.conf rejects connection for host "[local]", user "{owner}"' in caught.value.detail


def test_without_a_server_this_host_is_described(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PGHOST", str(tmp_path))
    found = inspect_here(NOTHING_STATED)
    assert isinstance(found.host, Host)
    assert isinstance(found.inspected, Unknown)
    assert found.inspected.reason == (
        f'could not connect to the server on socket "{tmp_path}/.s.PGSQL.5432": No such file or directory'
    )


def test_a_directory_that_is_none_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(DataDirectoryError, match="is not a data directory"):
        inspect_data_directory(tmp_path, NOTHING_STATED)


def test_json_is_one_document_with_server_and_host(pg18: RealServer) -> None:
    found = document(["--dsn", pg18.dsn])
    assert found["server"]["version_num"] == int(str(pg18.execute("SHOW server_version_num")[0][0]))
    assert found["server"]["is_colocated"]["value"] is True
    assert found["server"]["settings"]["port"]["setting"] == str(pg18.port)
    assert "port" in found["server"]["non_default_settings"]
    assert found["server"]["resources"]["cpu_count"]["value"] > 0
    assert found["host"]["memory"]["total_bytes"]["source"] == "/proc/meminfo"
    assert found["data_directory"] is None


def test_json_of_a_stopped_server_says_why_there_is_none(scratch_pg18: RealServer) -> None:
    scratch_pg18.stop()
    found = document(["--pgdata", str(scratch_pg18.data_directory)])
    assert found["server"] == {"unknown": "not running: there is no postmaster.pid"}
    assert found["data_directory"]["major"] == 18


def test_text_shows_where_every_configured_setting_comes_from(pg18: RealServer) -> None:
    done = pgdyno("--dsn", pg18.dsn, "--storage", "ssd")
    assert (done.returncode, done.stderr) == (0, "")
    lines = [line.split() for line in done.stdout.splitlines()]
    path = f"{pg18.data_directory}/postgresql.conf"
    assert ["listen_addresses", "127.0.0.1"] in [
        line[:2] for line in lines if line[2:] and line[2].startswith(path)
    ]
    assert ["storage", "ssd", "(--storage)"] in lines
    assert ["standbys", "none"] in lines
    assert "Host" in done.stdout


def test_text_for_a_role_that_sees_little_warns_on_stderr_and_lists_what_is_hidden(
    pg18: RealServer, plain_role: str
) -> None:
    done = pgdyno("--dsn", pg18.dsn_for(plain_role))
    assert done.returncode == 0
    assert done.stderr == (
        "pgdyno: WARNING:  the server is not proven to run here: the server does not show its data directory "
        "to this role; state its host's resources with --ram, --cpus and --storage\n"
    )
    assert "Hidden from this role\n  the file and line of each setting" in done.stdout
    assert "Host\n  unknown: the server is not proven to run here" in done.stdout


def test_text_of_a_stopped_server_shows_its_files(scratch_pg18: RealServer) -> None:
    scratch_pg18.stop()
    done = pgdyno("--pgdata", str(scratch_pg18.data_directory))
    assert done.returncode == 0
    assert "Server\n  unknown: not running: there is no postmaster.pid\n" in done.stdout
    assert f"{scratch_pg18.data_directory}/postgresql.conf:" in done.stdout


def test_the_embedded_server_is_started_inspected_and_gone(
    pg18_bin: Path, monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory
) -> None:
    home = Path("/tmp") / f"pgdyno-home-{os.getpid()}"
    monkeypatch.setenv("PGDYNO_HOME", str(home))
    with contextlib.ExitStack() as cleanup:
        cleanup.callback(subprocess.run, ["rm", "-r", str(home)], check=True)
        found = document(["--embedded"])
        assert found["server"]["version_num"] // 10_000 == 18
        assert found["server"]["is_colocated"]["value"] is True
        assert list((home / "scratch").iterdir()) == []
        assert "probes" not in found
        probes = document(["--embedded", "--probe"])["probes"]
        assert probes["fsync_8kb_us"]["value"] > 0
        assert list((home / "scratch").iterdir()) == []


REFUSED = """\
pgdyno: ERROR:  could not connect to the server at "127.0.0.1", port 1  (PGD-301)
DETAIL:  Connection refused
HINT:  is the server running, and does it listen on that address? see listen_addresses and port
"""
TWO_SERVERS = """\
pgdyno: ERROR:  --dsn and --embedded name different servers  (PGD-100)
HINT:  give one of them
"""
NO_UNIT = """\
pgdyno: ERROR:  --ram 16 is only 16 bytes  (PGD-102)
DETAIL:  a server needs more
HINT:  add a unit, e.g. 16GB
"""
NO_NUMBER = """\
pgdyno: ERROR:  invalid value for parameter "--ram": "much"  (PGD-102)
DETAIL:  a number is required
"""
NO_DIRECTORY = """\
pgdyno: ERROR:  "/nonexistent" is not a data directory  (PGD-305)
DETAIL:  there is no such directory
HINT:  Debian keeps data in /var/lib/postgresql/VERSION/CLUSTER, Red Hat in /var/lib/pgsql/data
"""


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["--dsn", "host=127.0.0.1 port=1"], 1, REFUSED),
        (["--dsn", "x=1", "--embedded"], 2, TWO_SERVERS),
        (["--ram", "16"], 2, NO_UNIT),
        (["--ram", "much"], 2, NO_NUMBER),
        (["--pgdata", "/nonexistent"], 1, NO_DIRECTORY),
    ],
)
def test_bad_input_is_one_clear_message_on_stderr(arguments: list[str], code: int, message: str) -> None:
    done = pgdyno(*arguments)
    assert (done.returncode, done.stdout, done.stderr) == (code, "", message)


def test_a_password_on_the_command_line_is_warned_about_and_never_printed() -> None:
    done = pgdyno("--dsn", "postgresql://app:s3cr3t-Pa55@127.0.0.1:1/x")
    warning = done.stderr.splitlines()[0]
    assert warning == (
        "pgdyno: WARNING:  other users can read a password on a command line; "
        "use PGPASSWORD or ~/.pgpass instead"
    )
    assert "s3cr3t" not in done.stdout + done.stderr


@pytest.mark.debian
@pytest.mark.root
def test_debians_cluster_is_inspected_with_its_configuration_in_etc(debian15: DebianCluster) -> None:
    found = inspect_dsn(debian15.dsn, NOTHING_STATED)
    server = server_of(found).server
    assert server.major == 15
    assert server.is_colocated.value is True
    assert server.data_directory.value == str(debian15.data_directory)
    shared_buffers = server.settings["shared_buffers"]
    assert shared_buffers.display() == "64MB"
    assert shared_buffers.sourcefile == str(debian15.configuration_directory / "conf.d/site.conf")
    assert shared_buffers.sourceline == 1
    same = inspect_data_directory(debian15.data_directory, NOTHING_STATED)
    assert server_of(same).server.version == server.version
    assert same.data_directory is not None
    assert not same.data_directory.settings.or_else(())  # all of them are in /etc


def test_loading_the_command_needs_no_numerics(pg18: RealServer) -> None:
    """Numpy alone would take longer to import than all of inspect takes to run."""
    code = (
        "import sys; from pgdyno.cli.inspect import command;"
        f"command.main(['--dsn', {pg18.dsn!r}], standalone_mode=False);"
        "heavy = {'numpy', 'scipy', 'pydantic', 'rich', 'jinja2'} & set(sys.modules);"
        "sys.exit(f'imported: {sorted(heavy)}' if heavy else 0)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
