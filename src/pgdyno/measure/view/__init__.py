"""Series, verdicts and effects as words, tables and charts. Pure."""
