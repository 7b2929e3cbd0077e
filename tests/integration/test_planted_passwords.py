"""A password in each channel into pgdyno; none comes out in any output or file.

Each is a text of its own, found again by its last word whatever quoting stands around it.
"""

from __future__ import annotations

import json
import shlex
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.parse import quote

import pytest
from tests.fix_home import Run, pgdyno
from tests.fix_servers import RealServer, running_server
from tests.integration.journal_support import pg_ctl_restart, under_pg_ctl

from pgdyno.host.host import Host
from pgdyno.plan.advise import AdviseRequest, advise, format_names
from pgdyno.plan.engine.resources import Figures
from pgdyno.plan.inspection.inspect import InspectedServer, inspect_dsn

pytestmark = pytest.mark.server

PASSWORD = "it's %41 zq7login"  # noqa: S105 — of a role that this file makes
WRONG = "it's \\ zq7wrong"
CORES = ("zq7login", "zq7wrong", "zq7setting", "zq7statement", "zq7environment", "zq7role")
QUERY = "SELECT count(*) FROM pg_class WHERE relname <> 'p'"
Logged = tuple[str, dict[str, str]]


@pytest.fixture(scope="module")
def server(pg18_bin: Path) -> Iterator[RealServer]:
    """A server with secrets in its settings, environment, roles and running statements."""
    configuration = (
        "primary_conninfo = 'host=db user=u password=zq7setting'\n"
        "archive_command = 'AWS_SECRET=zq7setting wal-push %p'\n"
        "ssl_passphrase_command = 'echo zq7setting'\n"
        "app.jwt_secret = 'zq7setting'\n"
        "shared_preload_libraries = 'pg_stat_statements'\n"
    )
    with running_server(pg18_bin, configuration) as started, pytest.MonkeyPatch.context() as patch:
        patch.setenv("SECRET_OF_SERVER", "zq7environment")
        with under_pg_ctl(started):
            started.execute("CREATE EXTENSION pg_stat_statements")
            quoted = PASSWORD.replace(chr(39), chr(39) * 2)
            started.execute(f"CREATE ROLE loader SUPERUSER LOGIN PASSWORD '{quoted}'")
            started.execute(f"CREATE ROLE asking LOGIN PASSWORD '{quoted}' IN ROLE pg_monitor")
            started.execute("ALTER ROLE loader SET app.token = 'zq7role'")
            started.execute("SELECT 'zq7statement' AS \"zq7statement\"")
            yield started


def found_in(*outputs: str | bytes) -> set[str]:
    """Return the planted words in texts."""
    texts = [output.encode() if isinstance(output, str) else output for output in outputs]
    return {core for core in CORES if any(core.encode() in text for text in texts)}


def found_below(directory: Path) -> set[tuple[str, str]]:
    """Return the planted words in files, and in what is packed in them."""
    found = set()
    for path in directory.rglob("*"):
        if path.is_file():
            found |= {(path.name, core) for core in found_in(path.read_bytes())}
            if path.suffix == ".zip":
                with zipfile.ZipFile(path) as archive:
                    members = [archive.read(name) for name in archive.namelist()]
                found |= {(path.name, core) for core in found_in(*members)}
    return found


def in_dsn(server: RealServer, password: str, _: Path) -> Logged:
    quoted = password.replace("\\", "\\\\").replace("'", "\\'")
    return f"{server.tcp_dsn_for('loader')} password='{quoted}'", {}


def in_uri(server: RealServer, password: str, _: Path) -> Logged:
    return f"postgresql://loader:{quote(password, safe='')}@127.0.0.1:{server.port}/postgres", {}


def in_environment(server: RealServer, password: str, _: Path) -> Logged:
    return server.tcp_dsn_for("loader"), {"PGPASSWORD": password}


def in_password_file(server: RealServer, password: str, directory: Path) -> Logged:
    file = directory / "pgpass"
    file.write_text("*:*:*:loader:{}\n".format(password.replace("\\", "\\\\")))
    file.chmod(0o600)
    return server.tcp_dsn_for("loader"), {"PGPASSFILE": str(file)}


def in_service(server: RealServer, password: str, directory: Path) -> Logged:
    file = directory / "services"
    file.write_text(
        f"[mine]\nhost=127.0.0.1\nport={server.port}\nuser=loader\ndbname=postgres\npassword={password}\n"
    )
    return "service=mine", {"PGSERVICEFILE": str(file)}


@pytest.mark.parametrize("channel", [in_dsn, in_uri, in_environment, in_password_file, in_service])
def test_a_password_to_log_in_with_comes_out_nowhere(
    channel: Callable[[RealServer, str, Path], Logged], server: RealServer, tmp_path: Path
) -> None:
    kept = tmp_path / "home"
    kept.mkdir(mode=0o755)
    for password, code in ((PASSWORD, 0), (WRONG, 1)):
        dsn, environment = channel(server, password, tmp_path)
        done = pgdyno("inspect", "--json", "--dsn", dsn, **{**environment, "PGDYNO_HOME": str(kept)})
        assert done.returncode == code, done.stderr
        assert not found_in(done.stdout, done.stderr)
    assert not found_below(kept)


@pytest.mark.parametrize(
    "dsn",
    [
        "postgresql://loader:zq7wrong@127.0.0.1:port/postgres",
        "host=127.0.0.1 password=zq7wrong nonsense",
        "host=127.0.0.1 password='zq7wrong",
        "postgresql://loader:zq7wrong@[::1/postgres",
        "service=none password=zq7wrong",
    ],
)
def test_a_password_in_what_is_no_connection_string_comes_out_nowhere(dsn: str) -> None:
    done = pgdyno("inspect", "--dsn", dsn)
    assert done.returncode in {1, 2}, done.stderr
    assert "ERROR:" in done.stderr
    assert not found_in(done.stdout, done.stderr)


def test_advice_has_no_password_in_any_format(server: RealServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PGPASSWORD", PASSWORD)
    found = inspect_dsn(server.tcp_dsn_for("loader"), Figures())
    assert isinstance(found.host, Host)
    assert isinstance(found.inspected, InspectedServer)
    for name in format_names():
        text = advise(found.host, found.inspected.server, AdviseRequest(format_name=name)).text
        assert text
        assert not found_in(text), name


def test_no_command_writes_or_keeps_a_password(server: RealServer, home: Path) -> None:
    dsn, environment = in_environment(server, PASSWORD, home)

    def run(*arguments: str) -> Run:
        done = pgdyno(*arguments, **environment)
        assert done.returncode == 0, done.stderr
        assert not found_in(done.stdout, done.stderr), arguments
        return done

    at = ("--dsn", dsn)
    run("inspect", *at)
    run("advise", "--format", "conf", *at)
    run("levers", "--json", *at)
    plain = ("--dsn", dsn.replace("user=loader", "user=asking"))  # no superuser plans what others have made
    run("explain-degree", *plain, QUERY)
    restart = ("--allow-restart", "--restart-command", shlex.join(pg_ctl_restart(server)))
    run("apply", *at, *restart)
    run("status", "--json", *at)
    run("revert", "--all", *at, *restart)
    load = ("--allow-load", "--query", QUERY, "--clients", "1", "--blocks", "1", "--block", "300ms")
    measured = json.loads(run("run", "parallel-degree", *plain, *load, "--json").stdout)["experiment"]
    run("report", measured)
    run("bundle", "export", measured, "--output", str(home / "planted.zip"))
    assert not found_below(home)
