"""`python -m hotloop.lint.manual docs/lint.md` writes the page of all rules; `--check` compares."""

import sys

from hotloop.lint.pages import BOOK

manual = BOOK.manual

if __name__ == "__main__":
    sys.exit(BOOK.write(sys.argv[1:]))
