"""Obtains PostgreSQL servers: from sources, built with equal flags for every version, or as fast as can be.

Start reading in ``source_build.py`` (how one is built with plain flags), ``build_plan.py`` (which flags a
faster one takes) and ``private_apt.py`` (where the sources come from).
This package never installs a system package and never writes a file of the host's own apt.
"""
