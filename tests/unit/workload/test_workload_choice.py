"""Notes on what the rows of copies are, and that experiments have them."""

from __future__ import annotations

from pathlib import Path

from pgdyno.workload.workload_choice import digest_of, read_copy_note, write_copy_note


def test_a_note_is_read_for_its_copy_alone(tmp_path: Path) -> None:
    dump = tmp_path / "shop.dump"
    dump.write_bytes(b"rows")
    assert read_copy_note(dump, digest_of(dump)) is None
    write_copy_note(dump, "a sample of 10 % of the original's rows")
    assert read_copy_note(dump, digest_of(dump)) == "a sample of 10 % of the original's rows"
    dump.write_bytes(b"all rows")
    assert read_copy_note(dump, digest_of(dump)) is None


def test_a_note_is_not_written_through_a_link(tmp_path: Path) -> None:
    """Beside a copy in a directory of others, it would be a file of their choice."""
    dump, victim = tmp_path / "shop.dump", tmp_path / "victim"
    dump.write_bytes(b"rows")
    victim.write_text("kept")
    (tmp_path / "shop.dump.note").symlink_to(victim)
    write_copy_note(dump, "made-up rows")
    assert victim.read_text() == "kept"
    assert read_copy_note(dump, digest_of(dump)) == "made-up rows"


def test_a_note_of_an_earlier_version_says_that_the_locale_is_unknown(tmp_path: Path) -> None:
    dump = tmp_path / "shop.dump"
    dump.write_bytes(b"rows")
    (tmp_path / "shop.dump.note").write_text(f"{digest_of(dump)}\nmade-up rows\n")
    assert read_copy_note(dump, digest_of(dump)) == (
        "made-up rows; an earlier version made the copy, in the locale C: if the original has another one, "
        "plans and answers may differ"
    )
