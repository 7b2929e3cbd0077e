"""The journal of a test."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from pgdyno.apply.ledger.log import Journal, open_journal


@pytest.fixture
def journal(tmp_path: Path) -> Iterator[Journal]:
    with open_journal(tmp_path / "journal") as opened:
        yield opened
