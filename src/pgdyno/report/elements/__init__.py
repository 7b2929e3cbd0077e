"""Elements of all reports: tables, HTML, facts and settings."""
