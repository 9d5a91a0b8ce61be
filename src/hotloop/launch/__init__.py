"""Start a command with the probe inside, kept from the user's files."""
