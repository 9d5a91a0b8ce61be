"""Several ranks side by side: stragglers, and what the others waited.

In: one trace per rank. Out: a comparison of the ranks, and the report of all.
"""
