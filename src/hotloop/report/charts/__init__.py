"""Data of charts, thinned out to what a screen can show.

In: raw samples. Out: what `html/draw.js` draws, as plain values.
"""
