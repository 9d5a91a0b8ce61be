"""Twelve kinds of programs: `hotloop tune` beside plans by hand and beside what everybody switches on.

    python -m benchmarks.tuning [--only NAME...] [--budget SECONDS] --rows FILE
    python -m benchmarks.tuning --page --rows FILE

Each program of tests/programs gets one session with its budget. Then the program as it was, the session's plan, the
plans by hand and the recipes run beside one another in fresh sets.
"""
