"""What ``make`` runs besides tests: templates and reference pages."""
