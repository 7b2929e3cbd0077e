"""Whose time the server counts, of the messages that a stack was sampled in.

The server adds up the time of sessions in transactions when their state changes. Parse, Bind and Execute of
the extended protocol all say "active": each begins the time anew, and only Execute's is added
(pgstat_report_activity of 14 to 18). So the time of Parse and Bind is missing, and planning with it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

_LOOP = "PostgresMain"
# Compilers inline the functions of the two messages into the loop that reads messages. What these call is
# called by others as well, but not from that loop: by Execute below PortalRun, or by exec_simple_query.
_PARSE_OR_BIND = re.compile(
    r"(exec_(parse|bind)_message|pg_parse_query|pg_analyze_and_rewrite_(var)?params|parse_analyze_varparams"
    r"|(Create|Complete|Get|Drop)CachedPlan|(Fetch|Store)PreparedStatement"
    r"|CreatePortal|PortalDefineQuery|PortalStart|Oid(Input|Receive)FunctionCall)(\..*)?"
)


def is_counted(frames: Sequence[str]) -> bool:
    """Whether the server counts the time that a stack was sampled in. ``frames`` are innermost first."""
    called = frames[frames.index(_LOOP) - 1] if _LOOP in frames[1:] else ""
    return _PARSE_OR_BIND.fullmatch(called) is None
