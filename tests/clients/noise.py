"""Interfering sessions: other clients of the same small pool, each with settings and prepared statements of its own.

They use the very names that drivers give their prepared statements, so that a statement or a setting that leaks from
one client to another shows up on one side or the other: a session that sees anything but its own raises.
"""

import threading

import psycopg
from psycopg import pq

NAMES = [
    b"",
    b"S_1",
    b"S_2",
    b"_pg3_0",
    b"_pg3_1",
    b"__asyncpg_stmt_1__",
    b"__asyncpg_stmt_2__",
    b"P0_1",
    b"P_0",
    b"named",
]
SHOWN = "application_name", "search_path", "TimeZone", "work_mem", "statement_timeout", "DateStyle"


class Leak(AssertionError):
    pass


class Session(threading.Thread):
    def __init__(self, number, conninfo):
        super().__init__(daemon=True, name=f"noise-{number}")
        self.number, self.conninfo = number, conninfo
        self.stopping, self.running = threading.Event(), threading.Event()
        self.error, self.rounds = None, 0
        self.mine = (
            f"noise {number}",
            f"noise_{number}, public",
            "Asia/Tokyo" if number % 2 else "America/Lima",
            f"{1000 + number}kB",
            f"{500 + number}s",
            "SQL, DMY" if number % 2 else "German, DMY",
        )

    def run(self):
        try:
            with psycopg.connect(self.conninfo, autocommit=True, application_name=self.mine[0]) as connection:
                for name, value in list(zip(SHOWN, self.mine))[1:]:
                    connection.execute(
                        f"SET {name} = {value}" if name == "search_path" else f"SET {name} = '{value}'"
                    )
                for i, name in enumerate(NAMES):
                    self.prepare(connection, name, i)
                while not self.stopping.is_set():
                    self.round(connection)
                    self.rounds += 1
                    self.running.set()
        except Exception as error:  # reported by the runner, which knows which scenario was on
            self.error = error
        finally:
            self.running.set()

    def prepare(self, connection, name, i):
        result = connection.pgconn.prepare(name, b"SELECT %d + $1::int8" % (self.number * 1000 + i))
        if result.status != pq.ExecStatus.COMMAND_OK:
            raise Leak(f"prepare {name!r}: {result.error_message.decode()}")

    def expect(self, what, seen, wanted):
        if seen != wanted:
            raise Leak(f"noise session {self.number}, {what}: saw {seen}, its own is {wanted}")

    def round(self, connection):
        shown = "SELECT " + ", ".join(f"current_setting('{name}')" for name in SHOWN)
        self.expect("settings", connection.execute(shown, prepare=False).fetchone(), self.mine)
        i = self.rounds % len(NAMES)
        if NAMES[i] == b"":
            self.prepare(connection, b"", i)  # the unnamed one lives until the next parse only
        result = connection.pgconn.exec_prepared(NAMES[i], [b"7"])
        if result.status != pq.ExecStatus.TUPLES_OK:
            raise Leak(f"prepared statement {NAMES[i]!r}: {result.error_message.decode()}")
        self.expect(f"prepared statement {NAMES[i]!r}", int(result.get_value(0, 0)), self.number * 1000 + i + 7)
        with connection.transaction():
            connection.execute(f"SET LOCAL work_mem = '{2000 + self.number}kB'", prepare=False)
            seen = connection.execute("SHOW work_mem", prepare=False).fetchone()[0]
            self.expect("SET LOCAL", seen, f"{2000 + self.number}kB")
        if self.rounds % 3 == 0:
            try:
                connection.execute("SELECT 1 / 0", prepare=False)
            except psycopg.errors.DivisionByZero:
                pass


class Noise:
    def __init__(self, conninfo, sessions=3):
        self.sessions = [Session(i + 1, conninfo) for i in range(sessions)]

    def __enter__(self):
        for session in self.sessions:
            session.start()
        for session in self.sessions:
            if not session.running.wait(60):
                raise TimeoutError("the interfering sessions did not come up")
        return self

    def __exit__(self, kind, *_):
        for session in self.sessions:
            session.stopping.set()
        for session in self.sessions:
            session.join(60)
            if kind is None and session.error:
                raise session.error
            if kind is None and session.is_alive():
                raise TimeoutError(f"{session.name} hangs")
