"""The session file: what has been finished is never lost."""
