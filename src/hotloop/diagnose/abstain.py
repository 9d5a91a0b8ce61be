"""How a rule says that it cannot judge."""


class Abstain(Exception):  # noqa: N818 - an answer, not an error
    """Raised by a check that cannot judge, with the data it would need, as a noun: "the ranks' steps"."""
