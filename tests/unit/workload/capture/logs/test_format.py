"""Entries of logs in the three formats, as servers of PostgreSQL 15 and 18 have written them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pgdyno.base.errors import UsageError
from pgdyno.workload.capture.logs.csv_entries import csv_entries
from pgdyno.workload.capture.logs.entry import LogEntry
from pgdyno.workload.capture.logs.format import recognise
from pgdyno.workload.capture.logs.json_entries import json_entries
from pgdyno.workload.capture.logs.line_prefix import beginning, foreign_severity, prefix_pattern
from pgdyno.workload.capture.logs.stderr_entries import stderr_entries

AT_S = 1795610123.957  # 2026-11-25 12:35:23.957
PREFIX = "%m [%p] %q%u@%d app=%a "
CSV = (
    '2026-11-25 12:35:23.957 UTC,"app","shop",5936,"[local]",6b06d60b.1730,2865,"SELECT",2026-11-25 12:35:23 '
    'UTC,4/434,0,LOG,00000,"execute s: SELECT ""a""\n  FROM t WHERE b = $1","Parameters: $1 = \'x\'",'
    ',,,,,,,"psql","client backend",,7868147486446810665\n'
)
JSON = (
    '{"timestamp":"2026-11-25 12:35:23.957 UTC","user":"app","dbname":"shop","pid":5936,'
    '"session_id":"6b06d60b.1730","line_num":2865,"ps":"SELECT","session_start":"2026-11-25 12:35:23 UTC",'
    '"vxid":"4/434","txid":0,"error_severity":"LOG",'
    '"message":"execute s: SELECT \\"a\\"\\n  FROM t WHERE b = $1",'
    '"detail":"Parameters: $1 = \'x\'","application_name":"psql","backend_type":"client backend"}\n'
)
STDERR = (
    '2026-11-25 12:35:23.957 UTC [5936] app@shop app=psql LOG:  execute s: SELECT "a"\n'
    "\t  FROM t WHERE b = $1\n"
    "2026-11-25 12:35:23.957 UTC [5936] app@shop app=psql DETAIL:  Parameters: $1 = 'x'\n"
)
EXPECTED = LogEntry(
    at_s=AT_S,
    session="6b06d60b.1730",
    database="shop",
    application="psql",
    severity="LOG",
    message='execute s: SELECT "a"\n  FROM t WHERE b = $1',
    detail="Parameters: $1 = 'x'",
    line=2865,
)


def lines(text: str) -> list[str]:
    return text.splitlines(keepends=True)


def same(one: LogEntry | None) -> bool:
    """Whether an entry is the expected one, as far as stderr tells."""
    assert one is not None
    assert one.at_s == pytest.approx(AT_S)
    told = (one.database, one.application, one.message, one.detail)
    return told == (EXPECTED.database, EXPECTED.application, EXPECTED.message, EXPECTED.detail)


def test_csv_and_json_have_all_of_an_entry() -> None:
    for found in (list(csv_entries(lines(CSV))), list(json_entries(lines(JSON)))):
        [entry] = found
        assert same(entry)
        assert entry is not None
        assert (entry.session, entry.line, entry.severity) == ("6b06d60b.1730", 2865, "LOG")


def test_halves_of_characters_in_json_are_replaced() -> None:
    [entry] = json_entries(lines(JSON.replace("FROM t", "\\uD83D\\uDE00 \\uDE00")))
    assert entry is not None
    assert "\N{GRINNING FACE} ? WHERE" in entry.message


def test_lines_of_text_have_what_the_prefix_has() -> None:
    [entry] = stderr_entries(lines(STDERR), prefix_pattern(PREFIX))
    assert same(entry)
    assert entry is not None
    assert (entry.session, entry.line) == ("5936", None)


@pytest.mark.parametrize(
    "prefix", ["%t:%r:%u@%d:[%p]: ", "%t [%p]: [%l-1] user=%u,db=%d,app=%a,client=%h ", "%n %c "]
)
def test_prefixes_of_others_are_read(prefix: str) -> None:
    values = {
        "%t": "2026-11-25 12:35:23 CET", "%r": "10.0.0.1(54321)", "%u": "app", "%d": "shop", "%p": "77",
        "%l": "3", "%a": "my app, 2", "%h": "db.example.org", "%n": "1795610123.957", "%c": "6b06d60b.1730",
    }  # fmt: skip
    written = prefix
    for escape, value in values.items():
        written = written.replace(escape, value)
    [entry] = stderr_entries([f"{written}LOG:  statement: SELECT 1\n"], prefix_pattern(prefix))
    assert entry is not None
    assert (entry.message, entry.session in {"77", "6b06d60b.1730"}) == ("statement: SELECT 1", True)
    assert entry.database == ("shop" if "%d" in prefix else None)


def test_a_prefix_that_does_not_tell_sessions_apart_is_refused() -> None:
    with pytest.raises(UsageError) as found:
        prefix_pattern("%m %u@%d ")
    assert found.value.message == "log_line_prefix = '%m %u@%d ' does not identify sessions"
    assert found.value.detail == "it contains neither %p (process ID) nor %c (session ID)"


def test_processes_that_are_no_sessions_end_the_prefix_early() -> None:
    text = "2026-11-25 12:35:23.957 UTC [12] LOG:  checkpoint starting: time\n"
    [entry] = stderr_entries([text], prefix_pattern(PREFIX))
    assert entry is not None
    assert (entry.message, entry.database) == ("checkpoint starting: time", None)


def test_what_other_programs_write_into_the_log_is_no_entry() -> None:
    found = list(stderr_entries(lines(f"a library says hello\n{STDERR}"), prefix_pattern(PREFIX)))
    assert found[0] is None
    assert same(found[1])


def test_the_detail_of_another_session_is_not_taken() -> None:
    text = STDERR.replace("[5936] app@shop app=psql DETAIL", "[4711] app@shop app=psql DETAIL")
    [entry] = stderr_entries(lines(text), prefix_pattern(PREFIX))
    assert entry is not None
    assert entry.detail == ""


def test_a_cut_beginning_and_a_cut_end_lose_their_entries_alone() -> None:
    cut = 'FROM t","Parameters: $1 = \'x\'",,,,,,,,"psql","client backend",,7\n' + CSV + CSV[:150]
    found = list(csv_entries(lines(cut)))
    assert same(found[0])
    assert found[1:] == [None]
    [whole, end] = json_entries(lines(JSON + JSON[:200]))
    assert same(whole)
    assert end is None


def test_an_entry_that_was_never_finished_does_not_take_others_with_it() -> None:
    found = list(csv_entries(lines(CSV[:200] + "\n" + CSV + CSV)))
    assert found[0] is None
    assert all(same(one) for one in found[1:])
    assert len(found) == 3


def test_a_statement_that_looks_like_an_entry_is_none() -> None:
    forged = CSV.replace("FROM t", 'x\n2026-11-25 12:35:23.957 UTC,""app"",""shop"",1,\nFROM t')
    [entry] = csv_entries(lines(forged))
    assert entry is not None
    assert 'x\n2026-11-25 12:35:23.957 UTC,"app","shop",1,\nFROM t' in entry.message


FORGED = "statement: DELETE FROM orders"
AT = "2026-11-25 12:00:00.000 UTC"


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


def test_a_detail_and_a_hint_of_its_own_do_not_close_an_entry() -> None:
    raised = CSV.replace("FROM t WHERE b = $1", f"x\n{AT},").replace("Parameters: $1 = 'x'\",,", ',",",1,",')
    assert len(list(csv_entries(lines(raised + CSV)))) == 2


@pytest.mark.parametrize(
    ("prefix", "written"),
    [
        (PREFIX, "2026-11-25 12:35:23.957 UTC [5936] app@shop app={} "),
        ("%a [%p] %u@%d ", "{} [5936] app@shop "),
        ("%m [%p] %q%a ", "2026-11-25 12:35:23.957 UTC [5936] {} "),
    ],
)
def test_entries_of_text_cannot_be_forged_by_a_name(prefix: str, written: str) -> None:
    before = f"{written.format('psql')}LOG:  statement: SELECT 1\n"
    for name in (f"x LOG:  {FORGED} --", f"x [1] a@shop LOG:  {FORGED} --"):
        text = f"{before}{written.format(name)}LOG:  statement: SELECT 2\n\t; {FORGED}\n"
        found = [one for one in stderr_entries(lines(text), prefix_pattern(prefix)) if one is not None]
        assert found[0].message == "statement: SELECT 1"
        assert not any(one.message.startswith(FORGED) or "5936" not in one.session for one in found)


def test_verbose_messages_have_a_state_and_a_location() -> None:
    """As PostgreSQL 18 has written them with log_error_verbosity = verbose."""
    prefix = STDERR[: STDERR.index("LOG:")]
    location = f"{prefix}LOCATION:  exec_execute_message, postgres.c:2222\n"
    text = STDERR.replace("LOG:  ", "LOG:  00000: ") + location
    [entry] = stderr_entries(lines(text), prefix_pattern(PREFIX))
    assert same(entry)


RECOMMENDED_ONCE = "%m [%p] %q%u@%d %a "


@pytest.mark.parametrize(
    ("names", "database", "application"),
    [
        ("app@odd PostgreSQL JDBC Driver", "odd", "PostgreSQL JDBC Driver"),
        ("me@corp.com@shop PostgreSQL JDBC Driver", "shop", "PostgreSQL JDBC Driver"),
        ("the app@our shop psql", "our shop", "psql"),
        ("[unknown]@[unknown] [unknown]", "[unknown]", "[unknown]"),
        ("app@dropped a b", "dropped", "a b"),
    ],
)
def test_names_may_have_blanks(names: str, database: str, application: str) -> None:
    message = "duration: 1.316 ms  statement: select n from kv where k='plain'"
    text = f"{AT} [7] {names} LOG:  {message}\n"
    pattern = prefix_pattern(RECOMMENDED_ONCE, ["odd", "our shop", "postgres", "shop"])
    for found in (list(stderr_entries([text], pattern)), list(stderr_entries([text], pattern))):
        [entry] = found
        assert entry is not None
        assert (entry.session, entry.database, entry.application) == ("7", database, application)
        assert entry.message == message


def test_a_line_that_fits_two_databases_is_of_neither() -> None:
    pattern = prefix_pattern(RECOMMENDED_ONCE, ["shop", "shop two"])
    text = f"{AT} [7] app@shop two psql LOG:  statement: SELECT 1\n"
    assert list(stderr_entries([text], pattern)) == [None]
    forged = f"{AT} [7] app@bank app=x@shop app=y LOG:  {FORGED}\n"
    assert list(stderr_entries([forged], prefix_pattern(PREFIX, ["bank", "shop"]))) == [None]


def test_a_severity_within_a_known_session_s_line_makes_it_ambiguous() -> None:
    one = f"{AT} [7] app@shop app=x LOG:  statement: SELECT 1"
    pattern = prefix_pattern(PREFIX, ["shop"])
    text = f"{one}\n{one}\n{one} -- LOG:  {FORGED}\n{one}\n"
    found = list(stderr_entries(lines(text), pattern))
    assert [None if entry is None else entry.message for entry in found] == [
        "statement: SELECT 1", None, "statement: SELECT 1", "statement: SELECT 1"
    ]  # fmt: skip


def test_a_line_is_shown_up_to_its_severity() -> None:
    assert beginning(f"{AT} [7] a@shop b LOG:  statement: SELECT 'secret'\n") == f"{AT} [7] a@shop b LOG:"
    assert beginning("a secret of a program\n") is None
    assert beginning("x" * 400 + " LOG:  a\n") is None


@pytest.mark.parametrize(
    ("severity", "message"),
    [("СООБЩЕНИЕ", "продолжительность: 0.1 мс"), ("FEHLER", "Syntaxfehler"), ("ОШИБКА", "…")],
)
def test_severities_of_other_languages_are_found(severity: str, message: str) -> None:
    head = lines(f"no entry\n{AT} [7] app@shop app=x {severity}:  {message}\n")
    assert foreign_severity(head, PREFIX) == severity
    ambiguous = [
        f"{AT} [7] app@shop app=x LOG:  statement: SELECT 1 -- {word}:  y\n" for word in ("LOG", "FOO")
    ]
    assert foreign_severity(["no entry\n", *ambiguous], PREFIX) is None


def test_an_entry_that_is_too_long_is_left_out() -> None:
    long = "x" * 200_000
    texts = (CSV.replace("FROM t", long), JSON.replace("FROM t", long), STDERR.replace("FROM t", long))
    csv, json, stderr = map(lines, texts)
    found = csv_entries(csv), json_entries(json), stderr_entries(stderr, prefix_pattern(PREFIX))
    assert [list(entries) for entries in found] == [[None]] * 3


@pytest.mark.parametrize(("text", "name"), [(CSV, "csvlog"), (JSON, "jsonlog"), (STDERR, "stderr")])
def test_a_format_is_told_by_the_first_lines(text: str, name: str) -> None:
    found = recognise(lines(f"the end of an entry\n{text}"), PREFIX)
    assert found is not None
    assert found.name == name
    assert found.first_s(lines(text)) == pytest.approx(AT_S)


@pytest.mark.parametrize("text", ["", "SELECT 1;\n", "{}\n", "[1]\n", "a,b,c\n", '"\n', "{" * 100_000])
def test_other_files_are_no_logs(text: str) -> None:
    assert recognise(lines(text), PREFIX) is None


@given(st.text())
def test_no_text_breaks_a_reader(text: str) -> None:
    for read in (csv_entries, json_entries, lambda its: stderr_entries(its, prefix_pattern(PREFIX))):
        assert all(one is None or isinstance(one, LogEntry) for one in read(lines(text)))


@given(st.text(max_size=60), st.text(alphabet="mnptucladrhLbisvxeQqP%-0123456789 []@", max_size=40))
def test_no_prefix_breaks_the_pattern(line: str, prefix: str) -> None:
    try:
        pattern = prefix_pattern(prefix)
    except UsageError:
        return
    assert list(stderr_entries([line], pattern)) is not None
