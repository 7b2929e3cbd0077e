"""What PostgreSQL's configuration files say, and who else has edited them."""
