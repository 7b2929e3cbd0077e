"""Failed transactions: aborted by an error and not retried. They do not count in any rate.

A rollback requested by a script is not a failure.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from pgdyno.base import numbers
from pgdyno.base.errors import GeneratorFailedError

MOST_FAILED_SHARE = 0.05
"""Of a server's transactions. Arbitrary: with more, a rate mostly measures error handling."""
FAILED_TRIAL = " is a failed trial: "
"""In an experiment's notes, between the name of a variant without data and the reason."""
_MOST_NAMED = 4
_CONDITIONS = {
    "21000": "cardinality_violation",
    "22001": "string_data_right_truncation",
    "22003": "numeric_value_out_of_range",
    "22004": "null_value_not_allowed",
    "22007": "invalid_datetime_format",
    "22008": "datetime_field_overflow",
    "22012": "division_by_zero",
    "22021": "character_not_in_repertoire",
    "22023": "invalid_parameter_value",
    "2202E": "array_subscript_error",
    "22P02": "invalid_text_representation",
    "22P03": "invalid_binary_representation",
    "23000": "integrity_constraint_violation",
    "23502": "not_null_violation",
    "23503": "foreign_key_violation",
    "23505": "unique_violation",
    "23514": "check_violation",
    "23P01": "exclusion_violation",
    "25006": "read_only_sql_transaction",
    "25P02": "in_failed_sql_transaction",
    "40001": "serialization_failure",
    "40P01": "deadlock_detected",
    "42501": "insufficient_privilege",
    "42601": "syntax_error",
    "42703": "undefined_column",
    "42704": "undefined_object",
    "42804": "datatype_mismatch",
    "42883": "undefined_function",
    "42P01": "undefined_table",
    "42P10": "invalid_column_reference",
    "42P18": "indeterminate_datatype",
    "44000": "with_check_option_violation",
    "53100": "disk_full",
    "53200": "out_of_memory",
    "53300": "too_many_connections",
    "54000": "program_limit_exceeded",
    "55000": "object_not_in_prerequisite_state",
    "55P03": "lock_not_available",
    "57014": "query_canceled",
    "57P01": "admin_shutdown",
    "P0001": "raise_exception",
    "P0002": "no_data_found",
    "XX000": "internal_error",
    "XX001": "data_corrupted",
}
"""Names of errors that statements cause, by SQLSTATE, from PostgreSQL's errcodes.txt."""
_NAME = r'"[^"]{1,63}"'
_WITHOUT_VALUES = re.compile(
    r"ERROR: +("
    r"(?:(?:duplicate|conflicting) key value|value for domain [\w.]+"
    rf"|(?:insert|update) or (?:update|delete) on table {_NAME}"
    rf"|new row for relation {_NAME}|null value in column {_NAME}(?: of relation {_NAME})?)"
    rf" violates [a-zA-Z -]+ constraint(?: {_NAME}(?: on table {_NAME})?)?"
    rf"|new row violates row-level security policy (?:{_NAME} )?for table {_NAME}"
    r"|permission denied for [a-z -]+ [\w.]+)$",
    re.MULTILINE,
)
"""Errors in a server's log that name only tables, columns and constraints; others may have values of rows."""


@dataclass(frozen=True)
class Failures:
    """Transactions that failed for one reason; ``statement`` is empty if the generator reports none."""

    sqlstate: str
    count: int
    statement: str = ""

    @property
    def error(self) -> str:
        """The SQLSTATE with the error's name, if it is known. Messages may contain values of rows."""
        name = _CONDITIONS.get(self.sqlstate)
        return f"{self.sqlstate} ({name})" if name else self.sqlstate


def failed_share(transactions: int, failures: Iterable[Failures]) -> float:
    """Return the failed share of all transactions; ``transactions`` is the number of successful ones."""
    failed = sum(one.count for one in failures)
    return failed / (failed + transactions) if failed else 0.0


def added_up(failures: Iterable[Failures]) -> tuple[Failures, ...]:
    """Return one entry for each reason, the most frequent first."""
    counts: Counter[tuple[str, str]] = Counter()
    for one in failures:
        counts[one.sqlstate, one.statement] += one.count
    return tuple(Failures(code, count, statement) for (code, statement), count in counts.most_common())


def failures_text(failures: Iterable[Failures]) -> str:
    """Return the failures in words, the most frequent first."""
    found = added_up(failures)
    listed = ", ".join(
        f"{one.count} of SQLSTATE {one.error}{f' in {one.statement}' if one.statement else ''}"
        for one in found[:_MOST_NAMED]
    )
    return f"{listed}, and {len(found) - _MOST_NAMED} other reasons" if len(found) > _MOST_NAMED else listed


def require_few(server: str, transactions: int, failures: Iterable[Failures], log: str = "") -> None:
    """Raise GeneratorFailedError if more than ``MOST_FAILED_SHARE`` of a server's transactions failed.

    ``log`` is the end of the log of a server that is deleted with it. Its errors are shown, without values.
    """
    found = added_up(failures)
    share = failed_share(transactions, found)
    if share > MOST_FAILED_SHARE:
        raise GeneratorFailedError(
            f"{numbers.share(share)} of the transactions failed on the server of {server}",
            detail="\n         ".join(
                (
                    f"{failures_text(found)}; at most {numbers.share(MOST_FAILED_SHARE)} may fail",
                    *dict.fromkeys(_WITHOUT_VALUES.findall(log)),
                )
            ),
            hint=("" if "ERROR: " in log else "the server's log shows the errors: ")
            + "fix the script, or the statements' parameters in the workload's file",
        )
