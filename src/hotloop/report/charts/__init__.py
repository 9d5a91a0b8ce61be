"""Data of charts, thinned out to what a screen can show.

In: raw samples. Out: what `html/drawing` draws, as plain values.
"""
