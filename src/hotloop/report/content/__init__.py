"""What a report says, as one value that HTML, Markdown, JSON and the terminal are rendered from.

In: what a session holds. Out: a `ReportContent`.
"""
