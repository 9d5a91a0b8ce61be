"""Linux namespaces and mounts through the C library.

Needs the standard library alone: it runs before the user's command, in a Python without site-packages.
"""

from __future__ import annotations

import contextlib
import ctypes
import fcntl
import os
import socket
import struct
from collections.abc import Sequence

from hotloop.launch.isolation import id_maps

_NEWNS = 0x00020000
_NEWUSER = 0x10000000
_NEWNET = 0x40000000
_NEWIPC, _NEWPID = 0x08000000, 0x20000000
_MS_RDONLY, _MS_REMOUNT, _MS_REC, _MS_PRIVATE, _MS_BIND = 0x1, 0x20, 0x4000, 1 << 18, 0x1000
_MNT_DETACH = 2
_SIOCGIFFLAGS, _SIOCSIFFLAGS, _SIOCSIFADDR, _IFF_UP = 0x8913, 0x8914, 0x8916, 1
_PIVOT_ROOT = {"x86_64": 155, "aarch64": 41, "riscv64": 41, "ppc64le": 203, "s390x": 217}
"""System call numbers, from the kernel's tables; the C library has no function for it."""


def enter(*, processes: bool, network: bool, addresses: Sequence[str] = (), listed_ids: bool = False) -> bool:
    """Move this process into namespaces of its own, keeping its user.

    Args:
        processes: whether its children have processes and System V objects of their own; they then need
            `enter_mounts`, the first of them is their init, and this process keeps the mounts it has.
        network: whether it also gets a loopback network of its own.
        addresses: of the machine's interfaces (IPv4), which its loopback then has too: launchers let ranks meet at the
            machine's outer address.
        listed_ids: whether a user namespace knows what `/etc/subuid` and `/etc/subgid` list, not this user alone.

    Returns:
        Whether a user namespace was needed: then mounts of the system cannot be taken apart.

    Raises:
        OSError: the kernel or a container's policy does not permit it.
    """
    flags = (_NEWPID | _NEWIPC if processes else _NEWNS) | (_NEWNET if network else 0)
    within_user = False
    try:
        _unshare(flags)
    except PermissionError:
        within_user = True
        map_ids = id_maps.map_listed if listed_ids else id_maps.map_own
        map_ids(lambda: _unshare(flags | _NEWUSER))
    if not processes:
        mount("none", "/", None, _MS_REC | _MS_PRIVATE)
    if network:
        _loopback_up(addresses)
    return within_user


def enter_mounts() -> None:
    """Move this process, a child of one that entered the others, into a mount namespace of its own."""
    _unshare(_NEWNS)
    mount("none", "/", None, _MS_REC | _MS_PRIVATE)


def new_proc(target: str) -> None:
    """Mount a /proc that shows the processes of this process's namespace.

    Raises:
        OSError: a container's /proc is masked, and the kernel permits no new one.
    """
    mount("proc", target, "proc", 0)


def overlay(lowers: Sequence[str], upper: str, work: str, target: str, *, within_user: bool) -> None:
    """Cover a folder: reads see `lowers`, the first of them first; writes go to `upper`.

    Raises:
        OSError: the file system cannot be overlaid.
    """
    # Descriptors, not names: names may hold what mount options give a meaning (commas, colons, bytes).
    held = [os.open(path, os.O_PATH | os.O_CLOEXEC) for path in (*lowers, upper, work)]
    try:
        *below, above, work = [f"/proc/self/fd/{descriptor}" for descriptor in held]
        options = f"lowerdir={':'.join(below)},upperdir={above},workdir={work}"
        if within_user:
            try:
                mount("overlay", target, "overlay", 0, f"{options},userxattr")
            except OSError:  # before Linux 5.11
                mount("overlay", target, "overlay", 0, options)
        else:
            # Without redirects a program that renames one of its folders gets `Invalid cross-device link`.
            mount("overlay", target, "overlay", 0, f"{options},redirect_dir=on")
    finally:
        for descriptor in held:
            os.close(descriptor)


def bind(source: str, target: str) -> None:
    """Show a file or folder, with all mounts below it, in another place."""
    mount(source, target, None, _MS_BIND | _MS_REC)


def make_read_only(target: str) -> None:
    """Forbid writes through one mount; devices on it stay usable.

    Raises:
        OSError: it is not permitted.
    """
    # Flags that a user namespace may not take away are given again; statvfs and mount share these bits.
    kept = os.statvfs(target).f_flag & (os.ST_NOSUID | os.ST_NODEV | os.ST_NOEXEC)
    mount("none", target, None, _MS_REMOUNT | _MS_BIND | _MS_RDONLY | kept)


def new_tmpfs(target: str, num_bytes: int) -> None:
    """Mount an empty file system in memory."""
    mount("tmpfs", target, "tmpfs", 0, f"size={num_bytes},mode=1777")


def change_root(new_root: str) -> None:
    """Make a mounted tree the root of this process, and let go of the one before.

    Raises:
        OSError: it is not permitted, or this processor's system call is not known.
    """
    number = _PIVOT_ROOT.get(os.uname().machine)
    if number is None:
        raise OSError(f"the root cannot be changed on {os.uname().machine}")
    os.chdir(new_root)
    _check(int(_libc().syscall(number, b".", b".")), "pivot_root")
    _check(_libc().umount2(b".", _MNT_DETACH), "umount of the old root")
    os.chdir("/")


def mount(source: str, target: str, kind: str | None, flags: int, options: str | None = None) -> None:
    """Add or change a mount as the system call of that name does.

    Raises:
        OSError: with what was tried.
    """
    encoded = [os.fsencode(value) if value is not None else None for value in (source, target, kind, options)]
    result = _libc().mount(encoded[0], encoded[1], encoded[2], ctypes.c_ulong(flags), encoded[3])
    _check(result, f"mount {target}")


def _unshare(flags: int) -> None:
    _check(_libc().unshare(flags), "unshare")


def _libc() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)


def _check(result: int, what: str) -> None:
    if result:
        number = ctypes.get_errno()
        raise OSError(number, f"{what}: {os.strerror(number)}")


def _loopback_up(addresses: Sequence[str]) -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as handle:
        request = struct.pack("16sH14x", b"lo", 0)
        flags = struct.unpack("16sH14x", fcntl.ioctl(handle, _SIOCGIFFLAGS, request))[1]
        fcntl.ioctl(handle, _SIOCSIFFLAGS, struct.pack("16sH14x", b"lo", flags | _IFF_UP))
        for number, address in enumerate(addresses):
            place = struct.pack(
                "16sHH4s8x", f"lo:{number}".encode(), socket.AF_INET, 0, socket.inet_aton(address)
            )
            with contextlib.suppress(
                OSError
            ):  # not every kernel knows aliases; the name is what launchers use
                fcntl.ioctl(handle, _SIOCSIFADDR, place)
