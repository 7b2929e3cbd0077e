"""Receipts as JSON documents, and the transitions between their states.

A document contains everything that a revert needs, including original file contents, which may contain
secrets of the server's owner: it is written to the journal, and never shown. A document that no writer of
pgdyno can have written is damage: it is neither restored nor shown as a command for root's shell.
"""

from __future__ import annotations

import posixpath
import re
import stat
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from fnmatch import fnmatchcase
from pathlib import Path, PurePosixPath
from types import MappingProxyType
from typing import Any

from pgdyno.apply.writers.kernel_file import reset_with_key
from pgdyno.apply.writers.persisted_file import MADE, MODE
from pgdyno.base.errors import StorageError
from pgdyno.base.facts import Json, to_document
from pgdyno.base.ports import Found
from pgdyno.host import own_account
from pgdyno.host.cache_allocation import OF_GROUP, OF_OTHERS, RESCTRL
from pgdyno.host.kernel_file import reset_by
from pgdyno.host.msr import PREFETCHERS, register_of
from pgdyno.model.plans.journal import Receipt, ReceiptState, Target
from pgdyno.model.plans.plan import (
    ACCOUNT,
    CACHE_GROUP,
    CACHE_MOUNT,
    HUGE_PAGES,
    KERNEL,
    MSR,
    PERSISTED_FILE,
    PG_CTL_OPTIONS,
    PROGRAM_LINK,
    SETTING,
    Change,
    Effect,
    kind_of,
)
from pgdyno.model.variants.durability import is_never_applied, why_never_written
from pgdyno.postgres import pg_ctl_conf

_PERSISTED = re.compile(r"/etc/(sysctl\.d|tmpfiles\.d|udev/rules\.d)/60-pgdyno[\w.-]*", re.ASCII)
_CLOSING = frozenset({ReceiptState.REVERTED, ReceiptState.RELEASED})
_NEXT = {
    ReceiptState.WRITTEN: {ReceiptState.APPLIED, ReceiptState.FAILED} | _CLOSING,
    ReceiptState.APPLIED: {ReceiptState.VERIFIED, ReceiptState.FAILED} | _CLOSING,
    ReceiptState.VERIFIED: _CLOSING,
    ReceiptState.FAILED: _CLOSING,
    ReceiptState.REVERTED: frozenset[ReceiptState](),
    ReceiptState.RELEASED: frozenset[ReceiptState](),
}


def advanced(
    receipt: Receipt, state: ReceiptState, *, effective: str | None = None, note: str | None = None
) -> Receipt:
    """Return the receipt in its next state.

    Raises: StorageError for an impossible transition: pgdyno did not write the journal.
    """
    if state not in _NEXT[receipt.state]:
        raise StorageError(f"receipt {receipt.id} cannot change from {receipt.state} to {state}")
    former_note = None if state in _CLOSING else receipt.note  # a failure's note ends when it is undone
    former = None if state is ReceiptState.REVERTED else receipt.effective  # undone, a key may have no value
    return replace(receipt, state=state, effective=effective or former, note=note or former_note)


def receipt_document(receipt: Receipt) -> Json:
    """Return a new receipt as JSON, without its state, which follows from later journal entries."""
    return to_document(
        {
            "id": receipt.id,
            "apply_id": receipt.apply_id,
            "created": receipt.created,
            "made_by": receipt.made_by,
            "target": receipt.target,
            "change": receipt.change,
            "found": receipt.found,
            "server": receipt.server,
            "restart_command": receipt.restart_command,
        }
    )


def receipt_of(document: Mapping[str, Any]) -> Receipt:
    """Return the receipt that a document describes.

    Raises: KeyError, TypeError or ValueError if it is not a receipt's document, or pgdyno cannot have written
    it.
    """
    change, found, server = document["change"], document["found"], document.get("server")
    command = document.get("restart_command", [])  # older receipts have none
    _require_texts(document, "id", "apply_id", "created", "made_by")
    if not isinstance(command, list) or not all(isinstance(word, str) for word in command):
        raise TypeError("the restart command is not a list of words")
    _require_texts(change, "lever", "kind", "key", "value")
    receipt = Receipt(
        id=document["id"],
        apply_id=document["apply_id"],
        created=document["created"],
        made_by=document["made_by"],
        target=Target(**document["target"]),
        change=Change(**{**change, "effect": Effect(change["effect"])}),
        found=Found(value=found["value"], state=dict(found["state"])),
        server=None if server is None else Target(**server),
        restart_command=tuple(command),
    )
    _require_own(receipt)
    return receipt


