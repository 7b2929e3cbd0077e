"""Scripts of pgbench, divided into commands."""

from __future__ import annotations

import pytest

from pgdyno.workload.capture.scripts.commands import Meta, Sql, commands_of


@pytest.mark.parametrize(
    ("script", "commands"),
    [
        ("SELECT 1;\n SELECT 2", [Sql("SELECT 1", 1), Sql("SELECT 2", 2)]),
        ("-- only\n/* comments */;\n", []),
        ("/*\n\\set aid 1\n--*/\nSELECT 1;", [Sql("SELECT 1", 4)]),
        ("SELECT ';', \"a;b\", $$;\\set$$;", [Sql("SELECT ';', \"a;b\", $$;\\set$$", 1)]),
        ("SELECT (1;2);", [Sql("SELECT (1;2)", 1)]),
        ("SELECT 1 \\gset\n", [Sql("SELECT 1", 1), Meta("gset", "", 1)]),
        ("SELECT 1; \\set a 1", [Sql("SELECT 1", 1), Meta("set", "a 1", 1)]),
        ("SELECT 1 \\; SELECT 2;", [Sql("SELECT 1 ; SELECT 2", 1, is_combined=True)]),
        ("SELECT a\\:\\:b;", [Sql("SELECT a::b", 1)]),
        ("\\SET a 1 -- all of it\n", [Meta("set", "a 1 -- all of it", 1)]),
        (
            "\\set a \\\n  random(1, \\\r\n 5)\nSELECT 1",
            [Meta("set", "a    random(1,   5)", 1), Sql("SELECT 1", 4)],
        ),
        ("\\set\\\n a 1", [Meta("set", "a 1", 1)]),
        ("\\\n\\", []),
        ("SELECT 'unfinished", [Sql("SELECT 'unfinished", 1)]),
    ],
)  # fmt: skip
def test_commands_are_divided_as_pgbench_divides_them(script: str, commands: list[Sql | Meta]) -> None:
    assert list(commands_of(script)) == commands
