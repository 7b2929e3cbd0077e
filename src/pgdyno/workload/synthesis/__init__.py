"""From statistics of tables to made-up rows that have them. Pure."""
