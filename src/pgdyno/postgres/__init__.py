"""PostgreSQL servers: embedded, managed and attached. Modules at this level define shared data types."""
