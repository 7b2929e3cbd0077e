"""Edits of others are told from what is in force; the rows are those that PostgreSQL 15 and 18 show."""

from __future__ import annotations

import pytest

from pgdyno.apply.configuration.foreign_edits import ForeignEdits, foreign_edits
from pgdyno.apply.session.settings import FileEntry
from pgdyno.base.errors import RefusedError
from pgdyno.postgres.guc import Guc

CONF = "/etc/postgresql/15/main/postgresql.conf"
NOT_APPLIED = "setting could not be applied"


def guc(
    name: str,
    setting: str,
    *,
    vartype: str = "integer",
    context: str = "user",
    source: str = "configuration file",
    unit: str | None = None,
    is_pending: bool = False,
) -> Guc:
    return Guc(
        name, setting, unit, vartype, context, source, boot_val=setting, reset_val=setting,
        min_val="0", max_val="2147483647", enumvals=("on", "off"), pending_restart=is_pending,
    )  # fmt: skip


def entry(name: str, value: str, line: int = 1, error: str | None = None) -> FileEntry:
    return FileEntry(CONF, line, name, value, is_applied=error is None, error=error)


def edits(entries: list[FileEntry], *gucs: Guc) -> ForeignEdits:
    return foreign_edits(entries, {one.name: one for one in gucs})


def test_a_server_that_has_loaded_its_files_has_no_edits_waiting() -> None:
    found = edits(
        [
            entry("work_mem", "8MB"),
            entry("datestyle", "iso, mdy"),
            entry("jit", "yes"),
            entry("shared_buffers", "128MB"),
        ],
        guc("work_mem", "8192", unit="kB"),
        guc("DateStyle", "ISO, MDY", vartype="string"),
        guc("jit", "on", vartype="bool"),
        guc("shared_buffers", "16384", unit="8kB", context="postmaster"),
        guc("port", "5432", source="command line"),
    )
    assert found == ForeignEdits()


def test_a_changed_line_is_an_edit_waiting_for_a_reload() -> None:
    found = edits([entry("work_mem", "9MB", 7)], guc("work_mem", "8192", unit="kB"))
    assert found.for_reload == (f"work_mem in {CONF}, line 7",)


def test_a_new_line_is_an_edit_even_with_the_defaults_value() -> None:
    found = edits([entry("work_mem", "4MB", 7)], guc("work_mem", "4096", unit="kB", source="default"))
    assert found.for_reload == (f"work_mem in {CONF}, line 7",)


def test_a_line_that_is_gone_is_an_edit() -> None:
    assert edits([], guc("work_mem", "8192", unit="kB")).for_reload == ("work_mem is no longer in any file",)


def test_of_two_lines_the_last_one_counts() -> None:
    entries = [entry("work_mem", "9MB", 1), entry("work_mem", "8MB", 2)]
    assert edits(entries, guc("work_mem", "8192", unit="kB")) == ForeignEdits()


@pytest.mark.parametrize("source", ["command line", "user", "database", "session", "client"])
def test_a_line_that_something_stronger_hides_is_no_edit(source: str) -> None:
    assert (
        edits([entry("work_mem", "9MB")], guc("work_mem", "8192", unit="kB", source=source)) == ForeignEdits()
    )


def test_a_value_that_waits_for_a_restart_is_no_error() -> None:
    found = edits(
        [entry("max_connections", "90", error=NOT_APPLIED)],
        guc("max_connections", "100", context="postmaster", is_pending=True),
    )
    assert found == ForeignEdits(for_restart=("max_connections",))


def test_a_mark_without_anything_that_waits_does_not_count() -> None:
    """The server keeps the mark when an added line is taken out again before any restart."""
    stale = guc("max_wal_senders", "10", context="postmaster", source="default", is_pending=True)
    assert edits([], stale) == ForeignEdits()


def test_a_line_taken_out_that_is_in_force_waits_for_a_restart() -> None:
    taken_out = guc("max_wal_senders", "12", context="postmaster", is_pending=True)
    assert edits([], taken_out).for_restart == ("max_wal_senders",)


def test_an_error_is_named_with_its_place_and_without_its_value() -> None:
    found = edits(
        [
            entry("work_mem", "much", 3, NOT_APPLIED),
            FileEntry(CONF, 4, "", None, is_applied=False, error="syntax error"),
        ],
        guc("work_mem", "4096", unit="kB", source="default"),
    )
    assert found.errors == (
        f"work_mem in {CONF}, line 3: setting could not be applied",
        f"a line in {CONF}, line 4: syntax error",
    )
    with pytest.raises(RefusedError) as caught:
        found.check(with_restart=False)
    assert "much" not in str(caught.value)


def test_what_waits_for_a_restart_only_stands_in_the_way_of_a_restart() -> None:
    waiting = ForeignEdits(for_restart=("max_connections",))
    waiting.check(with_restart=False)
    with pytest.raises(RefusedError, match="settings changed by others wait for a restart: max_connections"):
        waiting.check(with_restart=True)


def test_an_alias_that_enumvals_do_not_show_is_not_taken_for_an_edit() -> None:
    """wal_level = hot_standby shows as replica; only the server knows that they are the same."""
    level = Guc("wal_level", "replica", None, "enum", "sighup", "configuration file", "replica", "replica",
                enumvals=("minimal", "replica", "logical"))  # fmt: skip
    assert edits([entry("wal_level", "hot_standby")], level) == ForeignEdits()
