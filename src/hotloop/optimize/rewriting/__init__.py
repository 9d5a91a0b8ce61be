"""What several rewrites do to a source: keywords of a construction, settings at the top, statements behind the model,
ranges around the forward.

In: the user's files and the observed places. Out: edited files and notes. Imported by rewrites alone, inside them: it
imports LibCST.
"""
