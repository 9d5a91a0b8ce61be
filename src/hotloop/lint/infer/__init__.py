"""What the source means: names, values, devices, functions, and which code runs once per step.

In: a parsed file. Out: a `Program` that rules ask.
"""
