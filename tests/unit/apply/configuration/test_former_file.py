"""A receipt's copy of a file is that file, or an error."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pgdyno.apply.configuration.foreign_edits import former_content, kept
from pgdyno.base.errors import StorageError


@given(st.binary())
def test_the_bytes_come_back(content: bytes) -> None:
    assert former_content(kept(content)) == content


def test_a_file_that_could_not_be_read_is_not_an_empty_one() -> None:
    assert former_content({"setting": "4096"}) is None


def test_other_bytes_than_those_put_in_are_never_written_back() -> None:
    with pytest.raises(StorageError, match="does not match its checksum"):
        former_content(kept(b"work_mem = 4MB\n") | {"auto_conf": kept(b"work_mem = 5MB\n")["auto_conf"]})
