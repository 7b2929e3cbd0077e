"""Which logs can have a sample of transactions, what has to be set for it, and why others are refused."""

from __future__ import annotations

import os
from contextlib import nullcontext as does_not_raise
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import psycopg
import pytest
from tests.fix_settings import server_of, set_by, settings_of

from pgdyno.apply.session.query import Connection
from pgdyno.apply.session.target import this_machine
from pgdyno.base.errors import MeasurementError, RefusedError
from pgdyno.base.facts import Fact
from pgdyno.model.plans.journal import Target
from pgdyno.postgres.server import SettingOverride
from pgdyno.workload.sampled_log import LogFiles, LogPlace, check_unlogged, place_of_log, settings_for

_OURS = "%m [%p] %q%u@%d app=%a "
_CSV = "log/monday.csv"


class Answers:
    """A connection that answers by the function that is called; what is missing is denied."""

    closed = False

    def __init__(self, **answers: object) -> None:
        self.answers = answers

    def execute(self, statement: str, _parameters: object = None) -> Any:
        for function, answer in self.answers.items():
            if f"{function}(" in statement:
                return Rows(answer)
        raise psycopg.errors.InsufficientPrivilege("permission denied for this function")


class Rows:
    description = True

    def __init__(self, answer: object) -> None:
        self.answer = answer

    def fetchall(self) -> list[tuple[object]]:
        return [(self.answer,)]


def files(**answers: object) -> LogFiles:
    return LogFiles(cast("Connection", Answers(**answers)))


def target(directory: Path | None = None, *, is_here: bool = False) -> Target:
    machine = this_machine() if is_here else "another"
    named = None if directory is None else str(directory)
    return Target("server", "7", named, machine, "host=db1 port=5432")


def place(**changes: str) -> LogPlace:
    settings = set_by(settings_of(18), changes)
    return place_of_log(settings, files(pg_current_logfile=_CSV), target())


def refusal(**changes: str) -> str:
    with pytest.raises(RefusedError) as caught:
        check_unlogged(server_of(changes=changes))
    return str(caught.value)


def test_a_server_as_it_is_installed_can_log_a_sample() -> None:
    with does_not_raise():
        for major in (14, 18):
            check_unlogged(server_of(major))
        check_unlogged(server_of(changes={"log_min_duration_statement": "1s", "log_statement": "none"}))


def test_a_log_with_statements_of_other_transactions_is_refused() -> None:
    assert refusal(log_statement="all", log_min_duration_statement="0") == (
        "the server logs statements already, which could not be distinguished from sampled transactions\n"
        "DETAIL:  log_statement = all; log_min_duration_statement = 0\n"
        "HINT:  all statements are logged, so use that log: --log FILE"
    )
    assert refusal(log_statement="ddl").endswith(
        "DETAIL:  log_statement = ddl\n"
        "HINT:  ALTER SYSTEM SET log_statement = none, and reload; or capture at another time"
    )
    assert "log_transaction_sample_rate = 0.5" in refusal(log_transaction_sample_rate="0.5")
    assert "log_min_duration_sample = 0" in refusal(log_min_duration_sample="0")


def test_settings_of_roles_and_databases_count_as_well() -> None:
    given = (
        SettingOverride("app", None, "log_min_duration_statement", "250"),
        SettingOverride("app", "shop", "log_statement", "all"),
        SettingOverride("audit", None, "log_statement", "ddl"),
        SettingOverride("audit", None, "log_min_duration_statement", "-1"),
        SettingOverride(None, "shop", "log_transaction_sample_rate", "0"),
        SettingOverride("app", None, "work_mem", "1GB"),
    )
    server = replace(server_of(), overrides=Fact(given, "pg_db_role_setting"))
    with pytest.raises(RefusedError) as caught:
        check_unlogged(server)
    assert caught.value.detail == (
        "log_min_duration_statement = 250 (app); log_statement = all (app, shop); "
        "log_statement = ddl (audit); log_transaction_sample_rate = 0 (shop)"
    )
    assert caught.value.hint == (
        'ALTER ROLE "app" RESET log_min_duration_statement; '
        'ALTER ROLE "app" IN DATABASE "shop" RESET log_statement; '
        'ALTER ROLE "audit" RESET log_statement; '
        'ALTER DATABASE "shop" RESET log_transaction_sample_rate; or capture at another time'
    )
    everywhere = SettingOverride(None, None, "log_transaction_sample_rate", "0")
    with pytest.raises(RefusedError) as caught:
        check_unlogged(replace(server_of(), overrides=Fact((everywhere,), "pg_db_role_setting")))
    assert str(caught.value) == (
        "roles or databases have a log_transaction_sample_rate of their own\n"
        "DETAIL:  log_transaction_sample_rate = 0 (all roles)\n"
        "HINT:  ALTER ROLE ALL RESET log_transaction_sample_rate; or capture at another time"
    )


