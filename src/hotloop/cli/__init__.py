"""One file a command; errors become text and exit codes in `app`."""
