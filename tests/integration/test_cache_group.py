"""A real server's processes are found, and moved into a group of tasks: a file, for want of such a kernel."""

from __future__ import annotations

from pathlib import Path

import psycopg
import pytest
from tests.fix_servers import RealServer
from tests.unit.apply.resctrl import ALL, RESCTRL, FakeResctrl

from pgdyno.apply.writers.cache_group import CacheGroupWriter
from pgdyno.host.cache_allocation import OF_GROUP

# Without those that come and go: a worker of autovacuum, or the session of a test that has just ended.
LASTING = """
SELECT pid FROM pg_stat_activity
WHERE backend_type NOT IN ('client backend', 'autovacuum worker') OR pid = pg_backend_pid()
"""


@pytest.mark.server
def test_all_of_a_servers_processes_are_moved_and_nobody_elses(
    pg18: RealServer, scratch_pg18: RealServer, tmp_path: Path
) -> None:
    for name in ("proc", "tmp", "dev"):
        (tmp_path / name).symlink_to(f"/{name}")  # the processes are this machine's
    (tmp_path / RESCTRL.lstrip("/")).mkdir(parents=True)
    (tmp_path / f"{RESCTRL}/info".lstrip("/")).mkdir()
    writer = CacheGroupWriter(tmp_path, resctrl=WithoutMounts(tmp_path))
    with psycopg.connect(pg18.dsn) as session:
        listed = {row[0] for row in session.execute(LASTING)}
        writer.write(OF_GROUP, f"L3CODE:0=fffff L3DATA:0=ffff0 for {pg18.data_directory}")
        moved = {int(task) for task in (tmp_path / f"{RESCTRL}/pgdyno/tasks".lstrip("/")).read_text().split()}
        assert {pg18.pid, *listed} <= moved
        assert scratch_pg18.pid not in moved
        effective = writer.verify(OF_GROUP) or ""
    assert effective == f"L3CODE:0=fffff L3DATA:0=ffff0 for {pg18.data_directory.resolve()}"


class WithoutMounts(FakeResctrl):
    """Makes groups with files; nothing is mounted in the real /proc."""

    def make_group(self, path: str) -> None:
        group = self.root / path.lstrip("/")
        group.mkdir()
        (group / "schemata").write_text(f"{ALL}\n")
        (group / "tasks").touch()
