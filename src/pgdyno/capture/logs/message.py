"""An entry's message: a statement that is executed, its duration, or both."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

_MESSAGE = re.compile(
    r"(?:duration: (?P<ms>\d+\.\d+) ms)?(?:^|  |$)"
    r"(?:(?P<step>statement|parse|bind|execute fetch from|execute)(?: [^\n]{0,200}?)?: (?P<sql>.*))?",
    re.DOTALL,
)
_PARAMETER = re.compile(r"\$(\d{1,5}) = (?:(NULL)|'((?:[^']|'')*)')(?:, |$)")
_PARAMETERS = re.compile(r"parameters: ", re.IGNORECASE)  # with a capital letter from PostgreSQL 16 on
_CUT = "..."  # the end of a value that is longer than log_parameter_max_length


@dataclass(frozen=True, slots=True)
class Logged:
    """A step of a statement, or a duration alone. ``sql`` None: it is a duration alone.

    ``is_execution``: it runs the statement, from its beginning. ``is_simple``: the text may have several
    statements. ``values`` are those of parameters by number, NULL being None, without those that
    were cut.
    """

    sql: str | None
    ms: float | None
    is_execution: bool
    is_simple: bool
    values: dict[int, str | None] = field(default_factory=dict)


def read_message(message: str, detail: str) -> Logged | None:
    """Return a message's meaning; None if it is about something else than statements."""
    found = _MESSAGE.fullmatch(message)
    if found is None or (found["ms"] is None and found["step"] is None):
        return None
    step = found["step"]
    is_execution = step in {"statement", "execute"}
    return Logged(
        sql=found["sql"],
        ms=None if found["ms"] is None else float(found["ms"]),
        is_execution=is_execution,
        is_simple=step == "statement",
        values=_values(detail) if is_execution and detail else {},
    )


def _values(detail: str) -> dict[int, str | None]:
    """Return parameters by number."""
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
