"""Transactions that pgdyno-driver has given up because of an error, such as a key that is there already.

A captured workload has some: its parameters are drawn one by one. They count in no rate.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

from pgdyno.model import numbers
from pgdyno.model.errors import GeneratorFailedError

MOST_ERRORS = 1_000_000
"""As many may be given up before the driver ends; ``require_few`` looks at their share."""

_MOST_SHARE = 0.1  # arbitrary: with more, what is measured is mostly how errors are made


def errors_of(arm: Mapping[str, Any]) -> dict[str, int]:
    """Return the transactions of an arm that were given up, by SQLSTATE."""
    errors: Counter[str] = Counter()
    for role in arm["roles"]:
        errors.update(role["errors"])
    return dict(errors)


def errors_text(errors: Mapping[str, int]) -> str:
    """Return them in words."""
    return ", ".join(f"{count} of SQLSTATE {code}" for code, count in errors.items())


def require_few(phase: Mapping[str, Any]) -> None:
    """Raise GeneratorFailedError, naming arm and errors, if too many transactions were given up."""
    for arm in phase["arms"]:
        require_few_errors(arm["name"], sum(role["transactions"] for role in arm["roles"]), errors_of(arm))


def require_few_errors(server: str, transactions: int, errors: Mapping[str, int]) -> None:
    """Raise GeneratorFailedError if too many transactions were given up beside those that were not."""
    failed = sum(errors.values())
    share = failed / (failed + transactions) if failed else 0.0
    if share > _MOST_SHARE:
        raise GeneratorFailedError(
            f"{numbers.share(share)} of the transactions failed on the server of {server}",
            detail=f"{errors_text(errors)}; at most {numbers.share(_MOST_SHARE)} may",
            hint="the server's log, or pgdyno workload replay on a copy, shows which statement fails: "
            "mend its parameters in the workload's file",
        )
