"""Log files as lines of text."""

from __future__ import annotations

from pathlib import Path

from pgdyno.postgres.sampling.log_files import read_head


def test_the_first_lines_of_a_file_are_some_megabytes_at_most(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_text(f"{'x' * 2_000_000}\n" * 20 + "last\n")
    head = read_head(log)
    assert head[0] == "x" * (1 << 20) + "\n"
    assert sum(map(len, head)) <= 6 << 20
    log.write_text("short\n" * 2000)
    assert read_head(log) == ["short\n"] * 1000
