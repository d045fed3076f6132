"""psycopg 3: what belongs to a session, and who sees it: settings, roles, prepared statements, temporary tables, locks."""

import threading

import psycopg
from psycopg import pq

from harness import main, said, scenario
from postgres import wait_until


@scenario
def prepared_statements_and_their_eviction(run):
    with run.connect(autocommit=True) as connection:
        connection.prepare_threshold, connection.prepared_max = 0, 3
        for turn in range(3):
            for i in range(6):
                run.note(connection.execute(f"SELECT {i} + %s AS c{i}", [turn]).fetchone())
        run.note(connection.execute("DEALLOCATE ALL", prepare=False).statusmessage)
        run.note(
            connection.execute(
                "SELECT count(*) FROM pg_prepared_statements WHERE name LIKE '\\_pg3%'", prepare=False
            ).fetchone()
        )


@scenario
def prepared_statements_survive_ddl(run):
    with run.connect() as connection, run.connect() as other:
        connection.prepare_threshold = 0
        other.execute("CREATE TABLE d (a int, b text); INSERT INTO d VALUES (1, 'x')")
        for _ in range(3):
            run.note(connection.execute("SELECT b FROM d WHERE a = %s", [1]).fetchall())
        other.execute("ALTER TABLE d ADD COLUMN c int DEFAULT 5")
        run.note(connection.execute("SELECT b FROM d WHERE a = %s", [1]).fetchall())
        run.note(connection.execute("SELECT * FROM d WHERE a = %s", [1]).fetchall())
        run.note(connection.execute("SELECT * FROM d WHERE a = %s", [1]).fetchall())
        other.execute("DROP TABLE d; CREATE TABLE d (b text, a int); INSERT INTO d VALUES ('y', 1)")
        run.note(connection.execute("SELECT b FROM d WHERE a = %s", [1]).fetchall())


@scenario
def prepare_and_execute_in_sql(run):
    with run.connect() as connection:
        connection.prepare_threshold = None
        run.note(connection.execute("PREPARE mine (int) AS SELECT $1 * 3").statusmessage)
        for i in range(4):
            run.note(connection.execute(f"EXECUTE mine ({i})").fetchone())
        run.error(connection.execute, "PREPARE mine AS SELECT 1")
        run.note(
            connection.execute(
                "SELECT name, statement, parameter_types::text FROM pg_prepared_statements " "WHERE from_sql"
            ).fetchall()
        )
        run.note(connection.execute("DEALLOCATE mine").statusmessage)
        run.error(connection.execute, "EXECUTE mine (1)")
        run.error(connection.execute, "DEALLOCATE mine")
        run.note(connection.execute("DEALLOCATE ALL").statusmessage)
        run.note(connection.execute("SELECT count(*) FROM pg_prepared_statements WHERE from_sql").fetchone())


@scenario
def protocol_and_sql_prepare_share_names(run):
    """A statement prepared in the protocol can be executed in SQL, and the other way round."""
    with run.connect() as connection:
        c = connection.pgconn
        run.note(pq.ExecStatus(c.prepare(b"shared", b"SELECT $1::int + 1").status).name)
        run.note(connection.execute("EXECUTE shared (1)").fetchone())
        run.note(connection.execute("PREPARE also (int) AS SELECT $1 - 1").statusmessage)
        result = c.exec_prepared(b"also", [b"7"])
        run.note(pq.ExecStatus(result.status).name, result.get_value(0, 0), said(result))
        result = c.prepare(b"shared", b"SELECT 2")
        run.note(pq.ExecStatus(result.status).name, said(result))
        run.note(connection.execute("DEALLOCATE shared").statusmessage)
        result = c.exec_prepared(b"shared", [b"7"])
        run.note(pq.ExecStatus(result.status).name, said(result))
        result = c.describe_prepared(b"also")
        run.note(pq.ExecStatus(result.status).name, result.nparams, result.nfields, result.ftype(0))


