"""Whose time the server counts, of the messages that a stack was sampled in.

The server adds the time of a session in a transaction when the session's state changes. Parse, Bind and
Execute of the extended protocol all set it to active and restart its clock (pgstat_report_activity of 14 to
18). So the time of Parse and Bind is missing, and planning with it; of a pipeline, all but the last Execute.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

_LOOP = "PostgresMain"
# Compilers inline the functions of the two messages into the loop that reads messages. What these call is
# called by others as well, but not from that loop: by Execute below PortalRun, or by exec_simple_query.
_PARSE_OR_BIND = re.compile(
    r"(exec_(parse|bind)_message|pg_parse_query|pg_analyze_and_rewrite_(var)?params|parse_analyze_varparams"
    r"|pg_rewrite_query|SendRowDescriptionMessage|(Create|Complete|Get|Drop)CachedPlan"
    r"|(Fetch|Store)PreparedStatement|CreatePortal|PortalDefineQuery|PortalStart|Oid(Input|Receive)FunctionCall)(\..*)?"
)


def uncounted_share(stacks: Sequence[Sequence[str]]) -> float | None:
    """Return the share of sessions' stacks in Parse or Bind; None if no stack tells a message.

    ``stacks`` are functions, innermost first. The last Execute of a pipeline is taken for all of them, and a
    Parse that is not followed by Bind for one that is.
    """
    called = [frames[frames.index(_LOOP) - 1] for frames in stacks if _LOOP in frames[1:]]
    if not called:
        return None
    return sum(_PARSE_OR_BIND.fullmatch(one) is not None for one in called) / len(called)
