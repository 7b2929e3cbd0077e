"""A running cluster of Debian's is switched to other programs, and back."""

from __future__ import annotations

from pathlib import Path

import psycopg
import pytest
from tests.fix_debian import VERSION, DebianCluster
from tests.fix_home import pgdyno
from tests.integration.switch.programs import PROGRAMS, Switch, address, described, pg_ctl_conf, running

pytestmark = [pytest.mark.server, pytest.mark.debian, pytest.mark.root]


def test_a_cluster_is_switched_and_reverted(debian15: DebianCluster, other: Path, switch: Switch) -> None:
    debian15.execute("CREATE TABLE kept AS SELECT generate_series(1, 1000) AS id")
    debian15.execute("CREATE EXTENSION pgcrypto")
    debian15.execute('CREATE DATABASE "odd \' name"')
    before = described(pg_ctl_conf(debian15))

    code, said, errors = switch("switch", "--to", str(other))
    assert code == 0, errors
    assert running(debian15) == other / "bin/postgres"
    assert said.splitlines()[0] == f"1 change in force on {address(debian15)}, after a restart"
    assert f"pg_ctl_options = '-p {other}/bin/postgres'" in pg_ctl_conf(debian15).read_text()
    assert debian15.execute("SELECT count(*), encode(digest('a', 'md5'), 'hex') FROM kept") == [
        (1000, "0cc175b9c0f1b6a831c399e269772661")
    ]

    code, said, errors = switch("status", restart=False)
    assert code == 0, errors
    assert f"in force: {other}/bin" in said

    code, said, errors = switch("revert")
    assert code == 0, errors
    assert running(debian15) == PROGRAMS / "bin/postgres"
    assert described(pg_ctl_conf(debian15)) == before
    assert switch("status", restart=False)[1].startswith("Nothing is applied.")


def test_other_options_of_pg_ctl_stay(debian15: DebianCluster, other: Path, switch: Switch) -> None:
    text = pg_ctl_conf(debian15).read_text().replace("''", "'-t 300'  # slow disk")
    pg_ctl_conf(debian15).write_text(text)
    assert switch("switch", "--to", str(other))[0] == 0
    assert (
        f"pg_ctl_options = '-t 300 -p {other}/bin/postgres'  # slow disk" in pg_ctl_conf(debian15).read_text()
    )
    assert switch("revert")[0] == 0
    assert pg_ctl_conf(debian15).read_text() == text


def test_nothing_is_changed_by_a_dry_run_nor_without_permission_to_restart(
    debian15: DebianCluster, other: Path, switch: Switch, home: Path
) -> None:
    before = described(pg_ctl_conf(debian15))
    code, said, errors = switch("switch", "--to", str(other), "--dry-run", restart=False)
    assert code == 0, errors
    assert said.splitlines()[:3] == [
        f"Would run 1 statement on {address(debian15)}; needs 1 restart",
        "",
        f"    in {pg_ctl_conf(debian15)}: pg_ctl_options = '-p {other}/bin/postgres'",
    ]
    assert described(pg_ctl_conf(debian15)) == before
    assert running(debian15) == PROGRAMS / "bin/postgres"
    assert not (home / "journal").exists()

    code, _, errors = switch("switch", "--to", str(other), restart=False)
    assert code == 4
    assert "1 of 1 changes need a restart, which was not allowed" in errors
    assert running(debian15) == PROGRAMS / "bin/postgres"


def test_root_acts_as_the_owner_where_nobody_else_is_let_in(
    debian15: DebianCluster, other: Path, home: Path
) -> None:
    """As Debian sets it up: over the socket everybody is who the kernel says he is."""
    debian15.execute("CREATE DATABASE another")
    hba = debian15.configuration_directory / "pg_hba.conf"
    hba.write_text("local all all peer\n")
    debian15.control("reload")
    with pytest.raises(psycopg.OperationalError, match="Peer authentication failed"):
        debian15.execute("SELECT")
    restart = f"pg_ctlcluster {VERSION} {debian15.name} restart"
    for command in (("switch", "--to", str(other)), ("status",), ("revert",)):
        how = () if command == ("status",) else ("--allow-restart", "--restart-command", restart)
        done = pgdyno(*command, "--pgdata", str(debian15.data_directory), *how, PGDYNO_HOME=str(home))
        assert done.returncode == 0, done.stderr
    assert running(debian15) == PROGRAMS / "bin/postgres"
