"""Sets generators on arms: scripts where they can be read, logs where they can be found again."""

from __future__ import annotations

import glob
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from pgdyno.app.arm import Arm
from pgdyno.experiments.isolation import CpuSplit
from pgdyno.generators._contract import Generator, LoadRequest
from pgdyno.generators.process import LoadProcess, wait_until_connected
from pgdyno.model.experiment import Design
from pgdyno.model.workload import Workload
from pgdyno.server.workspace import Workspace

_CONNECT_TIMEOUT_S = 60.0


@dataclass(frozen=True)
class Loads:
    """Generators of one experiment: its scratch directory and its CPU split."""

    workspace: Workspace
    find_generator: Callable[[str], Generator]
    scratch: Path
    split: CpuSplit

    def start(
        self, arm: Arm, workload: Workload, design: Design, *, duration_s: float, label: str
    ) -> LoadProcess:
        """Set the generator on an arm, wait for its first transaction, and return it running."""
        generator = self.find_generator(workload.generator)
        prefix = self.log_prefix(label)
        self.forget(label)
        request = LoadRequest(
            clients=design.clients,
            threads=len(self.split.client),
            seed=design.seed,
            duration_s=int(duration_s) + 1,
            log_prefix=prefix,
        )
        command = generator.run(arm.target(), self._with_readable_scripts(workload), request)
        load = arm.load = LoadProcess(
            replace(command, environment={**command.environment, **arm.environment}),
            lambda argv: self.workspace.account.command(argv, cpus=self.split.client),
            prefix,
            self.scratch / f"generator-{label}.out",
        )
        load.start()
        wait_until_connected(load, timeout_s=_CONNECT_TIMEOUT_S)
        return load

    def log_prefix(self, label: str) -> Path:
        """Return where the generator of this label logs its transactions: ``PREFIX.*``."""
        return self.workspace.transactions() / label

    def forget(self, label: str) -> None:
        """Remove the logs of all labels that begin like this."""
        for old in self.workspace.transactions().glob(f"{glob.escape(label)}.*"):
            old.unlink()

    def _with_readable_scripts(self, workload: Workload) -> Workload:
        """Copy the user's scripts to where the generator's user can read them."""
        copies = []
        for position, script in enumerate(workload.scripts):
            if script.file is None:
                copies.append(script)
                continue
            copy = self.scratch / f"script-{position}-{script.name}"
            copy.write_bytes(Path(script.file).read_bytes())
            copy.chmod(0o644)
            copies.append(replace(script, file=str(copy)))
        return replace(workload, scripts=tuple(copies))
