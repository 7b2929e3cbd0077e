"""PostgreSQL servers: embedded, managed and attached ones; nouns beside the rooms."""
