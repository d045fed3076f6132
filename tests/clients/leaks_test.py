"""Nothing of one client is ever seen by another: many sessions, each with its own state, share very few connections.

Every session checks at every step that it sees its own state and nothing else. On PostgreSQL itself all of this is
true by nature, so each check also runs there first: a test that fails there is wrong.
"""

import os
import random
import socket
import threading

import psycopg
from psycopg import pq

from harness import Run, check, main, scaled

SESSIONS, ROUNDS = 12, scaled(40, 5)


class Stranger(AssertionError):
    pass


def expect(what, seen, wanted):
    if seen != wanted:
        raise Stranger(f"{what}: saw {seen!r}, its own is {wanted!r}")


def crowd(stage, system, session, sessions=SESSIONS, rounds=ROUNDS, **connect):
    """`session(number, connection, random)` is a generator: set up, then one round at each step."""
    errors = []
    barrier = threading.Barrier(sessions)

    def live(number):
        try:
            with Run(stage, system, None).connect(**connect) as connection:
                connection.prepare_threshold = None
                story = session(number, connection, random.Random(number))
                next(story)
                barrier.wait(60)
                for _ in range(rounds):
                    next(story)
        except BaseException as error:
            errors.append(f"session {number} on {system.name}: {type(error).__name__}: {error}")
            barrier.abort()

    threads = [threading.Thread(target=live, args=(n,), daemon=True) for n in range(sessions)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(100)
        if thread.is_alive():
            errors.append(f"a session hangs on {system.name}")
            break
    if errors:
        real = [e for e in errors if "BrokenBarrier" not in e]
        raise AssertionError("\n".join((real or errors)[:6]))


def both(stage, session, pool=2, **options):
    for system in (stage.direct, stage.system("transaction", pool)):
        stage.cluster.fresh_schema()
        crowd(stage, system, session, **options)


@check
def settings(stage):
    def session(n, c, dice):
        mine = {
            "work_mem": f"{1000 + n}kB",
            "my.number": str(n),
            "statement_timeout": f"{601 + n}s",
            "search_path": f"s{n}, public",
            "TimeZone": dice.choice(("Asia/Tokyo", "America/Lima", "UTC")),
            "extra_float_digits": str(n % 4),
            "lock_timeout": f"{501 + n}s",
        }

        def setting(name, value):
            mine[name] = value
            c.execute(
                dice.choice(
                    (
                        f"SET {name} = {value}" if name == "search_path" else f"SET {name} TO '{value}'",
                        f"SELECT set_config('{name}', '{value}', false)",
                    )
                )
            )

        for name, value in list(mine.items()):
            setting(name, value)
        yield
        shown = "SELECT " + ", ".join(f"current_setting('{name}')" for name in mine)
        while True:
            expect("settings", dict(zip(mine, c.execute(shown).fetchone())), mine)
            if dice.random() < 0.3:
                setting("my.number", str(dice.randrange(10**6)))
            if dice.random() < 0.3:  # a rolled back change is no change
                with c.transaction(force_rollback=True):
                    c.execute("SET my.number = 'never'; SET work_mem = '77kB'")
            if dice.random() < 0.2:
                with c.transaction():
                    c.execute("SET LOCAL my.number = 'for now'")
                    expect("SET LOCAL", c.execute("SHOW my.number").fetchone()[0], "for now")
            yield

    both(stage, session)


@check
def reset_to_what_was(stage):
    """RESET goes back to the startup parameters of this client, not to those of another or of the backend."""

    def session(n, c, dice):
        yield
        while True:
            c.execute(f"SET work_mem = '{2000 + n}kB'; SET my.own = '{n}'")
            expect("work_mem", c.execute("SHOW work_mem").fetchone()[0], f"{2000 + n}kB")
            c.execute(dice.choice(("RESET work_mem", "RESET ALL", "DISCARD ALL", "SET work_mem TO DEFAULT")))
            expect("work_mem after reset", c.execute("SHOW work_mem").fetchone()[0], "3MB")
            yield

    both(stage, session, options="-c work_mem=3MB")


@check
def application_names(stage):
    def session(n, c, dice):
        c.execute(f"SET application_name = 'app {n}'")
        yield
        while True:
            expect(
                "application_name",
                c.execute(
                    "SELECT application_name FROM pg_stat_activity WHERE pid = pg_backend_pid()"
                ).fetchone()[0],
                f"app {n}",
            )
            yield

    both(stage, session)


@check
def prepared_names(stage):
    """One name, as many meanings as sessions: in the protocol and in SQL, redefined and deallocated as they go."""

    def session(n, c, dice):
        value = n

        def prepare(name, text):
            result = c.pgconn.prepare(name, text.encode())
            if result.status != pq.ExecStatus.COMMAND_OK:
                raise Stranger(f"prepare {name!r}: {result.error_message.decode()}")

        def run(name, *parameters):
            result = c.pgconn.exec_prepared(name, list(parameters))
            if result.status != pq.ExecStatus.TUPLES_OK:
                raise Stranger(f"execute {name!r}: {result.error_message.decode()}")
            return result.get_value(0, 0).decode()

        prepare(b"S_1", f"SELECT {value} + $1::int")
        prepare(
            b"same", "SELECT $1::int * 2"
        )  # the same everywhere: shared on the backends, and must stay right
        yield
        while True:
            expect("own statement", run(b"S_1", b"1000"), str(value + 1000))
            expect("shared text", run(b"same", b"%d" % n), str(2 * n))
            prepare(b"", f"SELECT 'unnamed of {n}'")
            expect("unnamed", run(b""), f"unnamed of {n}")
            if dice.random() < 0.3:
                value = dice.randrange(10**6)
                c.execute('DEALLOCATE "S_1"')
                prepare(b"S_1", f"SELECT {value} + $1::int")
            if dice.random() < 0.1:
                c.execute("DEALLOCATE ALL")
                failed = c.pgconn.exec_prepared(b"S_1", [b"1"])
                expect("after DEALLOCATE ALL", failed.error_field(pq.DiagnosticField.SQLSTATE), b"26000")
                prepare(b"S_1", f"SELECT {value} + $1::int")
                prepare(b"same", "SELECT $1::int * 2")
            yield

    both(stage, session)


@check
def search_paths_and_prepared(stage):
    """The same text means another table under another search_path: a shared prepared statement must know."""
    for system in (stage.direct, stage.system("transaction", 2)):
        stage.cluster.fresh_schema()
        with stage.cluster.admin() as admin:
            for n in range(SESSIONS):
                admin.execute(
                    f"DROP SCHEMA IF EXISTS tenant{n} CASCADE; CREATE SCHEMA tenant{n} AUTHORIZATION app; "
                    f"CREATE TABLE tenant{n}.t (i int, owner int DEFAULT {n}); INSERT INTO tenant{n}.t VALUES (1); "
                    f"ALTER TABLE tenant{n}.t OWNER TO app"
                )

        def session(n, c, dice):
            c.execute(f"SET search_path = tenant{n}")
            c.pgconn.prepare(b"q", b"SELECT owner FROM t WHERE i = $1::int")
            yield
            while True:
                expect("plain", c.execute("SELECT owner FROM t").fetchone()[0], n)
                result = c.pgconn.exec_prepared(b"q", [b"1"])
                expect("prepared", result.get_value(0, 0), b"%d" % n)
                if dice.random() < 0.2:
                    c.execute("INSERT INTO t VALUES (2)")
                yield

        crowd(stage, system, session)
        with stage.cluster.admin() as admin:
            for n in range(SESSIONS):
                expect(
                    "owners",
                    admin.execute(f"SELECT array_agg(DISTINCT owner) FROM tenant{n}.t").fetchone()[0],
                    [n],
                )
                admin.execute(f"DROP SCHEMA tenant{n} CASCADE")


@check
def transactions(stage):
    """An open transaction keeps its connection; nobody else's statement gets into it."""
    for system in (stage.direct, stage.system("transaction", 2)):
        stage.cluster.fresh_schema()
        with stage.cluster.admin() as admin:
            admin.execute("CREATE TABLE public.t (n int, turn int); GRANT ALL ON public.t TO PUBLIC")

        def session(n, c, dice):
            turn = 0
            yield
            while True:
                turn += 1
                with c.transaction(force_rollback=turn % 2 == 0):
                    pid = c.execute("SELECT pg_backend_pid()").fetchone()[0]
                    c.execute(f"INSERT INTO t VALUES ({n}, {turn})")
                    expect(
                        "own write",
                        c.execute(f"SELECT count(*) FROM t WHERE n = {n} AND turn = {turn}").fetchone()[0],
                        1,
                    )
                    expect("backend", c.execute("SELECT pg_backend_pid()").fetchone()[0], pid)
                seen = c.execute(f"SELECT count(*) FROM t WHERE n = {n}").fetchone()[0]
                expect("committed", seen, (turn + 1) // 2)
                yield

        crowd(stage, system, session)


@check
def modes_and_roles(stage):
    """Read only, isolation and role of a session are that session's."""

    def session(n, c, dice):
        role = "other" if n % 2 else "app"
        level = ("read committed", "repeatable read", "serializable")[n % 3]
        c.execute(f"SET default_transaction_read_only = {'on' if n % 4 == 0 else 'off'}")
        c.execute(f"SET default_transaction_isolation = '{level}'")
        c.execute(dice.choice((f"SET ROLE {role}", f"SET SESSION ROLE '{role}'")))
        yield
        while True:
            expect(
                "modes",
                c.execute(
                    "SELECT current_setting('transaction_read_only'), current_setting("
                    "'transaction_isolation'), current_user::text"
                ).fetchone(),
                ("on" if n % 4 == 0 else "off", level, role),
            )
            with c.transaction():
                c.execute("SET TRANSACTION READ ONLY")
                expect("in transaction", c.execute("SHOW transaction_read_only").fetchone()[0], "on")
            yield

    both(stage, session)


@check
def temporary_tables(stage):
    """Each pins a connection: as many connections as sessions, and others go on with what is left."""

    def session(n, c, dice):
        if n < 3:
            c.execute(f"CREATE TEMP TABLE mine AS SELECT {n} AS n")
        yield
        while True:
            if n < 3:
                expect("temp table", c.execute("SELECT n FROM mine").fetchall(), [(n,)])
                c.execute(f"DROP TABLE mine; CREATE TEMP TABLE mine AS SELECT {n} AS n")
            else:
                expect("foreign temp table", c.execute("SELECT to_regclass('mine')").fetchone()[0], None)
            yield

    both(stage, session, pool=5)


@check
def with_hold_cursors(stage):
    def session(n, c, dice):
        c.execute("SELECT 1")
        if n < 3:
            c.execute(
                f"DECLARE held CURSOR WITH HOLD FOR SELECT {n} * 1000 + i FROM generate_series(1, 10000) i"
            )
        yield
        turn = 0
        while True:
            turn += 1
            if n < 3:
                expect("cursor", c.execute("FETCH 1 FROM held").fetchone()[0], n * 1000 + turn)
            else:
                expect(
                    "cursors", c.execute("SELECT count(*) FROM pg_cursors WHERE is_holdable").fetchone()[0], 0
                )
            yield

    both(stage, session, pool=5)


@check
def advisory_locks(stage):
    """A session lock stays with its session, and is gone when the session unlocks or leaves."""

    def session(n, c, dice):
        yield
        while True:
            if n < 3:
                c.execute(f"SELECT pg_advisory_lock({n})")
                mine = "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND pid = pg_backend_pid() AND objid = "
                for _ in range(3):
                    expect("lock", c.execute(mine + str(n)).fetchone()[0], 1)
                expect("unlock", c.execute(f"SELECT pg_advisory_unlock({n})").fetchone()[0], True)
            else:
                expect(
                    "foreign lock",
                    c.execute(
                        "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' "
                        "AND pid = pg_backend_pid()"
                    ).fetchone()[0],
                    0,
                )
            yield

    both(stage, session, pool=5)


@check
def listeners(stage):
    """Each hears its own channel and nothing else."""

    def session(n, c, dice):
        heard = []
        c.add_notify_handler(lambda notify: heard.append((notify.channel, notify.payload)))
        if n < 3:
            c.execute(f"LISTEN channel{n}")
        yield
        turn = 0
        while True:
            turn += 1
            if n < 3:
                c.execute(f"NOTIFY channel{n}, '{turn}'")
                while len(heard) < turn:
                    for notify in c.notifies():
                        break
                expect("heard", heard[-1], (f"channel{n}", str(turn)))
            else:
                expect("channels", c.execute("SELECT * FROM pg_listening_channels()").fetchall(), [])
                expect("heard", heard, [])
            yield

    both(stage, session, pool=5)


@check
def sessions_that_leave_a_mess(stage):
    """Clients that vanish in every state; whoever gets the connection next sees none of it."""
    for system in (stage.direct, stage.system("transaction", 2)):
        stage.cluster.fresh_schema()
        run = Run(stage, system, None)
        messes = [
            "BEGIN",
            "BEGIN; SELECT 1 / 0",
            "SET work_mem = '1MB'",
            "CREATE TEMP TABLE mess (i int)",
            "LISTEN mess",
            "SELECT pg_advisory_lock(99)",
            "DECLARE mess CURSOR WITH HOLD FOR SELECT 1",
            "PREPARE mess AS SELECT 1",
            "SET ROLE other",
            "BEGIN READ ONLY",
            "SET search_path = nowhere",
            "BEGIN; SELECT pg_advisory_xact_lock(7)",
            "BEGIN; CREATE TABLE half (i int)",
        ]
        for turn in range(scaled(40, len(messes))):
            mess = messes[turn % len(messes)]
            dirty = run.connect()
            try:
                dirty.execute(mess)
            except psycopg.errors.DivisionByZero:
                pass
            if turn % 2:
                dirty.close()
            else:  # without a Terminate

                end = socket.socket(fileno=os.dup(dirty.fileno()))
                end.shutdown(socket.SHUT_RDWR)
                end.close()
                dirty.pgconn.finish()
            for _ in range(3):
                with run.connect() as clean:
                    seen = clean.execute(
                        "SELECT current_setting('work_mem'), current_setting('search_path'), to_regclass('mess')::text, "
                        "(SELECT count(*) FROM pg_cursors WHERE is_holdable), (SELECT count(*) FROM pg_listening_channels()), "
                        "(SELECT count(*) FROM pg_prepared_statements WHERE from_sql), current_user::text, to_regclass('half')::text, "
                        "current_setting('transaction_read_only'), (SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' "
                        "AND pid = pg_backend_pid())"
                    ).fetchone()
                    expect(
                        f"after {mess!r}",
                        seen,
                        ("4MB", '"$user", public', None, 0, 0, 0, "app", None, "off", 0),
                    )


if __name__ == "__main__":
    main()
