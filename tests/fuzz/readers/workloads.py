"""Logs of servers, and scripts of pgbench, that workloads are taken from."""

from __future__ import annotations

from tests.fuzz.words import refused_in_words

from pgdyno.workload.capture.literals import parameterised
from pgdyno.workload.capture.logs.format import recognise
from pgdyno.workload.capture.logs.load import LoggedLoad
from pgdyno.workload.capture.logs.values import Values
from pgdyno.workload.capture.scripts.scripted import ReadScript, ScriptedLoad, read_script

_PREFIX = "%m [%p] %q%u@%d app=%a "


def check_log(data: bytes) -> None:
    """A log has as many calls as transactions have, but for those that are cut; texts have no constants."""
    lines = data.decode(errors="replace").splitlines(keepends=True)
    with refused_in_words():
        log = recognise(lines[:100], _PREFIX, ("bank", "shop"))
        if log is None:
            return
        load = LoggedLoad("shop", Values(is_keeping=True))
        load.read(log.entries(lines))
        load.finish()
        within = sum(one.count * times for one in load.transactions() for _, times in one.calls)
        is_exact = not any("in the order of similar ones" in note for note in load.notes())
        assert round(within) <= load.calls or not is_exact
        if load.sessions is not None:
            assert load.clients <= load.sessions + 1e-6
        assert all(parameterised(sql).sql == sql for sql in load.texts.sql.values() if "…" not in sql)


def check_pgbench_script(data: bytes) -> None:
    """A script's transaction calls statements that are there, with earlier values alone."""
    with refused_in_words():
        load = ScriptedLoad()
        text = data.decode(errors="replace")
        load.add(ReadScript("s.sql", 1.0, read_script("s.sql", text, {"scale": 1})))
        names = {one.name for one in load.counted()}
        assert {call.statement for one in load.transactions for call in one.calls} <= names
