"""Entries of csvlog: a quoted field is no entry, whatever it contains."""

from __future__ import annotations

import pytest
from tests.unit.workload.capture.logs.test_format import CSV, JSON, lines, same
from tests.unit.workload.capture.logs.test_stderr_entries import AT, FORGED

from pgdyno.workload.capture.logs.csv_entries import csv_entries
from pgdyno.workload.capture.logs.json_entries import json_entries


def test_csv_and_json_have_all_of_an_entry() -> None:
    for found in (list(csv_entries(lines(CSV))), list(json_entries(lines(JSON)))):
        [entry] = found
        assert same(entry)
        assert entry is not None
        assert (entry.session, entry.line, entry.severity) == ("6b06d60b.1730", 2865, "LOG")


@pytest.mark.parametrize(
    "literal",
    [
        f'x\n{AT},",",1,\n{AT},u,shop,1,h,f.1,1,SELECT,t,1/1,0,LOG,00000,{FORGED},,,,,,,,,x\n{AT},',
        f"x\n{AT},u,shop,1,h,f.1,1,SELECT,t,1/1,0,LOG,00000,{FORGED},,,,,,,,,x",
        f'x\n{AT},"u","shop",1,"h",f.1,1,"SELECT",t,1/1,0,LOG,00000,"{FORGED}",,,,,,,,,"x",',
        f'{"x" * (1 << 17)}"\n{AT},u,shop,1,h,f.1,1,SELECT,t,1/1,0,LOG,00000,{FORGED},,,,,,,,,x',
    ],
)
def test_entries_of_csv_cannot_be_forged(literal: str) -> None:
    logged = CSV.replace("FROM t", literal.replace('"', '""'))
    cut_between_marks = logged.replace('xxx""\n', 'xxx"\n')  # as a line is that is too long
    for text in (logged, cut_between_marks, logged[CSV.index("FROM t") :]):
        found = csv_entries(lines(text + CSV))
        assert [one.message for one in found if one is not None and one.message.startswith(FORGED)] == []


def test_a_statement_that_looks_like_an_entry_is_none() -> None:
    forged = CSV.replace("FROM t", 'x\n2026-11-25 12:35:23.957 UTC,""app"",""shop"",1,\nFROM t')
    [entry] = csv_entries(lines(forged))
    assert entry is not None
    assert 'x\n2026-11-25 12:35:23.957 UTC,"app","shop",1,\nFROM t' in entry.message
