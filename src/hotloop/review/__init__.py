"""Reads stored sessions again: the content of a report, the newest with a result, and what differs between two."""