@scenario
def settings_set_and_reset(run):
    names = (
        "search_path",
        "work_mem",
        "TimeZone",
        "DateStyle",
        "statement_timeout",
        "my.own",
        "extra_float_digits",
    )

    def show(connection):
        # A custom name that any session of a connection has used reads as '' from then on, no more as NULL: PostgreSQL
        # cannot forget it, so on a shared connection the two are one.
        run.note(
            [
                connection.execute(f"SELECT current_setting('{name}', true)").fetchone()[0] or None
                for name in names
            ]
        )

    with run.connect() as a, run.connect() as b:
        show(a)
        a.execute("SET work_mem = '3MB'; SET TimeZone TO 'Europe/Paris'; SET search_path TO nowhere, public")
        a.execute("SET SESSION my.own = 'a''s'")
        b.execute("SELECT set_config('my.own', 'b', false), set_config('work_mem', '5MB', false)")
        for _ in range(3):
            show(a)
            show(b)
        run.note(a.info.timezone, a.info.parameter_status("TimeZone"), b.info.parameter_status("TimeZone"))
        with a.transaction(force_rollback=True):
            a.execute("SET work_mem = '7MB'; SET LOCAL TimeZone = 'Asia/Tokyo'; SET my.own = 'rolled back'")
            show(a)
        show(a)
        run.note(a.info.parameter_status("TimeZone"))
        with a.transaction():
            a.execute("SET LOCAL my.own = 'local'; SET statement_timeout = 12345")
            show(a)
        show(a)
        a.execute("RESET work_mem")
        show(a)
        a.execute("SET TIME ZONE 'UTC'; SET my.own TO DEFAULT; SET SCHEMA 'public'")
        show(a)
        a.execute("RESET ALL")
        show(a)
        show(b)
        run.error(a.execute, "SET work_mem = 'nonsense'")
        b.execute("DISCARD ALL")
        show(b)
        a.execute(
            "CREATE FUNCTION f() RETURNS text LANGUAGE sql SET work_mem = '9MB' AS 'SELECT current_setting(''work_mem'')'"
        )
        run.note(a.execute("SELECT f()").fetchone())
        show(a)
        for tz in (
            "SET SESSION TimeZone = 'Asia/Tokyo'",
            "SET TIME ZONE LOCAL",
            "SET NAMES 'LATIN1'",
            "RESET client_encoding",
            "SET client_encoding = 'UTF8'",
            "SET SESSION CHARACTERISTICS AS TRANSACTION ISOLATION LEVEL SERIALIZABLE",
            "SET DateStyle = 'German'",
            "SET IntervalStyle = 'iso_8601'",
            "SET standard_conforming_strings = off",
        ):
            a.execute(tz)
            run.note(
                [
                    a.info.parameter_status(p)
                    for p in (
                        "TimeZone",
                        "client_encoding",
                        "DateStyle",
                        "IntervalStyle",
                        "standard_conforming_strings",
                        "application_name",
                    )
                ]
            )
            run.note(
                a.execute("SELECT '2024-05-06 07:08+00'::timestamptz::text, '1 day'::interval::text").fetchone()
            )


@scenario
def roles(run):
    with run.connect() as a, run.connect() as b:
        for text in (
            "SET ROLE other",
            "RESET ROLE",
            "SET SESSION AUTHORIZATION DEFAULT",
            "SET ROLE NONE",
            "SET ROLE nobody_at_all",
            "SET SESSION AUTHORIZATION other",
            "SET LOCAL ROLE other",
        ):
            try:
                a.execute(text)
            except psycopg.Error as error:
                run.note(error.sqlstate, error.diag.message_primary)
            for c in (a, b, a):
                run.note(text, c.execute("SELECT current_user, session_user").fetchone())


