"""What belongs together: nesting on host threads, launches and the device work they started, Python lines.

In: a `Trace`. Out: a `LinkedTrace`, where every analysis starts.
"""