def _require_texts(document: Mapping[str, Any], *names: str) -> None:
    for name in names:
        if not isinstance(document[name], str):
            raise TypeError(f'"{name}" is not a string')


def _require_own(receipt: Receipt) -> None:
    """Raise ValueError for a change that no writer makes, or that restores more than a writer changes."""
    kind, key = receipt.change.kind, receipt.key
    if kind not in _KEYS or not _KEYS[kind](key):
        raise ValueError(f'pgdyno does not make changes of kind "{kind}" to {key}')
    if kind == SETTING:
        values = (receipt.found.value or "", receipt.change.value)
        strange = [f'"{value}"' for value in values if is_never_applied(key, value)]
    elif kind in (KERNEL, HUGE_PAGES):
        strange = [path for path in reset_with_key(receipt.found) if not _is_one_of(path, reset_by(key))]
    elif kind == MSR:
        strange = _strange_bits(receipt)
    elif kind == PERSISTED_FILE:
        strange = [*_strange_directories(key, receipt.found), *_strange_mode(receipt.found)]
    elif kind == PG_CTL_OPTIONS:
        found, wanted = (_without_program(one) for one in (receipt.found.value, receipt.change.value))
        strange = [] if found == wanted else [found]
    else:
        strange = []
    if strange:
        raise ValueError(f"a change of {key} cannot include {', '.join(strange)}")


def _is_one_of(path: str, patterns: Iterable[str]) -> bool:
    return posixpath.normpath(path) == path and any(fnmatchcase(path, one) for one in patterns)


def _strange_bits(receipt: Receipt) -> list[str]:
    """Return the changed bits of a register that are not prefetcher controls."""
    register = register_of(receipt.key)
    others = ~(register.changeable_bits if register else 0)
    bits = (int(receipt.found.value or "0", 16) ^ int(receipt.change.value, 16)) & others
    return [f"the bits {bits:#x}"] if bits else []


def _strange_directories(key: str, found: Found) -> list[str]:
    """Return the directories to remove with a file that are not its parents."""
    above = {str(one) for one in PurePosixPath(key).parents}
    return [one for one in found.state.get(MADE, "").split("\n") if one and one not in above]


def _strange_mode(found: Found) -> list[str]:
    """Return a set-user-ID or set-group-ID mode, which no persisted file has."""
    mode = int(found.state.get(MODE, "0"))
    return [f"mode {mode:o}"] if mode & (stat.S_ISUID | stat.S_ISGID) else []


def _is_kernel_file(path: str) -> bool:
    is_there = posixpath.normpath(path) == path and path.startswith(("/proc/sys/", "/proc/irq/", "/sys/"))
    return is_there and why_never_written(path) is None


def _is_prefetch_control(key: str) -> bool:
    register = register_of(key)
    return register is not None and register.number in PREFETCHERS


def _is_link(path: str) -> bool:
    return path.startswith("/") and posixpath.normpath(path) == path


def _without_program(options: str | None) -> str:
    return pg_ctl_conf.naming(options or "", Path("postgres"))


_KEYS: Mapping[str, Callable[[str], bool]] = MappingProxyType(
    {
        SETTING: lambda name: not is_never_applied(name, ""),
        KERNEL: lambda path: _is_kernel_file(path) and kind_of(path) == KERNEL,
        HUGE_PAGES: lambda path: _is_kernel_file(path) and kind_of(path) == HUGE_PAGES,
        MSR: _is_prefetch_control,
        CACHE_MOUNT: {RESCTRL}.__contains__,
        CACHE_GROUP: {OF_GROUP, OF_OTHERS}.__contains__,
        PERSISTED_FILE: lambda path: _PERSISTED.fullmatch(path) is not None,
        ACCOUNT: {own_account.KEY}.__contains__,
        PG_CTL_OPTIONS: lambda path: _is_link(path) and PurePosixPath(path).name == "pg_ctl.conf",
        PROGRAM_LINK: _is_link,
    }
)
"""Whether a writer can have changed a key, by kind of change; one function for each writer."""
