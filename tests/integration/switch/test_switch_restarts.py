"""A server that does not run from the new programs after its restart has the former ones."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.fix_debian import DebianCluster
from tests.fix_home import pgdyno
from tests.integration.switch.programs import PROGRAMS, Switch, described, pg_ctl_conf, running

pytestmark = [pytest.mark.server, pytest.mark.debian, pytest.mark.root]


def test_programs_that_do_not_come_up_are_taken_back(
    debian15: DebianCluster, other: Path, switch: Switch
) -> None:
    """They run a scratch server, and then not this one: it finds a file that they alone refuse."""
    before = described(pg_ctl_conf(debian15))
    program = other / "bin/postgres"
    program.rename(other / "bin/real")
    program.write_text(
        "#!/bin/bash\n"
        f'case "$*" in *{debian15.data_directory}*) echo "not this one" >&2; exit 1;; esac\n'
        f'exec -a "{program}" "{other}/bin/real" "$@"\n'
    )
    program.chmod(0o755)
    code, _, errors = switch("switch", "--to", str(other))
    assert code == 1, errors
    assert (
        "the server did not start with the new programs; it runs with the original programs again" in errors
    )
    assert "not this one" in errors
    assert described(pg_ctl_conf(debian15)) == before
    assert running(debian15) == PROGRAMS / "bin/postgres"


def test_a_restart_by_other_means_is_noticed(debian15: DebianCluster, other: Path, home: Path) -> None:
    """A restart command that does not read pg_ctl.conf starts the former programs once more."""
    before = described(pg_ctl_conf(debian15))
    command = (
        f"setpriv --reuid=postgres --regid=postgres --init-groups {PROGRAMS}/bin/pg_ctl restart -D "
        f"{debian15.data_directory} -w -l {debian15.directory}/log"
    )
    done = pgdyno(
        "switch", "--dsn", debian15.dsn, "--to", str(other), "--allow-restart", "--restart-command", command,
        PGDYNO_HOME=str(home),
    )  # fmt: skip
    assert done.returncode == 1, done.stderr
    assert "1 changes did not take effect" in done.stderr
    assert f"in force {PROGRAMS}/bin" in done.stderr
    assert "the restart command must stop, then start it: pg_ctl restart starts the old" in done.stderr
    assert described(pg_ctl_conf(debian15)) == before
