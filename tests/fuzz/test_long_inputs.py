"""Long inputs of one repeated part: no reader takes more than a moment, or deeper stacks than there are."""

from __future__ import annotations

import pytest
from tests.fuzz.targets import TARGETS

from pgdyno.workload.capture.literals import parameterised

LENGTH = 50_000
LIMIT_S = 300  # beside other tests; what grows with the square of the length takes longer
PARTS = (
    *(
        b"\n",
        b" ",
        b"\t",
        b"'",
        b'"',
        b"\\",
        b",",
        b"=",
        b"|",
        b"[",
        b"{",
        b"(",
        b"a",
        b"0",
        b"9",
        b"-",
        b".",
        b"#",
    ),
    *(
        b"''",
        b"a=",
        b"a,",
        b"a b\n",
        b"\\'",
        b"$a$",
        b"/*",
        b"--",
        b"[[",
        b'{"a":',
        b"a.",
        b"\n\n ",
        b"\x80",
        b"\xff",
    ),
    *(
        b"include 'postgresql.conf'\n",
        b"pg_ctl_options = '",
        b"deb [",
        b"password=",
        b"password",
        b"9 ",
        b"$a",
        b"x://a:",
        b"1 2 3 4 5 6\n",
    ),
)


@pytest.mark.timeout(LIMIT_S)
@pytest.mark.parametrize("target", TARGETS)
def test_a_long_input_is_read_in_a_moment(target: str) -> None:
    for part in PARTS:
        data = part * (LENGTH // len(part))
        assert TARGETS[target](data) is None, part


@pytest.mark.timeout(LIMIT_S)
@pytest.mark.parametrize("end", ["'", "''"])
def test_a_text_before_many_lines_is_read_in_a_moment(end: str) -> None:
    for number in range(10):
        sql = f"SELECT '{number}{end}" + "\n" * 128_000 + ("" if len(end) == 1 else "'")
        assert len(parameterised(sql).values) == 1
