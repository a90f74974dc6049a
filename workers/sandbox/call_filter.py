"""System calls that no rank needs, as a filter that the kernel runs (libseccomp writes it).

The launcher loads it, at every level, before it starts the ranks. They keep what torch, gloo and
NCCL use. A call that is filtered out fails like one that the kernel does not have, or forbids.
"""

import ctypes
import errno
import os
import tempfile

LIBRARY = "libseccomp.so.2"
ALLOW, ERRNO = 0x7FFF0000, 0x00050000
"""SCMP_ACT_ALLOW and SCMP_ACT_ERRNO, https://man7.org/linux/man-pages/man3/seccomp_init.3.html."""
EQUAL, GREATER, MASKED = 4, 6, 7

FORBIDDEN = (
    *("unshare", "setns", "mount", "umount2", "pivot_root", "chroot"),
    *("open_tree", "move_mount", "fsopen", "fsconfig", "fsmount", "mount_setattr"),
    *("keyctl", "add_key", "request_key", "bpf", "perf_event_open", "userfaultfd", "ptrace"),
    *("init_module", "finit_module", "delete_module", "kexec_load", "kexec_file_load"),
    *("open_by_handle_at", "quotactl", "swapon", "swapoff", "acct", "reboot", "syslog"),
    *("settimeofday", "clock_settime", "clock_adjtime", "adjtimex", "sethostname"),
)
ABSENT = (
    *("shmget", "shmat", "shmctl", "msgget", "semget", "memfd_secret"),
    *("io_uring_setup", "io_uring_enter", "io_uring_register"),
    "clone3",  # its flags lie in memory, where no filter looks; libc then asks clone
)
"""Memory that no limit counts, and calls for which libraries have another way."""
WITHOUT_GPUS = ("memfd_create",)
NEW_NAMESPACES = (
    *(0x00000080, 0x00020000, 0x02000000, 0x04000000),
    *(0x08000000, 0x10000000, 0x20000000, 0x40000000),
)
"""CLONE_NEWTIME, NEWNS, NEWCGROUP, NEWUTS, NEWIPC, NEWUSER, NEWPID, NEWNET of linux/sched.h."""
FAMILIES = frozenset({1, 2, 10, 16})
"""AF_UNIX, AF_INET, AF_INET6, and AF_NETLINK, by which libc lists interfaces. Not AF_VSOCK, which
reaches a virtual machine's host from every network namespace, nor AF_PACKET."""


class _Comparison(ctypes.Structure):
    _fields_ = (
        ("argument", ctypes.c_uint),
        ("operator", ctypes.c_int),
        ("first", ctypes.c_uint64),
        ("second", ctypes.c_uint64),
    )


def program(gpus: bool) -> bytes | None:
    """The filter's instructions (struct sock_filter), for this machine; None where libseccomp is
    not installed. `gpus`: their driver needs more. Raises `OSError`."""
    try:
        library = ctypes.CDLL(LIBRARY)
    except OSError:
        return None
    library.seccomp_init.restype = ctypes.c_void_p
    context = ctypes.c_void_p(library.seccomp_init(ctypes.c_uint32(ALLOW)))
    try:
        for name in FORBIDDEN:
            _refuse(library, context, errno.EPERM, name)
        for name in (*ABSENT, *(() if gpus else WITHOUT_GPUS)):
            _refuse(library, context, errno.ENOSYS, name)
        for flag in NEW_NAMESPACES:
            _refuse(library, context, errno.EPERM, "clone", _Comparison(0, MASKED, flag, flag))
        highest = max(FAMILIES)
        for family in set(range(highest)) - FAMILIES:
            _refuse(
                library, context, errno.EAFNOSUPPORT, "socket", _Comparison(0, EQUAL, family, 0)
            )
        above = _Comparison(0, GREATER, highest, 0)
        _refuse(library, context, errno.EAFNOSUPPORT, "socket", above)
        return _exported(library, context)
    finally:
        library.seccomp_release(context)


def _refuse(
    library: ctypes.CDLL,
    context: ctypes.c_void_p,
    number: int,
    name: str,
    *comparisons: _Comparison,
) -> None:
    call = library.seccomp_syscall_resolve_name(name.encode())
    if call == -1:  # younger than this libseccomp
        return
    array = (_Comparison * len(comparisons))(*comparisons)
    action = ctypes.c_uint32(ERRNO | number)
    _told(library.seccomp_rule_add_array(context, action, call, len(comparisons), array))


def _exported(library: ctypes.CDLL, context: ctypes.c_void_p) -> bytes:
    with tempfile.TemporaryFile() as file:
        _told(library.seccomp_export_bpf(context, file.fileno()))
        file.seek(0)
        return file.read()


def _told(code: int) -> None:
    if code < 0:
        raise OSError(-code, os.strerror(-code))
