"""An entry's message: a statement that is executed, its duration, or both."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from pgdyno.model.experiments.captured import Protocol

_MESSAGE = re.compile(
    r"(?:duration: (?P<ms>\d+\.\d+) ms)?(?:^|  |$)"
    r"(?:(?P<step>statement|parse|bind|execute fetch from|execute)(?: (?P<name>[^\n]{0,200}?))?: "
    r"(?P<sql>.*))?",
    re.DOTALL,
)
_PARAMETER = re.compile(r"\$(\d{1,5}) = (?:(NULL)|'((?:[^']|'')*)')(?:, |$)")
_PARAMETERS = re.compile(r"parameters: ", re.IGNORECASE)  # with a capital letter from PostgreSQL 16 on
_UNNAMED = "<unnamed>"  # and after it "/" and the name of a portal, if that has one
_CUT = "..."  # the end of a value that is longer than log_parameter_max_length


@dataclass(frozen=True, slots=True)
class Logged:
    """A step of a statement, or a duration alone. ``sql`` None: it is a duration alone.

    ``protocol`` is how the statement was sent. ``is_execution``: it runs the statement, from its beginning;
    ``is_parse``: it is read alone. ``values`` are those of parameters by number, NULL being None, without
    those that were cut.
    """

    sql: str | None
    ms: float | None
    protocol: Protocol | None = None
    is_execution: bool = False
    is_parse: bool = False
    values: dict[int, str | None] = field(default_factory=dict)

    @property
    def is_simple(self) -> bool:
        """Whether the text may have several statements."""
        return self.protocol == "simple"


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
        protocol=None if step is None else _protocol(step, found["name"]),
        is_execution=is_execution,
        is_parse=step == "parse",
        values=_values(detail) if is_execution and detail else {},
    )


def _protocol(step: str, name: str | None) -> Protocol:
    if step == "statement":
        return "simple"
    return "extended" if name is None or name.startswith(_UNNAMED) else "prepared"


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
