"""Expected texts are written by hand, after what pg_createcluster writes and pg_ctlcluster reads."""

from __future__ import annotations

from pathlib import Path

import pytest

from pgdyno.postgres.pg_ctl_conf import naming, options_in, program_in, with_options

WRITTEN = (
    "# Automatic pg_ctl configuration\n"
    "# This configuration file contains cluster specific options to be passed to\n"
    "# pg_ctl(1).\n"
    "\n"
    "pg_ctl_options = ''\n"
)
OTHER = Path("/opt/pg/bin/postgres")


def test_options_are_replaced_and_nothing_else() -> None:
    changed = with_options(WRITTEN, "-t 300 -p /opt/pg/bin/postgres")
    assert changed == WRITTEN.replace("''", "'-t 300 -p /opt/pg/bin/postgres'")
    assert options_in(changed) == "-t 300 -p /opt/pg/bin/postgres"
    assert with_options(changed, "") == WRITTEN


def test_what_stands_around_the_options_stays() -> None:
    text = "  pg_ctl_options='-w'   # kept\n\n# pg_ctl_options = 'no'\n"
    assert options_in(text) == "-w"
    assert with_options(text, "-W") == "  pg_ctl_options='-W'   # kept\n\n# pg_ctl_options = 'no'\n"


@pytest.mark.parametrize(
    "text",
    [
        "",
        "# pg_ctl_options = ''\n",
        "pg_ctl_options = -w\n",
        "pg_ctl_options = ''\npg_ctl_options = '-w'\n",
        "pg_ctl_options = '-p /opt/o'brien/bin/postgres'\n",
    ],
    ids=["empty", "comment", "no quotes", "twice", "quote"],
)
def test_another_form_is_not_understood(text: str) -> None:
    assert options_in(text) is None


@pytest.mark.parametrize(
    ("options", "program"),
    [
        ("", None),
        ("-t 300 -w", None),
        ("-p /opt/pg/bin/postgres", OTHER),
        ("-w -p/opt/pg/bin/postgres -t 9", OTHER),
        ("-t 9 -p", None),
        ("-o -p5433 -t 9", None),
    ],
)
def test_the_program_is_found(options: str, program: Path | None) -> None:
    assert program_in(options) == program


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ("", "-p /opt/pg/bin/postgres"),
        ("-t 300", "-t 300 -p /opt/pg/bin/postgres"),
        ("-p /usr/bin/postgres -w", "-w -p /opt/pg/bin/postgres"),
        ("-p/usr/bin/postgres", "-p /opt/pg/bin/postgres"),
        ("-o -p5433 -t 3", "-o -p5433 -t 3 -p /opt/pg/bin/postgres"),
    ],
)
def test_another_program_is_named_instead(options: str, named: str) -> None:
    assert naming(options, OTHER) == named
