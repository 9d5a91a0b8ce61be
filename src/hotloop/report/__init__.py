"""Results as one document, and the document as text, Markdown and a page; imports only model, stats and store.

`content` says what values are called, `charts` thins out what is drawn, `sections` makes blocks of both (`document`),
and three walkers show them: `terminal/walk`, `markdown`, `html/page`.
"""
