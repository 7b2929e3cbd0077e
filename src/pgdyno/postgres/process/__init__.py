"""PostgreSQL installations, instances and their runtime environment; pgdyno's workspace."""
