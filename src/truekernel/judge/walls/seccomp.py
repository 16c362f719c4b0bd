"""A filter of system calls: those that reach into other processes, into the kernel, or out of the machine are refused."""

from __future__ import annotations

import ctypes
import platform
import struct

from truekernel.judge.walls.system import PR_SET_NO_NEW_PRIVS, call, prctl

_SECCOMP = 317
_X86_64 = 0xC000003E
_X32 = 0x40000000
_LOAD, _EQUAL, _AT_LEAST, _ANY_BIT, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
_KILL, _ALLOW, _REFUSE = 0x80000000, 0x7FFF0000, 0x00050000
_EPERM, _ENOSYS, _EACCES = 1, 38, 13
_NUMBER, _ARCHITECTURE, _FIRST_ARGUMENT, _SECOND_ARGUMENT = 0, 4, 16, 24
_NAMESPACES = 0x7E020080
"""All CLONE_NEW* flags."""
_AF_UNIX = 1
_TIOCSTI, _TIOCLINUX = 0x5412, 0x541C
REFUSED: dict[str, int] = {
    "ptrace": 101,
    "syslog": 103,
    "personality": 135,
    "ustat": 136,
    "modify_ldt": 154,
    "pivot_root": 155,
    "acct": 163,
    "settimeofday": 164,
    "mount": 165,
    "umount2": 166,
    "swapon": 167,
    "swapoff": 168,
    "reboot": 169,
    "sethostname": 170,
    "setdomainname": 171,
    "iopl": 172,
    "ioperm": 173,
    "init_module": 175,
    "delete_module": 176,
    "quotactl": 179,
    "clock_settime": 227,
    "kexec_load": 246,
    "add_key": 248,
    "request_key": 249,
    "keyctl": 250,
    "unshare": 272,
    "perf_event_open": 298,
    "fanotify_init": 300,
    "name_to_handle_at": 303,
    "open_by_handle_at": 304,
    "setns": 308,
    "process_vm_readv": 310,
    "process_vm_writev": 311,
    "kcmp": 312,
    "finit_module": 313,
    "kexec_file_load": 320,
    "bpf": 321,
    "userfaultfd": 323,
    "io_uring_setup": 425,
    "io_uring_enter": 426,
    "io_uring_register": 427,
    "open_tree": 428,
    "move_mount": 429,
    "fsopen": 430,
    "fsconfig": 431,
    "fsmount": 432,
    "fspick": 433,
    "pidfd_getfd": 438,
    "process_madvise": 440,
    "mount_setattr": 442,
    "chroot": 161,
}
"""Numbers on x86-64."""
_CLONE, _CLONE3, _SOCKET, _IOCTL = 56, 435, 41, 16


def program() -> bytes:
    """The filter's instructions."""
    code: list[tuple[int, int, int, int]] = []

    def answer(action: int) -> None:
        code.append((_RETURN, 0, 0, action))

    code.append((_LOAD, 0, 0, _ARCHITECTURE))
    code.append((_EQUAL, 1, 0, _X86_64))
    answer(_KILL)
    code.append((_LOAD, 0, 0, _NUMBER))
    code.append((_AT_LEAST, 0, 1, _X32))
    answer(_KILL)
    for number in sorted(REFUSED.values()):
        code.append((_EQUAL, 0, 1, number))
        answer(_REFUSE | _EPERM)
    # Its flags lie in memory, which a filter can't read; C libraries then use clone.
    code.append((_EQUAL, 0, 1, _CLONE3))
    answer(_REFUSE | _ENOSYS)
    code += [(_EQUAL, 0, 4, _CLONE), (_LOAD, 0, 0, _FIRST_ARGUMENT), (_ANY_BIT, 0, 1, _NAMESPACES)]
    answer(_REFUSE | _EPERM)
    answer(_ALLOW)
    code += [(_EQUAL, 0, 4, _SOCKET), (_LOAD, 0, 0, _FIRST_ARGUMENT), (_EQUAL, 1, 0, _AF_UNIX)]
    answer(_REFUSE | _EACCES)
    answer(_ALLOW)
    code += [(_EQUAL, 0, 5, _IOCTL), (_LOAD, 0, 0, _SECOND_ARGUMENT)]
    code += [(_EQUAL, 1, 0, _TIOCSTI), (_EQUAL, 0, 1, _TIOCLINUX)]
    answer(_REFUSE | _EPERM)
    answer(_ALLOW)
    answer(_ALLOW)
    return b"".join(struct.pack("<HBBI", *instruction) for instruction in code)


def restrict() -> str:
    """Put the filter on this process and what it starts. Returns what was restricted. Raises OSError, also on machines other than x86-64."""
    if platform.machine() != "x86_64":
        raise OSError(_ENOSYS, f"no filter for {platform.machine()}")
    text = program()
    instructions = ctypes.create_string_buffer(text, len(text))

    class Program(ctypes.Structure):
        _fields_ = (("length", ctypes.c_ushort), ("code", ctypes.c_void_p))

    prctl(PR_SET_NO_NEW_PRIVS, 1)
    call(_SECCOMP, 1, 0, ctypes.byref(Program(len(text) // 8, ctypes.addressof(instructions))))
    return f"{len(REFUSED)} calls refused; sockets other than Unix ones; new namespaces"
