"""How Git is called: a repository's own settings and hooks start no program of its author's."""

GIT = ("git", "-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null", "-c", "core.pager=cat")
