"""Take users, hosts, paths and environment out of a trace."""

import re
from dataclasses import replace

from hotloop.trace.read.trace import Metadata, Trace

_INSTALLED = re.compile(
    r"(?:[A-Za-z]:)?[^\s\"';,()\[\]]*/(?:site-packages|dist-packages|lib/python\d[\d.]*)/"
)
_PATH = re.compile(
    r"(?:[A-Za-z]:[\\/]|[\\/]|~/|\.{1,2}/)?(?:[^\s\"'/\\;,()\[\]<>:|]+[\\/])+(?=[^\s/\\;,()\[\]]+\.\w{1,4}\b)"
)
_ABSOLUTE = re.compile(r"(?<![\w.:\]>)])(?:/[\w.@+~-]+){2,}/?")
_HOME = re.compile(r"(?:/home/|/Users/|\\Users\\|/root/|/data/users/|/scratch/)([A-Za-z_][\w.-]{1,31})")
_ADDRESS = re.compile(r"0x[0-9a-fA-F]{6,}")
_MAIL = re.compile(r"[\w.+-]+@[\w-]+(?:\.[\w-]+)+|\b[\w.-]+@[\w-]+\b")
_HOST = re.compile(r"\b(?:[a-zA-Z][\w-]*\.)+(?:com|org|net|edu|io|gov|local|internal|lan|de|uk|fr|cn|ai)\b")
_IP = re.compile(r"\b\d{1,3}(?:\.\d{1,3}){3}\b")
_ENVIRONMENT = re.compile(r"\b[A-Z][A-Z0-9_]{2,}=\S+")
_PUBLIC = frozenset(
    {
        "torch", "torchvision", "torchaudio", "transformers", "accelerate", "lightning", "pytorch_lightning", "numpy",
        "datasets", "diffusers", "deepspeed", "timm", "triton", "vllm", "xformers", "peft", "apex", "PIL", "cv2",
        "asyncio", "concurrent", "importlib", "json", "multiprocessing", "unittest", "logging", "collections", "urllib",
    }
)  # fmt: skip
"""Packages of Python and of the ecosystem: where in them a function stands is no secret, and says what it does."""
_KEPT_WORDS = frozenset(
    {"lib", "bin", "usr", "opt", "tmp", "var", "miniconda3", "anaconda3", "conda", "envs", "site-packages"}
)


def redact(trace: Trace) -> Trace:
    """The same events without what tells where and by whom they were recorded.

    File names and lines stay, folders go; paths inside installed packages stay from the package on. Process
    and thread ids become small numbers; the metadata keeps only the devices, the rank and the profiler's settings.
    """
    users = _users(trace)
    names = [_clean(name, users) for name in trace.names]
    texts = [_clean(text.decode("utf-8", errors="replace"), users).encode() for text in trace.texts]
    processes = {process: index for index, process in enumerate(dict.fromkeys(p for p, _ in trace.threads))}
    meta = trace.metadata
    return replace(
        trace,
        label=_clean(trace.label, users),
        names=names,
        texts=texts,
        threads=[(processes[process], index) for index, (process, _) in enumerate(trace.threads)],
        thread_names={
            index: re.sub(r"\d{3,}", "", _clean(name, users)) for index, name in trace.thread_names.items()
        },
        metadata=Metadata(
            rank=meta.rank,
            world_size=meta.world_size,
            backend=meta.backend,
            devices=meta.devices,
            with_stack=meta.with_stack,
            record_shapes=meta.record_shapes,
            profile_memory=meta.profile_memory,
        ),
    )


def _users(trace: Trace) -> "re.Pattern[str] | None":
    found = {user for name in trace.names for user in _HOME.findall(name)}
    found |= {user for text in trace.texts for user in _HOME.findall(text.decode("utf-8", errors="replace"))}
    found -= _KEPT_WORDS
    if not found:
        return None
    return re.compile(r"(?<![A-Za-z0-9])(?:" + "|".join(map(re.escape, sorted(found))) + r")(?![A-Za-z0-9])")


def _public_part(path: "re.Match[str]") -> str:
    folders = path.group().strip("./\\")
    return path.group() if re.split(r"[\\/]", folders)[0] in _PUBLIC else ""


def _clean(text: str, users: "re.Pattern[str] | None") -> str:
    text = _ENVIRONMENT.sub("", _ADDRESS.sub("0x0", text))
    text = _PATH.sub(_public_part, _INSTALLED.sub("", text)) if "::" not in text or ".py" in text else text
    text = _MAIL.sub("", _IP.sub("", _ABSOLUTE.sub("", text)))
    text = _HOST.sub("", text) if ".py" not in text else text
    return users.sub("user", text) if users is not None else text
