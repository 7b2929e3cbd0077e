"""The peers' configurations for one server and machine. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from pgdyno.base.facts import Unknown
from pgdyno.plan.peers import load
from pgdyno.plan.peers._contract import Peer, PeerFacts, Purpose
from pgdyno.plan.peers.comparable import comparable, left_out_notes, with_room_for
from pgdyno.postgres.server import Server


@dataclass(frozen=True)
class ConfiguredPeers:
    """Settings by peer, with notes on their source and on values left out or raised."""

    settings: Mapping[str, Mapping[str, str]]
    notes: tuple[str, ...]


def configured_peers(server: Server, facts: PeerFacts, clients: int) -> ConfiguredPeers:
    """Return every peer's settings for these facts, with enough connections for that number of clients."""
    found: dict[str, Mapping[str, str]] = {}
    notes: list[str] = []
    for name, peer in load().items():
        recommended = peer.settings(facts)
        if isinstance(recommended, Unknown):
            notes.append(f"{name} ({peer.title_for(facts.purpose)}) is not compared: {recommended.reason}")
            continue
        accepted = comparable(server, recommended)
        found[name] = with_room_for(clients, server, accepted.settings)
        notes.append(f"{name}: {peer.title_for(facts.purpose)} ({peer.source})")
        notes += _notes(name, peer, accepted.settings, found[name])
        notes += left_out_notes(name, accepted.left_out)
    return ConfiguredPeers(found, (*_purpose_notes(facts.purpose), *notes))


def _purpose_notes(purpose: Purpose) -> Iterator[str]:
    """Yield a note on the peers with a separate configuration for this kind of load.

    None for transaction processing.
    """
    if purpose is Purpose.TRANSACTIONS:
        return
    aware = [f"{name} ({peer.kinds[purpose]})" for name, peer in load().items() if purpose in peer.kinds]
    others = [name for name, peer in load().items() if purpose not in peer.kinds]
    yield (
        f"configured for {purpose.value}: {', '.join(aware)}; {', '.join(others)} have the same "
        "configuration for all kinds of load"
    )


def _notes(name: str, peer: Peer, accepted: Mapping[str, str], given: Mapping[str, str]) -> Iterator[str]:
    if peer.left_out:
        yield f"{name} without {peer.left_out}"
    if accepted != given:
        needed, had = given["max_connections"], accepted.get("max_connections", "the server's value")
        yield f"{name} with max_connections = {needed} instead of {had}: required by the load"