@scenario
def connection_options(run):
    for extra in (
        dict(options="-c work_mem=3MB -c search_path=one,two"),
        dict(application_name="the app"),
        dict(client_encoding="LATIN1"),
        dict(options="-c statement_timeout=7s -c geqo=off"),
        dict(options="--work-mem=9MB"),
        dict(fallback_application_name="fallback"),
        dict(dbname="app"),
        dict(options="-c my.own=x\\ y"),
    ):
        with run.connect(**extra) as c:
            for _ in range(2):
                run.note(
                    extra,
                    c.execute(
                        "SELECT current_setting('work_mem'), current_setting('search_path'), "
                        "current_setting('application_name'), current_setting('client_encoding'), "
                        "current_setting('statement_timeout'), current_setting('geqo'), "
                        "NULLIF(current_setting('my.own', true), '')"
                    ).fetchone(),
                )
            c.execute("SET work_mem = '1MB'; RESET work_mem")
            run.note(c.execute("SHOW work_mem").fetchone())
            c.execute("DISCARD ALL")
            run.note(c.execute("SHOW work_mem").fetchone(), c.info.encoding, c.info.server_version)
    for extra in (
        dict(options="-c work_mem=nonsense"),
        dict(options="-c nosuchthing=1"),
        dict(client_encoding="nonsense"),
    ):
        try:
            run.connect(**extra).close()
            run.note("connected")
        except psycopg.OperationalError as error:
            run.note(str(error).split("FATAL:", 1)[-1])


@scenario
def application_name_is_seen_on_the_server(run):
    with run.connect(application_name="first app") as a, run.connect(application_name="second app") as b:
        for _ in range(3):
            for c in (a, b):
                run.note(
                    c.execute(
                        "SELECT application_name, usename, datname, state FROM pg_stat_activity "
                        "WHERE pid = pg_backend_pid()"
                    ).fetchone()
                )
        a.execute("SET application_name = 'renamed'")
        run.note(a.info.parameter_status("application_name"), b.info.parameter_status("application_name"))
        run.note(
            a.execute("SELECT application_name FROM pg_stat_activity WHERE pid = pg_backend_pid()").fetchone(),
            b.execute("SELECT application_name FROM pg_stat_activity WHERE pid = pg_backend_pid()").fetchone(),
        )


@scenario
def application_name_comes_back(run):
    """RESET leads back to the name of the startup packet, and that is all the client hears."""
    with run.connect(application_name="first app") as a, run.connect(application_name="second app") as b:
        for statement in (
            "RESET ALL",
            "DISCARD ALL",
            "SET application_name = 'renamed'",
            "RESET application_name",
            "SET application_name = 'once more'",
            "RESET ALL",
            "BEGIN",
            "SET LOCAL application_name = 'local'",
            "COMMIT",
        ):
            a.execute(statement)
            run.note(statement, a.info.parameter_status("application_name"))
            run.note(b.execute("SHOW application_name").fetchone(), b.info.parameter_status("application_name"))
            run.note(a.info.parameter_status("application_name"))
            if a.info.transaction_status == psycopg.pq.TransactionStatus.IDLE:
                run.note(a.execute("SHOW application_name").fetchone())


@scenario(pool=4)
def temporary_tables(run):
    with run.connect() as a, run.connect() as b, run.connect() as c:
        a.execute("CREATE TEMP TABLE mine (i int); INSERT INTO mine VALUES (1)")
        b.execute("CREATE TEMPORARY TABLE mine (t text)")
        for _ in range(3):
            run.note(a.execute("SELECT * FROM mine").fetchall(), b.execute("SELECT * FROM mine").fetchall())
            run.error(c.execute, "SELECT * FROM mine")
        a.execute("CREATE TEMP TABLE gone ON COMMIT DROP AS SELECT 1")
        run.error(a.execute, "SELECT * FROM gone")
        with a.transaction():
            a.execute("CREATE TEMP TABLE gone ON COMMIT DROP AS SELECT 1 AS one")
            run.note(a.execute("SELECT * FROM gone").fetchall())
        a.execute("DROP TABLE mine")
        run.error(a.execute, "SELECT * FROM mine")
        b.execute("DISCARD TEMP")
        run.error(b.execute, "SELECT * FROM mine")
        b.execute("SELECT 1 AS x INTO TEMP selected")
        run.note(b.execute("SELECT * FROM selected").fetchall())
        b.execute("CREATE TEMP VIEW tv AS SELECT 5 AS five; CREATE TEMP SEQUENCE ts")
        run.note(b.execute("SELECT five, nextval('ts') FROM tv").fetchall())


