"""Receipts as JSON documents, and the steps that a receipt's state may take.

A document holds everything that a revert needs, former bytes of files included, and those may hold
secrets of the server's owner: it is written to the journal, and never shown.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from pgdyno.model.document import Json, to_document
from pgdyno.model.errors import StorageError
from pgdyno.model.plans.journal import Receipt, ReceiptState, Target
from pgdyno.model.plans.plan import Change, Effect
from pgdyno.model.ports import Found

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

    Raises: StorageError if a receipt cannot come from its state to that one: the journal is not ours.
    """
    if state not in _NEXT[receipt.state]:
        raise StorageError(f"receipt {receipt.id} cannot go from {receipt.state} to {state}")
    former_note = None if state in _CLOSING else receipt.note  # how it failed is not said of what is undone
    return replace(receipt, state=state, effective=effective or receipt.effective, note=note or former_note)


def receipt_document(receipt: Receipt) -> Json:
    """Return a new receipt as JSON, without its state.

    The state follows from later journal entries.
    """
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
        }
    )


def receipt_of(document: Mapping[str, Any]) -> Receipt:
    """Return the receipt that a document describes.

    Raises: KeyError, TypeError or ValueError if it is not a receipt's document.
    """
    change, found, server = document["change"], document["found"], document.get("server")
    _require_texts(document, "id", "apply_id", "created", "made_by")
    _require_texts(change, "lever", "kind", "key", "value")
    return Receipt(
        id=document["id"],
        apply_id=document["apply_id"],
        created=document["created"],
        made_by=document["made_by"],
        target=Target(**document["target"]),
        change=Change(**{**change, "effect": Effect(change["effect"])}),
        found=Found(value=found["value"], state=dict(found["state"])),
        server=None if server is None else Target(**server),
    )


def _require_texts(document: Mapping[str, Any], *names: str) -> None:
    for name in names:
        if not isinstance(document[name], str):
            raise TypeError(f'"{name}" is no text')
