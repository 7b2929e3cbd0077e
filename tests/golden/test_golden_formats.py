"""Golden files: a plan in every format, reviewed by people; ``pytest --snapshot-update`` rewrites them."""

from __future__ import annotations

import pytest
from syrupy.assertion import SnapshotAssertion
from syrupy.extensions.single_file import SingleFileSnapshotExtension, WriteMode
from tests.fix_plan import rich_plan, rich_server

from pgdyno.plan import formats


class _Text(SingleFileSnapshotExtension):
    """A golden file that holds a format's text and nothing else."""

    _write_mode = WriteMode.TEXT
    file_extension = "txt"


@pytest.mark.parametrize("name", formats.names())
def test_plan(name: str, snapshot: SnapshotAssertion) -> None:
    assert formats.load(name).render(rich_plan(), rich_server()) == snapshot(extension_class=_Text)
