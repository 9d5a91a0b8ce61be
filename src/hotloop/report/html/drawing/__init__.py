"""Charts as HTML and SVG, drawn when the page is made: they need no script, and are there in print and in captures.

In: the data of a `Chart`. Out: markup whose positions are percentages, so that it fits every width. Colours are the
page's own variables, and text of others is escaped.
"""