def test_older_servers_and_unreadable_messages_are_refused() -> None:
    with pytest.raises(RefusedError) as caught:
        check_unlogged(replace(server_of(14), version_num=110_022, version="11.22"))
    assert str(caught.value) == (
        "PostgreSQL 11.22 cannot log a sample of transactions\n"
        "DETAIL:  log_transaction_sample_rate exists since PostgreSQL 12\n"
        "HINT:  log all statements for some minutes, and use --log"
    )
    assert refusal(lc_messages="de_DE.UTF-8").startswith(
        "the server's messages are not in English: lc_messages = 'de_DE.UTF-8'\nHINT:  ALTER SYSTEM SET"
    )
    for english in ("", "C", "C.UTF-8", "POSIX", "en_GB.UTF-8"):
        check_unlogged(server_of(changes={"lc_messages": english}))
    assert refusal(log_min_messages="fatal").startswith("log_min_messages = fatal keeps statements out")


@pytest.mark.parametrize(
    ("changes", "log", "prefix"),
    [
        ({"log_destination": "stderr"}, "csvlog", None),  # '%m [%p] ' names neither database nor program
        ({"log_destination": "stderr", "log_line_prefix": "%m [%p] %d %a "}, "stderr", "%m [%p] %d %a "),
        ({"log_destination": "stderr", "log_line_prefix": "%n %c%5d%-20a "}, "stderr", "%n %c%5d%-20a "),
        ({"log_destination": "stderr", "log_line_prefix": "%t [%p] %d %a "}, "csvlog", None),
        ({"log_destination": "stderr", "log_line_prefix": "%m [%p] %%d %a "}, "csvlog", None),
        ({"log_destination": "stderr,csvlog", "log_line_prefix": _OURS}, "csvlog", None),
        ({"log_destination": "jsonlog"}, "jsonlog", None),
        ({"log_line_prefix": _OURS, "log_error_verbosity": "terse"}, "csvlog", None),
    ],
)
def test_collected_logs_are_taken_in_the_first_form_that_can_be_read(
    changes: dict[str, str], log: str, prefix: str | None
) -> None:
    found = place(logging_collector="on", **changes)
    assert found == LogPlace(log, _CSV, is_collected=True, line_prefix=prefix)


def test_a_log_that_is_in_no_file_is_refused() -> None:
    with pytest.raises(RefusedError) as caught:
        place(logging_collector="on", log_destination="syslog")
    assert caught.value.message == "the server does not log to files: log_destination = 'syslog'"
    with pytest.raises(RefusedError) as caught:
        place(logging_collector="off")  # on another machine
    assert caught.value.message == "the place of the server's log is unknown: logging_collector is off"
    assert "run pgdyno on the server's machine as its user or root" in (caught.value.hint or "")
    with pytest.raises(RefusedError) as caught:
        place_of_log(set_by(settings_of(18), {"logging_collector": "on"}), files(), target())
    assert str(caught.value) == (
        "the place of the server's log is hidden from the role\n"
        "DETAIL:  permission denied for this function\n"
        "HINT:  GRANT pg_monitor TO the role, or name a superuser's connection by --admin-dsn"
    )


