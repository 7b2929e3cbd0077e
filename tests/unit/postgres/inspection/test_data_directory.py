"""Expected values follow guc-file.l and the manual, chapter "Setting Parameters"; by hand."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pgdyno.postgres.inspection.data_directory import parse_line, read_configuration
from pgdyno.postgres.server import FileSetting


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("work_mem = 64MB", ("work_mem", "64MB")),
        ("work_mem=64MB", ("work_mem", "64MB")),
        ("  work_mem 64MB   # why", ("work_mem", "64MB")),
        ("work_mem = 64MB# why", ("work_mem", "64MB")),
        ("Work_Mem = '64MB'", ("work_mem", "64MB")),
        ("log_line_prefix = '%m # [%p] '", ("log_line_prefix", "%m # [%p] ")),
        ("cluster_name = 'it''s \\'mine\\''", ("cluster_name", "it's 'mine'")),
        ("cluster_name = ''", ("cluster_name", "")),
        ("cluster_name = 'a\\tb\\101'", ("cluster_name", "a\tbA")),
        ("app.user_id = 7", ("app.user_id", "7")),
        ("seq_page_cost = -1.5e3", ("seq_page_cost", "-1.5e3")),
        ("log_directory = /var/log", ("log_directory", "/var/log")),
        ("include_dir = 'conf.d'", ("include_dir", "conf.d")),
        ("# work_mem = 64MB", None),
        ("", None),
        ("work_mem", None),
        ("cluster_name = 'open", None),
        ("work_mem = 64MB 32MB", None),
    ],
)
def test_lines_are_read_as_the_server_reads_them(line: str, expected: tuple[str, str] | None) -> None:
    assert parse_line(line) == expected


@given(st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\n\r"), max_size=60))
def test_a_value_quoted_as_alter_system_quotes_it_comes_back(value: str) -> None:
    # escape_single_quotes_ascii() doubles quotes and backslashes.
    quoted = re.sub(r"(['\\])", r"\1\1", value)
    assert parse_line(f"cluster_name = '{quoted}'") == ("cluster_name", value)


@given(st.text(max_size=80))
def test_no_line_whatsoever_breaks_the_parser(line: str) -> None:
    parsed = parse_line(line)
    assert parsed is None or parsed[0] == parsed[0].lower()


def test_includes_are_followed_in_the_servers_order(tmp_path: Path) -> None:
    (tmp_path / "conf.d").mkdir()
    (tmp_path / "conf.d/b.conf").write_text("work_mem = 2MB\n")
    (tmp_path / "conf.d/a.conf").write_text("work_mem = 1MB\n")
    (tmp_path / "conf.d/.hidden.conf").write_text("work_mem = 9MB\n")
    (tmp_path / "conf.d/note.txt").write_text("work_mem = 9MB\n")
    main = tmp_path / "postgresql.conf"
    main.write_text("include_if_exists = 'missing.conf'\ninclude_dir 'conf.d'\n\nwork_mem = 3MB\n")
    assert list(read_configuration(main)) == [
        FileSetting("work_mem", "1MB", str(tmp_path / "conf.d/a.conf"), 1),
        FileSetting("work_mem", "2MB", str(tmp_path / "conf.d/b.conf"), 1),
        FileSetting("work_mem", "3MB", str(main), 4),
    ]


def test_a_file_that_includes_itself_ends(tmp_path: Path) -> None:
    main = tmp_path / "postgresql.conf"
    main.write_text("work_mem = 3MB\ninclude 'postgresql.conf'\n")
    assert len(list(read_configuration(main))) == 11  # the file and ten levels below it


def test_a_missing_include_is_an_error(tmp_path: Path) -> None:
    main = tmp_path / "postgresql.conf"
    main.write_text("include 'missing.conf'\n")
    with pytest.raises(FileNotFoundError, match=r"missing\.conf"):
        list(read_configuration(main))


def test_secrets_in_files_are_redacted(tmp_path: Path) -> None:
    main = tmp_path / "postgresql.conf"
    main.write_text("primary_conninfo = 'host=db password=s3cret'\n")
    assert [setting.value for setting in read_configuration(main)] == ["host=db password=********"]


def test_a_pipe_in_a_files_place_is_refused_rather_than_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "postgresql.conf").write_text("include 'pipe'\n")
    with pytest.raises(OSError, match="it is not a regular file"):
        list(read_configuration(tmp_path / "postgresql.conf"))


def test_a_file_without_end_is_refused(tmp_path: Path) -> None:
    (tmp_path / "postgresql.conf").write_bytes(b"#" * (1 << 20))
    assert list(read_configuration(tmp_path / "postgresql.conf")) == []
    (tmp_path / "postgresql.conf").write_bytes(b"#" * ((1 << 20) + 1))
    with pytest.raises(OSError, match="it is larger than 1 MiB"):
        list(read_configuration(tmp_path / "postgresql.conf"))


def test_a_name_with_a_nul_byte_is_no_file(tmp_path: Path) -> None:
    (tmp_path / "postgresql.conf").write_text("include 'a\\000b'\n")
    with pytest.raises(OSError, match="the name contains a NUL byte"):
        list(read_configuration(tmp_path / "postgresql.conf"))


def test_files_that_include_themselves_many_times_end(tmp_path: Path) -> None:
    (tmp_path / "postgresql.conf").write_text("include 'postgresql.conf'\n" * 100)
    with pytest.raises(OSError, match="more than 250 files are included"):
        list(read_configuration(tmp_path / "postgresql.conf"))


@pytest.mark.parametrize(
    ("lines", "times", "reason"),
    [
        ("a=1\n" * 100, 101, "more than 10,000 settings are included"),
        ("#" * 1_000_000, 5, "more than 4,194,304 characters are included"),
        ("include_dir 'conf.d'\n" * 100, 101, "more than 10,000 names of directories are included"),
    ],
)
def test_a_file_that_is_included_many_times_is_read_only_so_often(
    tmp_path: Path, lines: str, times: int, reason: str
) -> None:
    (tmp_path / "conf.d").mkdir()
    (tmp_path / "conf.d/note.txt").touch()
    (tmp_path / "big.conf").write_text(lines)
    (tmp_path / "postgresql.conf").write_text("include 'big.conf'\n" * (times - 1))
    assert len(list(read_configuration(tmp_path / "postgresql.conf"))) == lines.count("a=1") * (times - 1)
    (tmp_path / "postgresql.conf").write_text("include 'big.conf'\n" * times)
    with pytest.raises(OSError, match=reason):
        list(read_configuration(tmp_path / "postgresql.conf"))


def test_only_a_line_feed_ends_a_line(tmp_path: Path) -> None:
    (tmp_path / "postgresql.conf").write_text("cluster_name = 'a\u2028b'\n", encoding="utf-8")
    (found,) = read_configuration(tmp_path / "postgresql.conf")
    assert found.value == "a\u2028b"
