"""`python -m hotloop.lint.manual docs/lint.md` writes the page of all rules; `--check` compares."""

import sys

from hotloop.lint.manual.pages import BOOK

sys.exit(BOOK.write(sys.argv[1:]))
