"""Says how two installed builds differ besides their version: whether comparing them is confounded."""

from __future__ import annotations

from pgdyno.experiments.confounding import build_differences, is_confounded, parse_build
from pgdyno.model.facts import Unknown
from pgdyno.server.account import Account
from pgdyno.server.installation import Installation


def build_note(one: Installation, other: Installation, account: Account) -> str:
    """Return a sentence for the reader of a comparison of two builds."""
    pair = f"{one.name} and {other.name}"
    builds = []
    for installation in (one, other):
        found = installation.build_configuration(account).value
        if isinstance(found, Unknown):
            return f"CONFOUNDED: nobody knows how {installation.name} was built ({found.reason})"
        builds.append(parse_build(installation.name, found))
    differences = build_differences(*builds)
    listed = "; ".join(difference.sentence for difference in differences)
    if is_confounded(differences):
        return f"CONFOUNDED: {pair} differ in more than their version: {listed}"
    return f"{pair} were built alike" + (f"; {listed}" if listed else "")
