"""Ports for the servers of tests, each for one test at a time.

A port that is only looked for and bound later can be bound by somebody else in between: by another test that looks at the
same time, or by the kernel for any outgoing connection. So these are below the kernel's range for outgoing connections, and
whoever takes one locks its byte of a file until his process ends; tests/pg/port.cc does the same for the tests in C++.
"""

import fcntl
import os
import random
import socket

LOCKS = "/tmp/kintsugi-ports.lock"
FIRST, LAST = 18000, 29999  # tests/house/ports_test.py: below net.ipv4.ip_local_port_range

_locks = None


def _open_locks():
    """Everybody's file, whoever has made it; open for as long as the process is, since closing it would unlock."""
    for flags in (os.O_RDWR, os.O_RDWR | os.O_CREAT | os.O_EXCL, os.O_RDWR):
        try:
            fd = os.open(LOCKS, flags | os.O_CLOEXEC, 0o666)
        except (FileNotFoundError, FileExistsError):
            continue
        if flags & os.O_CREAT:
            os.fchmod(fd, 0o666)
        return fd
    raise RuntimeError(f"cannot open {LOCKS}")


def _lock(port):
    global _locks
    if _locks is None:
        _locks = _open_locks()
    try:
        fcntl.lockf(_locks, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, port)
        return True
    except OSError:
        return False


_taken = set()  # by this process, which its own locks would not keep from taking them again


def free_port():
    """A port that nobody listens on and that no other test will be given while this process lives."""
    chooser = random.SystemRandom()
    for _ in range(1000):
        port = chooser.randint(FIRST, LAST)
        if port in _taken or not _lock(port):
            continue
        _taken.add(port)
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
                return port
            except OSError:
                continue
    raise RuntimeError("no free port found")
