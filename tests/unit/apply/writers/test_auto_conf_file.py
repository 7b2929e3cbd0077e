"""The file of a server that is down gets its former entries, and its former bytes if nobody else wrote."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.apply.data_directory import data_directory

from pgdyno.apply.configuration.auto_conf import Entry, parse, render, with_value
from pgdyno.apply.session.server_files import ServerFiles
from pgdyno.apply.writers.auto_conf_file import AutoConfFileWriter

BY_HAND = b"# by hand\nwork_mem = 6MB\njit = off   # slow here\n"
KEYS = st.sampled_from(["work_mem", "jit", "shared_buffers"])


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("data")


def writer(directory: Path, content: bytes) -> AutoConfFileWriter:
    return AutoConfFileWriter(ServerFiles(data_directory(directory, content)))


@given(order=st.permutations(["work_mem", "jit", "shared_buffers"]), count=st.integers(0, 3))
def test_restoring_every_key_gives_the_former_bytes_wherever_it_was_stopped(
    directory: Path, order: list[str], count: int
) -> None:
    """As ALTER SYSTEM would have left the file after ``count`` of three changes."""
    one = writer(directory, BY_HAND)
    found = {key: one.read(key) for key in order}
    entries = parse(BY_HAND)
    for key in order[:count]:
        entries = with_value(entries, key, "1")
    if count:
        (directory / "postgresql.auto.conf").write_bytes(render(entries))
    for _ in range(2):
        for key in reversed(order):
            one.restore(key, found[key])
        assert one.files.read_auto_conf() == BY_HAND


def test_entries_of_others_stay(directory: Path) -> None:
    one = writer(directory, BY_HAND)
    found = one.read("work_mem")
    changed = with_value(with_value(parse(BY_HAND), "work_mem", "8MB"), "port", "5433")
    (directory / "postgresql.auto.conf").write_bytes(render(changed))
    one.restore("work_mem", found)
    assert parse(one.files.read_auto_conf()) == (
        Entry("jit", "off"),
        Entry("port", "5433"),
        Entry("work_mem", "6MB"),
    )


def test_a_key_that_was_not_there_is_taken_out(directory: Path) -> None:
    one = writer(directory, b"")
    found = one.read("work_mem")
    one.write("work_mem", "8MB")
    assert one.read("work_mem").value == "8MB"
    one.restore("work_mem", found)
    assert one.read("work_mem").value is None
    assert one.verify("work_mem") is None
