"""The report as one self-contained HTML page.

In: a `Document`. Out: the page's text. Charts are drawn in the browser by Apache ECharts, which travels in the page.
"""
