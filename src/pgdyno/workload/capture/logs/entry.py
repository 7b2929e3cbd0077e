"""An entry of a server's log, independent of the log's format, and the statement in its message."""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from datetime import datetime

from pgdyno.model.experiments.captured import Protocol
from pgdyno.workload.capture.counted_texts import arguments_of, prepared_by

_BEGINNING = datetime(1970, 1, 1)  # noqa: DTZ001 — a log names its time zone, the same in every entry
_TO_MILLISECONDS = 23  # characters: "2026-11-25 12:35:23.957"
_TO_SECONDS = 19
MOST_CHARACTERS = 1 << 17
"""Maximum length of an entry: longer ones are left out. It is Python's limit for a CSV field."""

_MESSAGE = re.compile(
    r"(?:duration: (?P<ms>\d+\.\d+) ms)?(?:^|  |$)"
    r"(?:(?P<step>statement|parse|bind|execute fetch from|execute)(?: (?P<name>[^\n]{0,200}?))?: "
    r"(?P<sql>.*))?",
    re.DOTALL,
)
_PARAMETER = re.compile(r"\$(\d{1,5}) = (?:(NULL)|'((?:[^']|'')*)')(?:, |$)")
_PARAMETERS = re.compile(r"parameters: ", re.IGNORECASE)  # with a capital letter since PostgreSQL 16
_UNNAMED = "<unnamed>"  # followed by "/" and the portal's name, if it has one
_CUT = "..."  # the end of a value truncated to log_parameter_max_length
_PREPARED = "prepare: "  # before the text of PREPARE, in the detail of EXECUTE
# As translations have it: a duration, or a statement, after a word that a statement's name may follow.
_FOREIGN = re.compile(
    r"(?!duration: )[^\W\d_]{1,30}(?: [^\s:]{1,63})? ?"
    r"(?::? ?\d+\.\d{3} \w|: ?(?i:SELECT|INSERT|UPDATE|DELETE|WITH|BEGIN|COMMIT|ROLLBACK)\b)"
)
_NOT_LOG = frozenset(
    {"DEBUG", "INFO", "NOTICE", "WARNING"}
)  # severities of messages that are not about statements


@dataclass(slots=True)  # not frozen: a log has millions, and frozen ones take twice as long to make
class LogEntry:
    """A log entry. Missing texts are empty, other missing fields are None.

    ``at_s`` is in seconds in the log's own time zone. ``line`` counts a session's entries from 1. ``query``
    is the statement during which a message came, such as an error.
    """

    at_s: float | None
    session: str
    database: str | None
    application: str
    severity: str
    message: str
    detail: str = ""
    query: str = ""
    line: int | None = None


def seconds(timestamp: str) -> float | None:
    """Return a log's timestamp in seconds, ignoring its time zone; None if it is not a timestamp."""
    for length in (_TO_MILLISECONDS, _TO_SECONDS):
        try:
            return (datetime.fromisoformat(timestamp[:length]) - _BEGINNING).total_seconds()
        except (ValueError, TypeError):
            continue
    return None


@dataclass(slots=True)
class Logged:
    """A step of a statement, or only a duration. ``sql`` is None for only a duration.

    ``is_execution``: the step runs the statement from its beginning. ``is_parse``: it only parses it.
    ``values`` are the parameters' values by number, without truncated ones; None is NULL. ``sent`` is the
    text of EXECUTE.
    """

    sql: str | None
    ms: float | None
    protocol: Protocol | None = None
    is_execution: bool = False
    is_parse: bool = False
    values: dict[int, str | None] = field(default_factory=dict)
    sent: str = ""

    @property
    def is_simple(self) -> bool:
        """Whether the text may have several statements."""
        return self.protocol == "simple"


def read_message(message: str, detail: str) -> Logged | None:
    """Return a message's content; None if it is not about a statement."""
    found = _MESSAGE.fullmatch(message)
    if found is None or (found["ms"] is None and found["step"] is None):
        return None
    step = found["step"]
    is_execution = step in {"statement", "execute"}
    logged = Logged(
        sql=found["sql"],
        ms=None if found["ms"] is None else float(found["ms"]),
        protocol=None if step is None else _protocol(step, found["name"]),
        is_execution=is_execution,
        is_parse=step == "parse",
        values=_values(detail) if is_execution and detail else {},
    )
    return logged if step != "statement" else _executed(logged, detail)


def _executed(logged: Logged, detail: str) -> Logged:
    """Return the statement that EXECUTE runs, with the constants among its arguments; PREPARE runs none."""
    sql = logged.sql or ""
    if prepared_by(sql) is not None:
        return replace(logged, is_execution=False)
    arguments, prepared = arguments_of(sql), prepared_by(detail.removeprefix(_PREPARED))
    if arguments is None or prepared is None:
        return logged
    return replace(logged, sql=prepared, protocol="prepared", values=arguments, sent=sql)


def is_foreign(entry: LogEntry) -> bool:
    """Whether an entry without a statement looks like one about a statement in another language."""
    return not entry.query and entry.severity not in _NOT_LOG and _FOREIGN.match(entry.message) is not None


def _protocol(step: str, name: str | None) -> Protocol:
    if step == "statement":
        return "simple"
    return "extended" if name is None or name.startswith(_UNNAMED) else "prepared"


def _values(detail: str) -> dict[int, str | None]:
    """Return the parameters' values by number, without truncated ones; None is NULL."""
    begins = _PARAMETERS.match(detail)
    values: dict[int, str | None] = {}
    at = -1 if begins is None else begins.end()
    while at >= 0 and (found := _PARAMETER.match(detail, at)) is not None:
        at = found.end()
        if found[2] is not None:
            values[int(found[1])] = None
        elif not found[3].endswith(_CUT):
            values[int(found[1])] = found[3].replace("''", "'")
    return values