def test_standard_error_is_the_file_that_a_backend_has_it_in(tmp_path: Path) -> None:
    settings = set_by(settings_of(18), {"logging_collector": "off"})
    asked = files(pg_backend_pid=os.getpid())
    file, own = tmp_path / "log", os.dup(2)
    with file.open("wb") as log:
        os.dup2(log.fileno(), 2)
        try:
            found = place_of_log(settings, asked, target(is_here=True))
        finally:
            os.dup2(own, 2)
            os.close(own)
    assert found == LogPlace("stderr", str(file), is_collected=False, line_prefix=_OURS)
    assert settings_for(settings, found, 0.25) == {
        "log_transaction_sample_rate": "0.25",
        "log_line_prefix": _OURS,
    }


def test_no_more_is_set_than_the_log_needs() -> None:
    settings = set_by(settings_of(18), {"log_destination": "csvlog"})
    csv = LogPlace("csvlog", _CSV, is_collected=True)
    assert settings_for(settings, csv, 0.01) == {"log_transaction_sample_rate": "0.01"}
    changed = {
        "log_destination": "stderr",
        "log_min_duration_statement": "1s",
        "log_min_duration_sample": "100ms",
        "log_parameter_max_length": "16B",
    }
    assert settings_for(set_by(settings_of(18), changed), csv, 1e-5) == {
        "log_transaction_sample_rate": "1e-05",
        "log_min_duration_statement": "-1",
        "log_min_duration_sample": "-1",
        "log_parameter_max_length": "1024",
        "log_destination": "stderr,csvlog",
    }
    text = LogPlace("stderr", "/log", is_collected=False, line_prefix=_OURS)
    terse = set_by(settings_of(18), {"log_line_prefix": _OURS, "log_error_verbosity": "terse"})
    assert settings_for(terse, text, 1.0) == {
        "log_transaction_sample_rate": "1",
        "log_error_verbosity": "default",
    }


def test_a_file_is_read_by_the_server_or_by_a_user_who_may(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "log").mkdir()
    (tmp_path / _CSV).write_bytes(b"0123456789")
    by_server = files(pg_stat_file=10, pg_read_binary_file=b"34").able_to_read(_CSV, target())
    assert by_server.is_by_server
    assert by_server.free_share(_CSV) is None
    here = target(tmp_path, is_here=True)
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    own = files().able_to_read(_CSV, here)
    assert not own.is_by_server
    assert own.size(_CSV) == 10
    assert own.size("log/tuesday.csv") == 0
    assert b"".join(own.read(_CSV, 3, 7)) == b"3456"
    with pytest.raises(MeasurementError) as shorter:
        list(own.read(_CSV, 8, 20))
    assert str(shorter.value) == (
        "the server's log was truncated during the capture\n"
        'DETAIL:  "log/monday.csv" has become shorter, or is gone\n'
        "HINT:  pause log rotation, or capture at another time"
    )
    assert 0 <= (own.free_share(_CSV) or 0) <= 1
    with pytest.raises(RefusedError) as caught:
        files().able_to_read(_CSV, target(tmp_path))
    assert str(caught.value).startswith(
        'could not read the server\'s log, "log/monday.csv"\n'
        "DETAIL:  the server: permission denied for this function\n"
        "HINT:  name a superuser's connection by --admin-dsn"
    )


@pytest.mark.parametrize("is_root", [False, True])
def test_no_pipe_is_opened_and_by_root_no_file_that_a_server_names(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, is_root: bool
) -> None:
    if is_root:
        (tmp_path / "log").write_bytes(b"root:$6$")
    else:
        os.mkfifo(tmp_path / "log")
    monkeypatch.setattr(os, "geteuid", lambda: 0 if is_root else 1000)
    with pytest.raises(RefusedError) as caught:
        files().able_to_read("log", target(tmp_path, is_here=True))
    assert ("this machine: " in (caught.value.detail or "")) is not is_root


def test_the_files_of_a_format_are_those_with_its_suffix() -> None:
    names = ["log/monday.log", "log/monday.csv", "log/monday.json", "log/sunday.log.gz", "log/of-1200"]

    def of(log: str) -> list[str]:
        place = LogPlace(log, "log/monday.log", is_collected=True)
        return [one for one in names if place.has(one)]

    assert of("csvlog") == ["log/monday.csv"]
    assert of("jsonlog") == ["log/monday.json"]
    assert of("stderr") == ["log/monday.log", "log/of-1200"]
