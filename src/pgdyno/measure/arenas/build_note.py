"""Describe how two builds differ besides their version (confounded comparisons)."""

from __future__ import annotations

from pgdyno.base.facts import Unknown
from pgdyno.model.plans.confounding import Build, build_differences, is_confounded, parse_build
from pgdyno.model.plans.recipe import patches_in
from pgdyno.postgres.process.account import Account
from pgdyno.postgres.process.installation import Installation


def build_note(one: Installation, other: Installation, account: Account, *, is_accepted: bool = False) -> str:
    """Return a sentence for the reader of a comparison of two builds.

    It begins with CONFOUNDED if they differ in more than their version, unless that ``is_accepted``: then
    the differences are listed all the same.
    """
    mark = "accepted" if is_accepted else "CONFOUNDED"
    pair = f"{one.name} and {other.name}"
    builds = []
    for installation in (one, other):
        build = _build(installation, account)
        if isinstance(build, Unknown):
            return f"{mark}: it is unknown how {installation.name} was built ({build.reason})"
        builds.append(build)
    differences = build_differences(*builds)
    listed = "; ".join(difference.sentence for difference in differences)
    if is_confounded(differences):
        return f"{mark}: {pair} differ in more than their version: {listed}"
    return f"{pair} were built alike" + (f"; {listed}" if listed else "")


def patch_note(installation: Installation, account: Account) -> str | None:
    """Return a sentence on a server from patched sources, by its own word; None for all others."""
    found = installation.build_configuration(account).value
    patches = () if isinstance(found, Unknown) else patches_in(found)
    if not patches:
        return None
    return f"PATCHED: {installation.title} is not PostgreSQL as it was released: {', '.join(patches)}"


def _build(installation: Installation, account: Account) -> Build | Unknown:
    found = installation.build_configuration(account).value
    if isinstance(found, Unknown):
        return found
    return parse_build(installation.name, found, version_text=installation.version_text().or_else(""))