@scenario(pool=4)
def advisory_locks(run):
    with run.connect() as a, run.connect() as b:
        run.note(a.execute("SELECT pg_advisory_lock(42)").fetchone())
        for _ in range(3):
            run.note(b.execute("SELECT pg_try_advisory_lock(42)").fetchone(), a.execute("SELECT 1").fetchone())
        run.note(a.execute("SELECT pg_advisory_unlock(42)").fetchone())
        run.note(
            b.execute("SELECT pg_try_advisory_lock(42)").fetchone(),
            a.execute("SELECT pg_try_advisory_lock(42)").fetchone(),
        )
        run.note(b.execute("SELECT pg_advisory_unlock_all()").fetchone())
        run.note(a.execute("SELECT pg_try_advisory_lock(42)").fetchone())
        a.execute("SELECT pg_advisory_unlock(42)")
        with b.transaction():
            run.note(b.execute("SELECT pg_advisory_xact_lock(43)").fetchone())
            run.note(a.execute("SELECT pg_try_advisory_xact_lock(43)").fetchone())
        run.note(a.execute("SELECT pg_try_advisory_xact_lock(43)").fetchone())
        run.note(a.execute("SELECT pg_try_advisory_lock(%s, %s)", [1, 2]).fetchone())
        a.close()
        free = "SELECT pg_try_advisory_lock(1, 2) AND pg_advisory_unlock(1, 2)"
        with run.stage.cluster.admin() as witness:
            wait_until(
                "the lock of the client that left to be free", lambda: witness.execute(free).fetchone()[0]
            )
        run.note(b.execute(free).fetchone())


@scenario(pool=4)
def listen_and_notify(run):
    with run.connect() as a, run.connect() as b:
        heard = []
        a.add_notify_handler(lambda n: heard.append((n.channel, n.payload)))
        run.note(a.execute("LISTEN news").statusmessage)
        a.execute('LISTEN "Other Channel"')
        for i in range(5):
            b.execute("SELECT pg_notify('news', %s)", [f"message {i}"])
        b.execute("NOTIFY \"Other Channel\", 'x'; NOTIFY unheard")
        got = []
        for notify in a.notifies():
            got.append((notify.channel, notify.payload))
            if len(got) == 6:
                break
        run.note(got)
        with b.transaction(force_rollback=True):
            b.execute("NOTIFY news, 'rolled back'")
        del heard[:]
        a.execute("NOTIFY news, 'to myself'")
        run.note(heard)
        with a.transaction():
            a.execute("NOTIFY news, 'at commit'")
            a.execute("NOTIFY news, 'at commit'")
            run.note(heard)
        run.note(heard)
        a.execute("UNLISTEN news")
        run.note(a.execute("SELECT * FROM pg_listening_channels() ORDER BY 1").fetchall())
        a.execute("UNLISTEN *")
        run.note(a.execute("SELECT * FROM pg_listening_channels()").fetchall())
        run.note(b.execute("SELECT * FROM pg_listening_channels()").fetchall())


@scenario(wire=False)
def cancel_a_running_statement(run):
    with run.connect() as connection, run.connect() as witness:
        for turn in range(3):
            timer = threading.Thread(target=cancel_when_running, args=(witness, connection, turn))
            timer.start()
            run.error(connection.execute, f"SELECT pg_sleep(30) /* victim {turn} */")
            timer.join()
            run.note(connection.info.transaction_status, connection.execute("SELECT 1").fetchone())
        connection.cancel()  # nothing runs: nothing happens
        run.note(connection.execute("SELECT count(*) FROM generate_series(1, 1000)").fetchone())
        connection.execute("SET statement_timeout = 100")
        run.error(connection.execute, "SELECT pg_sleep(30)")
        run.note(witness.execute("SHOW statement_timeout").fetchone())


def cancel_when_running(witness, victim, turn):
    seen = f"SELECT 1 FROM pg_stat_activity WHERE query LIKE '%victim {turn}%' AND pid <> pg_backend_pid() AND state = 'active'"
    wait_until("the victim to run", lambda: witness.execute(seen).fetchone())
    victim.cancel()


if __name__ == "__main__":
    main()
