"""Where scratch servers of tests live, and what they run: PostgreSQL 18 of the embedded wheel."""

from __future__ import annotations

from pathlib import Path

import pytest

from pgdyno.postgres.process.account import current_account
from pgdyno.postgres.process.installation import Installation, installation_at
from pgdyno.postgres.process.workspace import Workspace


@pytest.fixture
def workspace(home: Path) -> Workspace:
    """A workspace of the test's own."""
    return Workspace(home, current_account())


@pytest.fixture
def installation(pg18_bin: Path) -> Installation:
    """What its servers run."""
    return installation_at(pg18_bin, current_account())
