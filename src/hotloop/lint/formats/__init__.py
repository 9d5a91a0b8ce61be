"""Static findings as text and JSON; SARIF and GitHub annotations, for all findings, are in the report."""
