"""Configurations recommended by other tools: each module of this package is one peer.

``tuned_profile`` is not a peer: TuneD's profile applies to the whole machine, so it cannot differ between
servers.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Mapping
from functools import cache
from types import MappingProxyType
from typing import cast

from pgdyno.plan.peers._contract import Peer


@cache
def load() -> Mapping[str, Peer]:
    """Return every peer by name: the module's name with hyphens."""
    names = (module.name for module in pkgutil.iter_modules(__path__) if not module.name.startswith("_"))
    modules = {name: importlib.import_module(f"{__name__}.{name}") for name in sorted(names)}
    found = {name.replace("_", "-"): getattr(module, "PEER", None) for name, module in modules.items()}
    return MappingProxyType({name: cast("Peer", peer) for name, peer in found.items() if peer is not None})
