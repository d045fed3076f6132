"""Runs scenarios against PostgreSQL and against the router in front of it, and compares what was seen.

A scenario is a function `f(run)` that does what an application does and notes what it sees: `run.note(...)`. It is run
once directly and once through the system under test, each time in an empty schema; its notes and what the server
said on the wire (recorder.py) must be equal, or the difference is printed and the scenario has failed. While it runs
through a transaction pool, other sessions disturb it (noise.py).

A check is a function that judges for itself, only on the system under test.

    KINTSUGI_PROGRAM   the program to test (kintsugi)
    KINTSUGI_SUT       kintsugi (default); stand-ins, to try the scenarios themselves: direct, pgbouncer (session
                       pooling), and pgbouncer-transaction, which leaks, so that the leak tests must fail
    KINTSUGI_ROUTED    set: the router has a second shard, so that it plans every statement instead of passing it on
    KINTSUGI_LOAD      scales what is heavy; the sanitizer builds use less
"""

import argparse
import difflib
import faulthandler
import os
import re
import shutil
import signal
import sys
import time
import traceback

import psycopg

from noise import Noise
from postgres import DATABASE, PASSWORD, USER, Certificates, Cluster, scratch_directory
from recorder import Recorder
from systems import Direct, Kintsugi, PgBouncer

LOAD = float(os.environ.get("KINTSUGI_LOAD", "1"))
PATIENCE = 3  # what hangs is ended; a slow machine is not
SUT = os.environ.get("KINTSUGI_SUT", "kintsugi")
PROGRAM = os.environ.get("KINTSUGI_PROGRAM", "")
SANITIZER_WORDS = "AddressSanitizer", "ThreadSanitizer", "LeakSanitizer", "runtime error:", "INVARIANT"
SANITIZED = os.environ.get("KINTSUGI_SANITIZE", "")
QUARANTINE_MB = 32  # what AddressSanitizer keeps of freed memory, so that its use is found
SANITIZER_OPTIONS = {
    "ASAN_OPTIONS": f"detect_leaks=1:exitcode=77:detect_stack_use_after_return=1:quarantine_size_mb={QUARANTINE_MB}",
    "TSAN_OPTIONS": "exitcode=77:second_deadlock_stack=1",
    "UBSAN_OPTIONS": "print_stacktrace=1",
}
_registered = []


def scaled(count, least=1):
    """A number of rounds, clients or rows, less of it under a sanitizer."""
    return max(least, int(count * LOAD))


def memory_kb(bound):
    """A bound for what the router's memory may grow by. It is exact in the release build; a sanitizer keeps memory of
    its own, and leaves us to see that what passes by (100 MB and more) is not collected."""
    return bound + (QUARANTINE_MB * 2 + 16) * 1024 if SANITIZED else bound


def scenario(function=None, *, wire=True, noise=True, pool=2, seconds=60):
    """Compared between direct and routed. `pool` is larger where a scenario pins several sessions at once."""

    def register(f):
        _registered.append(dict(f=f, kind="scenario", wire=wire, noise=noise, pool=pool, seconds=seconds))
        return f

    return register(function) if function else register


def check(function=None, *, seconds=60):
    """Runs on the system under test only: f(stage)."""

    def register(f):
        _registered.append(dict(f=f, kind="check", seconds=seconds))
        return f

    return register(function) if function else register


def said(result):
    """libpq's error text without the line that names the shard (CONTRACT 5: the context field)."""
    return re.sub(r"\nCONTEXT:  shard s1(?=\n|$)", "", result.error_message.decode())


