"""Provide servers with the functions that run queries in a loop inside them.

The functions are compiled for each server, and installed in none.

The library stays in pgdyno's own directory, by the server that it is for and the sources that it is made of;
functions in a scratch database name it by its path. An installation is never written to.
"""

from __future__ import annotations

import os
import shutil
from dataclasses import dataclass
from pathlib import Path

import psycopg
from psycopg import sql

from pgdyno.base.errors import InstallationError
from pgdyno.measure.arenas.compiled_loop_library import LoopSources, compile_library, find_headers
from pgdyno.model.experiments.loop import SCHEMA
from pgdyno.postgres.process.installation import Installation
from pgdyno.postgres.process.instance import DATABASE, Instance
from pgdyno.postgres.process.workspace import Workspace


@dataclass(frozen=True)
class LoopLibraries:
    """Compiled libraries, by installation; unfinished ones lie in ``scratch``."""

    workspace: Workspace
    scratch: Path

    def ensure(self, installation: Installation) -> Path:
        """Return the library for an installation; compile it if this is the first time.

        Raises: InstallationError naming what is missing, or with the compiler's words.
        """
        sources = LoopSources.find()
        configuration = installation.build_configuration(self.workspace.account).or_else("")
        identity = sources.identity(configuration, installation.version)
        name = f"pgdyno_loop-pg{installation.version}-{identity}.so"
        library = self.workspace.extensions() / name
        if not library.is_file():
            headers = find_headers(installation.title, installation.major, configuration)
            complete = self.scratch / name
            complete.write_bytes(self._compiled(sources, headers))
            complete.chmod(0o755)
            complete.rename(library)
        return library

    def make_functions(self, server: Instance) -> None:
        """Make the functions in a scratch server's database, in a schema of their own.

        Raises: InstallationError with the server's words if it does not take the library.
        """
        library = self.ensure(server.installation)
        script = LoopSources.find().script.replace("@extschema@", SCHEMA)
        try:
            with server.connect(DATABASE) as connection, connection.transaction():
                path = sql.Literal(str(library)).as_string(connection)
                connection.execute(f"DROP SCHEMA IF EXISTS {SCHEMA} CASCADE".encode())
                connection.execute(f"CREATE SCHEMA {SCHEMA}".encode())
                connection.execute(
                    f"GRANT USAGE ON SCHEMA {SCHEMA} TO PUBLIC".encode()
                )  # to load hosts' role
                connection.execute(f"SET LOCAL search_path = {SCHEMA}".encode())
                connection.execute(script.replace("'MODULE_PATHNAME'", path).encode())
        except psycopg.errors.Error as error:
            said = (error.diag.message_primary or str(error).strip(), error.diag.message_detail)
            raise InstallationError(
                f"{server.installation.title} does not take the functions that loop inside the server",
                detail="; ".join(filter(None, said)),
                hint=f'they are compiled again once "{library}" is removed',
            ) from error

    def _compiled(self, sources: LoopSources, headers: Path) -> bytes:
        """Compile as the servers' user, who may see less than root: headers can be anybody's."""
        place = self.scratch / "pgdyno_loop"
        made = place / "made"
        made.mkdir(parents=True)
        place.chmod(0o755)
        sources.write(place)
        self.workspace.account.own(made)
        try:
            compile_library(place, headers, made / "library", self.workspace.account.run_as)
            # In a directory of that user's a name could be a link to anywhere.
            with os.fdopen(os.open(made / "library", os.O_RDONLY | os.O_NOFOLLOW), "rb") as file:
                return file.read()
        finally:
            shutil.rmtree(place)
