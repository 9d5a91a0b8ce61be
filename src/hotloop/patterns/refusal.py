"""Why one way to compute something must not take the place of another."""


class NotThis(Exception):  # noqa: N818 - an answer, not an error
    """Raised with the reason, as a clause: "its weights are used elsewhere"."""


class NotReached(NotThis):
    """The module that ran does not come by it: it says nothing about the other ways."""
