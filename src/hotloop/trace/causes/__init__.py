"""Why the device was idle and what held the step: idle causes, synchronizations, the critical path, patterns.

In: a `LinkedTrace` and its facts. Out: causes in nanoseconds, findings.
"""
