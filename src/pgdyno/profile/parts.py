"""Assign a sampled stack to a part of PostgreSQL's work, by the names of its functions.

A stack belongs to the first part in the list that contains any of its functions. Common helpers (memory,
buffers, hash tables) therefore count for the part that called them. The functions of a part never call work
of a part further down the list. Names are those of PostgreSQL 12 to 18.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache

PLANNING = "planning"
PARSING = "parsing"
WAL_FLUSH = "WAL: writing and flushing"
WAL_RECORDS = "WAL: making records"
LOCKS = "locks on relations and rows"
SPINLOCKS = "spinlocks"
PAGES_READ = "reading pages into shared buffers"
SENDING = "sending answers"
RECEIVING = "receiving statements"
ROWS_OUT = "rows into answers"
SORTING = "sorting"
INDEX_CHANGES = "changing indexes"
INDEX_LOOKUPS = "index lookups"
ROW_CHANGES = "changing rows"
ROWS_READ = "reading rows"
AGGREGATES = "hashing and aggregating"
PLPGSQL = "PL/pgSQL"
FUNCTIONS = "expressions and functions"
TRANSACTIONS = "beginning and ending transactions"
EXECUTOR = "executor, the rest"
HANDLING = "handling of statements"
OTHER = "other"
# Generic waiting functions such as WaitEventSetWait belong to no part: the caller decides.
_FUNCTIONS: dict[str, tuple[str, ...]] = {
    PLANNING: (
        r"pg_plan_quer(y|ies)|planner|standard_planner|pgss_planner|BuildCachedPlan|choose_custom_plan",
    ),
    PARSING: (
        r"pg_parse_query|raw_parser|base_yyparse|pg_analyze_and_rewrite\w*|parse_analyze\w*",
        r"pg_rewrite_query|QueryRewrite|pgss_post_parse_analyze|exec_parse_message",
    ),
    WAL_FLUSH: (r"XLogFlush|XLogWrite|issue_xlog_fsync|XLogBackgroundFlush|XLogFileInit\w*",),
    WAL_RECORDS: (r"XLogInsert|XLogInsertRecord|XLogRegister\w+|XLogBeginInsert|log_heap_\w+",),
    LOCKS: (
        r"LockAcquire\w*|LockRelease\w*|ProcSleep|ProcLockWakeup|AcquireExecutorLocks|XactLockTable\w+",
        r"(Lock|Unlock|ConditionalLock)(Relation|Tuple|Page)\w*|MultiXactId\w+|ResourceOwnerReleaseAllOfKind",
    ),
    SPINLOCKS: (r"s_lock|perform_spin_delay|WaitBufHdrUnlocked",),
    PAGES_READ: (  # none of these is called for a page already in shared buffers
        r"WaitReadBuffers|AsyncReadBuffers|smgr(start)?readv?|md(start)?readv?|FileRead\w*|FileStartReadV",
        r"GetVictimBuffer|InvalidateVictimBuffer|StrategyGetBuffer|FlushBuffer|pgaio_\w+",
    ),
    SENDING: (
        r"socket_flush\w*|internal_flush\w*|secure_write|be_tls_write|pq_flush\w*|socket_is_send_pending",
    ),
    RECEIVING: (r"secure_(raw_)?read|be_tls_read|pq_recvbuf|pq_getbyte|pq_getmessage|pq_startmsgread",),
    ROWS_OUT: (r"printtup\w*|SendRowDescription\w*|pq_endmessage_reuse",),
    SORTING: (r"tuplesort_\w+|qsort_tuple\w*|qsort_ssup|qsort_specialized\w*",),
    INDEX_CHANGES: (
        r"ExecInsertIndexTuples|index_insert|_bt_doinsert|(bt|hash|gin|gist|brin|spg)insert|CatalogIndexInsert",
    ),
    INDEX_LOOKUPS: (
        r"_bt_\w+|bt(gettuple|getbitmap|rescan|beginscan|endscan)|index_getnext_tid|index_getbitmap",
        r"index_(begin|re|end)scan\w*|(hash|gist|spg)gettuple|(hash|gin|gist|brin|spg)getbitmap",
    ),
    ROW_CHANGES: (
        r"heap_(insert|update|delete|multi_insert|lock_tuple|lock_updated_tuple\w*)|simple_heap_\w+",
        r"heapam_tuple_(insert|update|delete|lock)\w*|heap_toast_\w+|RelationGetBufferForTuple|ExecModifyTable",
        r"Exec(Insert|Update|Delete|Merge)\w*|copy_multi_insert_buffer|CopyMultiInsert\w*",
    ),
    ROWS_READ: (
        r"heap_\w+|heapam_\w+|heapgettup\w*|index_fetch_heap|index_getnext_slot|Index(Only)?Next\w*|SeqNext",
        r"Exec(Index|IndexOnly|Seq|Sample|Tid|TidRange)Scan\w*|ExecBitmap\w+|Bitmap\w+|tbm_\w+",
        r"table_(scan|index|block)\w+",
    ),
    AGGREGATES: (r"Exec(Hash|HashJoin\w*|Agg|Unique|Group|WindowAgg)|MultiExec(Private)?Hash|agg_\w+",),
    PLPGSQL: (r"plpgsql_\w+|exec_stmt\w*|exec_eval_\w+",),
    FUNCTIONS: (r"ExecInterpExpr\w*|ExecEval\w+|slot_getsomeattrs\w*|tts_\w+_getsomeattrs|FunctionCall\w+",),
    TRANSACTIONS: (
        r"StartTransaction\w*|(Commit|Abort|Cleanup)Transaction\w*|(start|finish)_xact_command",
        r"RecordTransactionCommit|pgstat_report_stat\w*|(Begin|End)TransactionBlock|ProcArray\w+",
        r"GetSnapshotData|GetTransactionSnapshot",
    ),
    EXECUTOR: (
        r"(standard_|pgss_)?Executor\w+|Exec\w+|CreateExecutorState|FreeExecutorState|CreateQueryDesc",
    ),
    HANDLING: (
        r"PostgresMain|exec_(bind|execute|simple|describe)\w*|Portal\w+|CreatePortal|GetCachedPlan",
        r"ProcessUtility\w*|standard_ProcessUtility",
    ),
}
_PATTERNS = tuple(re.compile("|".join(patterns)) for patterns in _FUNCTIONS.values())
_PARTS = (*_FUNCTIONS, OTHER)
_CLONE = re.compile(r"\.(isra|part|constprop|cold|lto_priv|llvm|warm)\b.*")  # suffixes added by compilers
# The server adds up a session's time in transactions when the session's state changes. Parse, Bind and
# Execute of the extended protocol all set the state to active and restart its clock (pgstat_report_activity
# of 14 to 18). So the time of Parse and Bind is missing, including planning; in a pipeline, also that of all
# Executes but the last.
_LOOP = "PostgresMain"
# Compilers inline the functions of the two messages into the loop that reads messages. Their callees have
# other callers too, but not in that loop: Execute calls them below PortalRun, or exec_simple_query does.
_PARSE_OR_BIND = re.compile(
    r"(exec_(parse|bind)_message|pg_parse_query|pg_analyze_and_rewrite_(var)?params|parse_analyze_varparams"
    r"|pg_rewrite_query|SendRowDescriptionMessage|(Create|Complete|Get|Drop)CachedPlan"
    r"|(Fetch|Store)PreparedStatement|CreatePortal|PortalDefineQuery|PortalStart|Oid(Input|Receive)FunctionCall)(\..*)?"
)


def part_of(frames: Sequence[str]) -> str:
    """Return the part that a stack of functions belongs to."""
    return _PARTS[min(map(_rank, frames), default=len(_PATTERNS))]


@lru_cache(maxsize=65536)
def _rank(function: str) -> int:
    """Return the position of the first part that a function belongs to."""
    name = _CLONE.sub("", function)
    ranks = (rank for rank, pattern in enumerate(_PATTERNS) if pattern.fullmatch(name))
    return next(ranks, len(_PATTERNS))


def uncounted_share(stacks: Sequence[Sequence[str]]) -> float | None:
    """Return the share of sessions' stacks in Parse or Bind; None if no stack shows a message.

    ``stacks`` are functions, innermost first. All Executes of a pipeline are assumed to be counted like the
    last one, and each Parse to be followed by Bind.
    """
    called = [frames[frames.index(_LOOP) - 1] for frames in stacks if _LOOP in frames[1:]]
    if not called:
        return None
    return sum(_PARSE_OR_BIND.fullmatch(one) is not None for one in called) / len(called)