class Run:
    """One run of a scenario: where to connect, and the notes it takes."""

    def __init__(self, stage, system, tap):
        self.stage, self.system, self.tap = stage, system, tap
        self.host, self.port = "127.0.0.1", tap.port if tap else system.port
        self.notes = []

    def note(self, *things):
        self.notes.append("  ".join(thing if isinstance(thing, str) else repr(thing) for thing in things))

    def conninfo(self, **extra):
        keys = dict(
            host=self.host,
            port=self.port,
            dbname=DATABASE,
            user=USER,
            password=PASSWORD,
            sslmode="disable",
            gssencmode="disable",
            connect_timeout=20,
        )
        keys.update(extra)
        return psycopg.conninfo.make_conninfo(**keys)

    def connect(self, autocommit=True, **extra):
        return psycopg.connect(self.conninfo(**extra), autocommit=autocommit)

    def environment(self, **extra):
        """For programs on libpq."""
        return {
            **os.environ,
            "PGHOST": self.host,
            "PGPORT": str(self.port),
            "PGDATABASE": DATABASE,
            "PGUSER": USER,
            "PGPASSWORD": PASSWORD,
            "PGSSLMODE": "disable",
            "PGGSSENCMODE": "disable",
            "PGCONNECT_TIMEOUT": "20",
            "LC_ALL": "C.UTF-8",
            "PSQLRC": "/dev/null",
            "PAGER": "cat",
            **extra,
        }

    def error(self, action, *arguments, **keywords):
        """Runs what is expected to fail in the server, and notes how."""
        try:
            action(*arguments, **keywords)
        except psycopg.Error as error:
            d = error.diag
            self.note(
                "error",
                type(error).__name__,
                error.sqlstate,
                d.severity,
                d.message_primary,
                d.message_detail,
                d.message_hint,
                d.statement_position,
            )
            return error
        self.note("no error")


class Stage:
    """The cluster and the systems of one test program."""

    def __init__(self, **cluster_options):
        self.root = scratch_directory()
        self.certificates = None
        self.cluster = Cluster(self.root, **cluster_options)
        self.direct = Direct(self.cluster)
        self._systems, self._crashed = {}, []

    def make_certificates(self):
        self.certificates = self.certificates or Certificates(os.path.join(self.root, "certificates"))
        return self.certificates

    def router(self, name="extra", **options):
        """A router of one's own, for a check that changes or kills it; the caller stops it."""
        if SUT.startswith("pgbouncer"):  # a stand-in, to try the checks themselves
            return PgBouncer(self.cluster, self.root, name=name)
        if not os.access(PROGRAM, os.X_OK):
            raise RuntimeError(f"KINTSUGI_PROGRAM does not name a program: {PROGRAM!r}")
        options.setdefault("environment", SANITIZER_OPTIONS)
        return Kintsugi(PROGRAM, self.cluster, self.root, name, **options)

    def system(self, mode="transaction", pool=2):
        """The system under test, started when first asked for."""
        key = mode, pool
        old = self._systems.get(key)
        if (
            old and old.process and old.process.poll() is not None
        ):  # the next scenario is worth running all the same
            self._crashed.append(f"{old.name} ended with status {old.process.returncode}:\n{old.log_tail(100)}")
            old.process = None
            old.start()
        if key not in self._systems:
            if SUT == "direct":
                self._systems[key] = self.direct
            elif SUT.startswith("pgbouncer"):
                pooled = "transaction" if SUT.endswith("transaction") else "session"
                self._systems[key] = PgBouncer(
                    self.cluster,
                    self.root,
                    pooled,
                    max(pool, 20 if pooled == "session" else 0),
                    name=f"pgbouncer-{mode}-{pool}",
                )
            else:
                size = pool if mode == "transaction" else 40
                self._systems[key] = self.router(
                    f"router-{mode}-{pool}", sections={"pool": {"mode": mode, "size": size}}
                )
        return self._systems[key]

    def stop(self):
        """Stops everything and returns what is wrong with the way it went."""
        complaints = self._crashed
        for system in self._systems.values():
            try:
                system.stop()
            except RuntimeError as error:
                complaints.append(str(error))
        for directory, _, files in os.walk(self.root):
            if (
                "log" in files
                and "router" in os.path.basename(directory)
                or "extra" in os.path.basename(directory)
            ):
                with open(os.path.join(directory, "log"), errors="replace") as file:
                    text = file.read()
                if any(word in text for word in SANITIZER_WORDS):
                    complaints.append(
                        f"{os.path.basename(directory)}'s log has a sanitizer's report:\n{text[-20000:]}"
                    )
        self.cluster.stop()
        shutil.rmtree(self.root, ignore_errors=True)
        return complaints


