"""The proven plan: what is written to `hotloop.toml`, read back, and checked against machine and program.

In: the confirmed steps. Out: a result to show, and a file to keep.
"""
