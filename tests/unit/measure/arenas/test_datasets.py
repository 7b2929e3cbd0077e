"""Whether a data set is there for the account that servers run as."""

from __future__ import annotations

import os
from pathlib import Path

from pgdyno.measure.arenas.datasets import is_loaded
from pgdyno.postgres.process.account import Account
from pgdyno.postgres.process.installation import Installation
from pgdyno.postgres.process.workspace import Workspace
from pgdyno.workload.bundled._pgbench import PGBENCH_DATA

INSTALLATION = Installation(Path("/opt/pg/bin"), "18.6", 18, "/opt/pg/bin")


def test_a_data_set_counts_for_the_account_that_has_loaded_it(tmp_path: Path) -> None:
    ours, theirs = (
        Workspace(tmp_path, Account("any", uid, uid, is_other=False))
        for uid in (os.geteuid(), os.geteuid() + 1)
    )
    assert not is_loaded(ours, PGBENCH_DATA, INSTALLATION)
    (tmp_path / f"datasets/pg18.6-checksums-{PGBENCH_DATA.key}").mkdir(parents=True)
    assert is_loaded(ours, PGBENCH_DATA, INSTALLATION)
    assert not is_loaded(theirs, PGBENCH_DATA, INSTALLATION)