def observe(stage, system, entry, noisy):
    """One run: its notes, and the wire's transcripts."""
    stage.cluster.fresh_schema()
    tap = Recorder(system.host, system.port) if entry["wire"] else None
    run = Run(stage, system, tap)
    try:
        if noisy:
            with Noise(Run(stage, system, None).conninfo()):
                entry["f"](run)
        else:
            entry["f"](run)
    finally:
        if tap:
            tap.stop()
    return run.notes, tap.transcripts() if tap else []


def difference(entry, direct, routed):
    texts = []
    for title, a, b in [("notes", direct[0], routed[0])] + [
        (f"connection {i + 1} on the wire", a, b) for i, (a, b) in enumerate(zip(direct[1], routed[1]))
    ]:
        if a != b:
            texts.append(
                f"--- {title} differ (- direct, + routed)\n"
                + "\n".join(
                    line[:600] for line in difflib.unified_diff(a, b, "direct", "routed", lineterm="", n=2)
                )
            )
    if len(direct[1]) != len(routed[1]):
        texts.append(f"--- {len(direct[1])} connections directly, {len(routed[1])} routed")
    return "\n".join(texts)


def perform(stage, entry, mode):
    if entry["kind"] == "check":
        entry["f"](stage)
        return ""
    direct = observe(stage, stage.direct, entry, False)
    if not direct[0]:
        return "the scenario noted nothing: it cannot fail"
    routed = observe(
        stage,
        stage.system(mode, entry["pool"]),
        entry,
        entry["noise"] and SUT == "kintsugi" and mode == "transaction",
    )
    return difference(entry, direct, routed)


def main(**cluster_options):
    parser = argparse.ArgumentParser()
    parser.add_argument("--only", help="scenarios whose name contains this")
    parser.add_argument("--mode", default="transaction", choices=("transaction", "session"))
    parser.add_argument("--keep-going", action="store_true", default=True)
    options = parser.parse_args()

    def too_long(*_):
        raise TimeoutError("the scenario took too long")

    signal.signal(signal.SIGALRM, too_long)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    failed, ran, stage = [], 0, Stage(**cluster_options)
    try:
        for entry in _registered:
            name = entry["f"].__name__
            if options.only and options.only not in name:
                continue
            ran += 1
            limit = int(PATIENCE * entry["seconds"] / min(1, max(LOAD, 0.2)))
            start = time.monotonic()
            signal.alarm(limit)
            faulthandler.dump_traceback_later(limit + 30, exit=True)
            try:
                trouble = perform(stage, entry, options.mode)
            except Exception:
                trouble = traceback.format_exc()
            signal.alarm(0)
            faulthandler.cancel_dump_traceback_later()
            print(f"{'FAIL' if trouble else 'ok  '} {name} ({time.monotonic() - start:.1f} s)", flush=True)
            if trouble:
                failed.append(name)
                print(trouble, flush=True)
        if not ran:
            print("no scenario of that name")
            failed.append("nothing ran")
    finally:
        if failed and os.environ.get("KINTSUGI_KEEP_LOGS"):
            for system in stage._systems.values():
                print(f"---- log of {system.name}\n{system.log_tail(100)}")
        complaints = stage.stop()
    for complaint in complaints:
        print("FAIL at the end:", complaint)
    print(f"{ran - len(failed)} of {ran} passed" + (f"; failed: {', '.join(failed)}" if failed else ""))
    sys.exit(1 if failed or complaints else 0)
