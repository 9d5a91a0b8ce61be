"""From bytes to a trace: find, cut, decode and salvage events, into typed columns.

In: files (JSON, gzip, zip, tar, Nsight SQLite). Out: a `Trace`, times in integer nanoseconds.
"""
