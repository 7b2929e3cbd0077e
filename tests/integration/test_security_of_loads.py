"""A load's connections to a server of somebody's are as secure as pgdyno's own: PostgreSQL 15 with TLS."""

from __future__ import annotations

import signal
import subprocess
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import psycopg
import pytest
from tests.fix_servers import RealServer, as_unprivileged, running_server

from pgdyno.base.errors import GeneratorFailedError, RefusedError
from pgdyno.cli.output import Lines
from pgdyno.load._contract import Target
from pgdyno.load.discovery import find_driver
from pgdyno.load.driver import conninfo
from pgdyno.load.process import Command, run_to_end
from pgdyno.measure.arenas.attached_server import find_remote_server
from pgdyno.measure.bundled_study import Sizing
from pgdyno.measure.conditions import Conditions
from pgdyno.studies.attached import measure_clients_of
from pgdyno.studies.bundled import clients as study_file

pytestmark = pytest.mark.server

PASSWORD = "over TLS alone"  # noqa: S105 — of a role that lives as long as these tests
ACCESS = """
local   all all                     trust
hostssl all certified 127.0.0.1/32  cert
hostssl all guarded   127.0.0.1/32  scram-sha-256
hostssl all clear     127.0.0.1/32  password
"""
CERTIFICATES = """
    set -e; cd "$0"
    printf 'subjectAltName=DNS:localhost\\nbasicConstraints=CA:FALSE\\n' > extensions
    openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 -subj /CN=authority \\
        -keyout authority.key -out authority.crt
    for name in localhost certified; do
        openssl req -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -subj /CN=$name \\
            -keyout $name.key -out $name.csr
        openssl x509 -req -in $name.csr -CA authority.crt -CAkey authority.key -CAcreateserial -days 2 \\
            -extfile extensions -out $name.crt
        chmod 600 $name.key
    done
"""


@pytest.fixture(scope="module")
def server(pg15_bin: Path) -> Iterator[RealServer]:
    """Return a server that takes connections over TCP by TLS alone."""
    with running_server(pg15_bin) as server:
        argv = [*as_unprivileged(), "sh", "-c", CERTIFICATES, str(server.directory)]
        subprocess.run(argv, capture_output=True, check=True)
        server.append_configuration(
            "ssl = on\nssl_cert_file = '../localhost.crt'\nssl_key_file = '../localhost.key'\n"
            "ssl_ca_file = '../authority.crt'\n"
        )
        (server.data_directory / "pg_hba.conf").write_text(ACCESS)
        server.restart()
        server.execute("CREATE ROLE certified LOGIN")
        server.execute(f"CREATE ROLE guarded LOGIN PASSWORD '{PASSWORD}'")
        server.execute(f"CREATE ROLE clear LOGIN PASSWORD '{PASSWORD}'")
        yield server


@pytest.fixture(autouse=True)
def no_files_of_the_user(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))


def dsn(server: RealServer, role: str, more: str = "") -> str:
    return f"host=localhost hostaddr=127.0.0.1 port={server.port} user={role} dbname=postgres {more}"


def connected(dsn: str, directory: Path) -> None:
    """Let the driver connect as it does to load the server. Raises: GeneratorFailedError with its words."""
    found, environment = find_remote_server(dsn)
    target = conninfo(Target(found.host, found.port, found.user, "postgres"))
    argv = (str(find_driver(directory).program), "run", "query", target, "--option=sql=SELECT 1", "-t", "1")
    run_to_end(Command(argv, signal.SIGTERM, environment), list, directory / "output", timeout_s=60)


def test_tls_that_was_negotiated_is_required_of_the_load(server: RealServer, tmp_path: Path) -> None:
    guarded = dsn(server, "guarded", f"password='{PASSWORD}'")
    _, environment = find_remote_server(guarded)
    assert environment == {"PGHOSTADDR": "127.0.0.1", "PGPASSWORD": PASSWORD, "PGSSLMODE": "require"}
    connected(guarded, tmp_path)
    connected(dsn(server, "clear", f"password='{PASSWORD}'"), tmp_path)


def test_a_load_checks_the_server_as_pgdyno_does(server: RealServer, tmp_path: Path) -> None:
    authority = server.directory / "authority.crt"
    strict = f"sslmode=verify-full sslrootcert={authority} channel_binding=require require_auth=scram-sha-256"
    connected(dsn(server, "guarded", f"password='{PASSWORD}' {strict}"), tmp_path)
    home = tmp_path / ".postgresql"  # libpq's own place
    home.mkdir()
    (home / "root.crt").write_bytes(authority.read_bytes())
    _, environment = find_remote_server(dsn(server, "guarded", f"password='{PASSWORD}'"))
    assert environment["PGSSLROOTCERT"] == str(home / "root.crt")


def test_a_load_shows_the_certificate_of_the_control_connection(server: RealServer, tmp_path: Path) -> None:
    files = [server.directory / f"certified.{kind}" for kind in ("crt", "key")]
    certified = dsn(server, "certified", "sslcert={} sslkey={}".format(*files))
    connected(certified, tmp_path)
    with psycopg.connect(certified) as connection:
        assert connection.execute(
            "SELECT client_dn FROM pg_stat_ssl WHERE pid = pg_backend_pid()"
        ).fetchone() == ("/CN=certified",)


def test_what_a_load_cannot_do_is_refused_before_anything_is_loaded(server: RealServer, home: Path) -> None:
    server.execute("ALTER ROLE guarded CREATEDB")
    server.execute("GRANT pg_checkpoint TO guarded")
    before = server.execute("SELECT datname FROM pg_database ORDER BY 1")
    authority = server.directory / "authority.crt"
    strict = f"password='{PASSWORD}' sslrootcert={authority} sslcrl=/nonexistent.crl"
    sizing = Sizing(clients=1)
    conditions = Conditions(None, {}, replace(study_file.STUDY.design, rounds=1))
    with pytest.raises(RefusedError) as caught:
        measure_clients_of(dsn(server, "guarded", strict), sizing, conditions, Lines())
    assert caught.value.message == (
        "pgdyno-driver does not support the connection parameter sslcrl=/nonexistent.crl"
    )
    assert server.execute("SELECT datname FROM pg_database ORDER BY 1") == before


def test_without_what_is_handed_on_the_server_lets_no_load_in(server: RealServer, tmp_path: Path) -> None:
    """What the tests above would miss if the server took anything."""
    place = f"host=127.0.0.1 port={server.port} user=clear dbname=postgres password='{PASSWORD}'"
    argv = (str(find_driver(tmp_path).program), "run", "query", place, "--option=sql=SELECT 1", "-t", "1")
    with pytest.raises(GeneratorFailedError) as caught:
        run_to_end(Command(argv, signal.SIGTERM), list, tmp_path / "output", timeout_s=60)
    assert "no pg_hba.conf entry" in (caught.value.detail or "")
