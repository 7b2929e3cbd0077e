"""Progress of a fleet while it runs: a table on a terminal, lines elsewhere."""

from __future__ import annotations

import sys
import time
from math import inf
from typing import TYPE_CHECKING

from pgdyno.cli.output import Lines, LiveTable

if TYPE_CHECKING:
    from pgdyno.model.fleets.fleet_order import FleetOrder
    from pgdyno.model.fleets.trial_store import TrialStore

_TABLE_EVERY_S = 2.0  # arbitrary: it reads all trials
_LINE_EVERY_S = 15.0  # arbitrary: seldom enough for a log


class FleetWatch:
    """Looks at a fleet's store now and then."""

    def __init__(self, order: FleetOrder, budget_s: float | None) -> None:
        """Begin with nothing to show."""
        self._order, self._budget_s = order, budget_s
        self._shown = LiveTable() if sys.stderr.isatty() else Lines()
        self._looked_s = -inf
        self._line = ""

    def look(self, store: TrialStore) -> None:
        """Show how far it is, unless that was just done."""
        every_s = _TABLE_EVERY_S if isinstance(self._shown, LiveTable) else _LINE_EVERY_S
        if time.monotonic() - self._looked_s < every_s:
            return
        from rich.console import Group

        from pgdyno.app.fleets.fleet_state import progress_in
        from pgdyno.report.elements.terminal import PlainTable, plain_text
        from pgdyno.report.plain.fleet_progress_text import progress_line, progress_table

        found = progress_in(store, self._order, self._budget_s)
        line = progress_line(found)
        self._looked_s = time.monotonic()
        if isinstance(self._shown, LiveTable):
            self._shown.show(Group(plain_text(line), PlainTable(progress_table(found))))
        elif line != self._line:
            self._line = line
            self._shown.step(line)

    def say(self, what: str) -> None:
        """Show a line in the place of the table, or below the lines before."""
        from pgdyno.report.elements.terminal import plain_text

        if isinstance(self._shown, LiveTable):
            self._shown.show(plain_text(what))
        else:
            self._shown.step(what)

    def close(self) -> None:
        """Take the table away."""
        self._shown.close()
