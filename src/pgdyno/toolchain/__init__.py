"""Obtains PostgreSQL servers: source packages of the distribution, built with equal flags for every version.

Start reading in ``source_build.py`` (how one is built) and ``private_apt.py`` (where the sources come from).
This package never installs a system package and never writes a file of the host's own apt.
"""
