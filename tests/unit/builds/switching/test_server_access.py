"""How a server is reached, and what undoes its changes, from what the command line says."""

from __future__ import annotations

from pathlib import Path

import pytest

from pgdyno.base.errors import ConnectionFailedError, DataDirectoryError, UsageError
from pgdyno.builds.switching.server_access import server_access


@pytest.fixture(autouse=True)
def _home(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PGDYNO_HOME", str(tmp_path))
    monkeypatch.setenv("PGHOST", "db9")


def test_the_command_that_reverts_names_the_server_without_its_password() -> None:
    access = server_access("postgresql://app:s3cret@db1/shop")
    assert access.revert_command == "pgdyno revert --dsn 'user=app dbname=shop host=db1'"
    assert access.addresses == ("host=db1 port=5432",)


def test_without_a_name_the_environment_leads() -> None:
    access = server_access(None)
    assert (access.revert_command, access.addresses) == ("pgdyno revert", ("host=db9 port=5432",))


def test_a_data_directory_alone_leads_to_its_own_server_and_no_other(tmp_path: Path) -> None:
    (tmp_path / "PG_VERSION").write_text("18\n")
    access = server_access(None, data_directory=tmp_path)
    assert (access.revert_command, access.addresses) == (f"pgdyno revert --pgdata {tmp_path}", ())
    with pytest.raises(ConnectionFailedError) as caught:
        access.connect()
    assert caught.value.message == f'the server of data directory "{tmp_path}" does not accept connections'
    assert caught.value.detail == "not running: there is no postmaster.pid"
    assert caught.value.hint == "start it, or name its running server with --dsn"


def test_a_directory_without_data_is_said(tmp_path: Path) -> None:
    with pytest.raises(DataDirectoryError, match="is not a data directory"):
        server_access(None, data_directory=tmp_path / "nowhere").connect()


def test_a_restart_command_that_cannot_be_split_is_said() -> None:
    with pytest.raises(UsageError) as caught:
        server_access(None, "systemctl restart 'postgresql")
    assert caught.value.message == 'could not read --restart-command "systemctl restart \'postgresql"'
    assert caught.value.detail == "No closing quotation"
