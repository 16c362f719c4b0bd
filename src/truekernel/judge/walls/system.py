"""Calls of the operating system that Python 3.11 has no function for. Each raises OSError."""

from __future__ import annotations

import ctypes
import os
import platform
from typing import Any

libc = ctypes.CDLL(None, use_errno=True)
libc.syscall.restype = ctypes.c_long

CLONE_NEWNS, CLONE_NEWCGROUP, CLONE_NEWUTS, CLONE_NEWIPC = 0x00020000, 0x02000000, 0x04000000, 0x08000000
CLONE_NEWUSER, CLONE_NEWPID, CLONE_NEWNET = 0x10000000, 0x20000000, 0x40000000
MS_NOSUID, MS_NODEV, MS_NOEXEC, MS_BIND, MS_REC, MS_PRIVATE, MS_REMOUNT, MS_RDONLY = (
    2,
    4,
    8,
    4096,
    16384,
    1 << 18,
    32,
    1,
)
MNT_DETACH = 2
PR_SET_PDEATHSIG, PR_SET_DUMPABLE, PR_CAPBSET_DROP, PR_SET_NO_NEW_PRIVS = 1, 4, 24, 38
LAST_CAPABILITY = 63

_MACHINE = platform.machine()
_PIVOT_ROOT = {"x86_64": 155, "aarch64": 41}.get(_MACHINE, -1)
_CAPSET = {"x86_64": 126, "aarch64": 91}.get(_MACHINE, -1)
_MOUNT_SETATTR = 442
"""The same number on all machines, as of all calls since Linux 5.1."""
_AT_RECURSIVE, _AT_FDCWD = 0x8000, -100
_ATTR_RDONLY, _ATTR_NOSUID, _ATTR_NODEV = 1, 2, 4


def call(number: int, *arguments: Any) -> int:
    """`syscall(2)`."""
    if number < 0:
        raise OSError(38, f"not known for {_MACHINE}")
    result: int = libc.syscall(ctypes.c_long(number), *[_word(argument) for argument in arguments])
    if result < 0:
        error = ctypes.get_errno()
        raise OSError(error, os.strerror(error))
    return result


def _word(argument: Any) -> Any:
    return ctypes.c_long(argument) if isinstance(argument, int) else argument


def _checked(result: int) -> None:
    if result:
        error = ctypes.get_errno()
        raise OSError(error, os.strerror(error))


def unshare(flags: int) -> None:
    """`unshare(2)`."""
    _checked(libc.unshare(ctypes.c_int(flags)))


def prctl(option: int, value: int) -> None:
    """`prctl(2)` with one argument."""
    zero = ctypes.c_ulong(0)
    _checked(libc.prctl(ctypes.c_int(option), ctypes.c_ulong(value), zero, zero, zero))


def mount(source: str, target: str, kind: str = "", flags: int = 0, data: str = "") -> None:
    """`mount(2)`."""
    _checked(libc.mount(source.encode(), target.encode(), kind.encode(), ctypes.c_ulong(flags), data.encode()))


def unmount(target: str) -> None:
    """Take a mount out of sight; it goes when nobody uses it any more."""
    _checked(libc.umount2(target.encode(), ctypes.c_int(MNT_DETACH)))


def pivot_root(new: str, old: str) -> None:
    """`pivot_root(2)`."""
    call(_PIVOT_ROOT, ctypes.c_char_p(new.encode()), ctypes.c_char_p(old.encode()))


def read_only(target: str) -> None:
    """Make a mount and all below it read-only, without set-user-id programs and devices. Flags that it has stay."""
    attributes = (ctypes.c_uint64 * 4)(_ATTR_RDONLY | _ATTR_NOSUID | _ATTR_NODEV, 0, 0, 0)
    call(_MOUNT_SETATTR, _AT_FDCWD, ctypes.c_char_p(target.encode()), _AT_RECURSIVE, ctypes.byref(attributes), 32)


def drop_capabilities() -> None:
    """Give up all capabilities, now and for programs that are executed."""
    for capability in range(LAST_CAPABILITY + 1):
        try:
            prctl(PR_CAPBSET_DROP, capability)
        except OSError:
            break
    header = (ctypes.c_uint32 * 2)(0x20080522, 0)
    call(_CAPSET, ctypes.byref(header), ctypes.byref((ctypes.c_uint32 * 6)()))
