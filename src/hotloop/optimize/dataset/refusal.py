"""Why a data set's samples must not be kept."""


class CannotKeep(Exception):  # noqa: N818 - an answer, not an error
    """The samples must not be kept; the message is a clause: "its samples change from one fetch to the next"."""
