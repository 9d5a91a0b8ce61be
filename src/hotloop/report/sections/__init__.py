"""The sections of a report, one file each.

In: a `ReportContent`. Out: a `Section` of blocks, or None where there is nothing to say.
"""
