"""pgdyno: put PostgreSQL on the dyno — measure it, make it faster, prove it, undo it.

Start reading at ARCHITECTURE.md, then ``model/`` (nouns that subjects share), then ``studies/compare.py``
(the way of the data).
"""

__version__ = "0.1.0.dev0"
