"""Servers that do not answer as PostgreSQL does: a proxy, a fork, or somebody with bad intent."""

from __future__ import annotations

import contextlib
import dataclasses

import pytest
from tests.fix_servers import RealServer

from pgdyno.base.errors import ServerError
from pgdyno.postgres.connection.connection import Connection, connect
from pgdyno.postgres.guc import Guc
from pgdyno.postgres.inspection import inspection
from pgdyno.postgres.inspection.settings import read_settings
from pgdyno.postgres.server import Server

pytestmark = pytest.mark.server


def inspected(server: RealServer, monkeypatch: pytest.MonkeyPatch, **told: str | None) -> Server:
    """Inspect a server that tells these settings; None: it does not show it."""

    def settings(connection: Connection) -> dict[str, Guc]:
        gucs = read_settings(connection)
        for name, text in told.items():
            guc = gucs.pop(name)
            if text is not None:
                gucs[name] = dataclasses.replace(guc, setting=text)
        return gucs

    monkeypatch.setattr(inspection, "read_settings", settings)
    with contextlib.closing(connect(server.dsn)) as connection:
        return inspection.inspect_server(connection)


@pytest.mark.parametrize(
    "version",
    [
        "18.6", "19devel", "17beta2", "18rc1", "9.6.24", "15.18 (Debian 15.18-0+deb12u1)",
        "16.4 (Ubuntu 16.4-1.pgdg22.04+1)", "16.4.1 (Debian 16.4.1-1.bullseye)",
        "17.2 - Percona Server for PostgreSQL 17.2.1",
        "15.2-YB-2.25.0.0-b0", "13.4 OnGres Inc.", "12.12",
    ],
)  # fmt: skip
def test_versions_of_packages_and_forks_are_taken_as_they_are(
    pg18: RealServer, monkeypatch: pytest.MonkeyPatch, version: str
) -> None:
    assert inspected(pg18, monkeypatch, server_version=version).version == version


@pytest.mark.parametrize(
    ("version", "shown"),
    [
        ("", ""),
        ("eighteen", "eighteen"),
        ('18.1" } resource "x" {', '18.1" } resource "x" {'),
        ("18.1 {{ lookup('pipe', 'id') }}", "18.1 {{ lookup('pipe', 'id') }}"),
        ("18.1 $(id)", "18.1 $(id)"),
        ("18.1\x1b[2J", "18.1\\x1b[2J"),
        ("18.1\n", "18.1\\n"),
        ("\u0661\u0668", "\\u0661\\u0668"),
    ],
)
def test_another_version_is_refused(
    pg18: RealServer, monkeypatch: pytest.MonkeyPatch, version: str, shown: str
) -> None:
    with pytest.raises(ServerError) as caught:
        inspected(pg18, monkeypatch, server_version=version)
    assert caught.value.message == f'the server reports an invalid value for "server_version": "{shown}"'
    assert caught.value.detail == "PostgreSQL reports 18.6 or 18.6 (Debian 18.6-1)"
    assert caught.value.hint == "connect to the server directly if there is a proxy in between"


@pytest.mark.parametrize("number", [None, "", "18.6", "-1", "\u00b2", "x"])
def test_a_version_that_is_no_number_is_refused(
    pg18: RealServer, monkeypatch: pytest.MonkeyPatch, number: str | None
) -> None:
    with pytest.raises(ServerError, match=r'^the server reports an invalid value for "server_version_num": '):
        inspected(pg18, monkeypatch, server_version_num=number)


@pytest.mark.parametrize(
    "path", [None, "", "/etc/it's/postgresql.conf", "C:/Program Files/PostgreSQL/18/data/postgresql.conf"]
)
def test_a_configuration_file_is_an_absolute_path_or_hidden(
    pg18: RealServer, monkeypatch: pytest.MonkeyPatch, path: str | None
) -> None:
    settings = inspected(pg18, monkeypatch, config_file=path).settings
    assert (settings["config_file"].setting if "config_file" in settings else None) == path


@pytest.mark.parametrize(
    ("path", "shown"),
    [
        ("postgresql.conf", "postgresql.conf"),
        ("{{ lookup('pipe', 'id') }}/postgresql.conf", "{{ lookup('pipe', 'id') }}/postgresql.conf"),
        ("/etc/\npostgresql.conf", "/etc/\\npostgresql.conf"),
        ("/etc/\x9b31m", "/etc/\\x9b31m"),
    ],
)
def test_another_configuration_file_is_refused(
    pg18: RealServer, monkeypatch: pytest.MonkeyPatch, path: str, shown: str
) -> None:
    with pytest.raises(ServerError) as caught:
        inspected(pg18, monkeypatch, config_file=path)
    assert caught.value.message == f'the server reports an invalid value for "config_file": "{shown}"'
    assert caught.value.detail == "PostgreSQL reports an absolute path"
