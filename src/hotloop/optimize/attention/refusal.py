"""Why attention that was recognized is left as it is."""


class NotThis(Exception):  # noqa: N818 - an answer, not an error
    """Raised with the reason, as a clause: "its weights are used elsewhere"."""
