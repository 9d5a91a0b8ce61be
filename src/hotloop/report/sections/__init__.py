"""The parts of a document, one file each, and the documents made of them.

In: a `ReportContent`, or one of its values. Out: blocks. `all` is the whole report, `brief` the comment on a pull
request, `tuned`, `observed` and `diagnosed` are the first screens of their commands, `comparison` is of two.
"""
