"""What every report is made of: tables, HTML, facts and settings."""
