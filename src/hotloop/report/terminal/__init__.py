"""Text for a terminal, at 80 columns.

In: documents, which `walk` shows, and values that no document holds yet (machine, traces, data, sessions). Out: text.
"""
