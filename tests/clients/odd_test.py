"""What applications do rarely, and what nobody means to do: each as PostgreSQL answers it."""

import select
import struct

import psycopg

from harness import main, scaled, scenario
from protocol import SYNC, bind, close, describe, execute, logged_in, message, parse, query


def ask_all(run, c, *texts):
    for text in texts:
        run.note(text[:60], c.ask(query(text)))


def conversation(function=None, **options):
    """A scenario over a raw socket."""
    return (
        scenario(function, wire=False, **options) if function else lambda f: scenario(f, wire=False, **options)
    )


@conversation
def several_statements_in_one_query(run):
    with logged_in(run) as c:
        ask_all(
            run,
            c,
            "CREATE TABLE t (i int PRIMARY KEY)",
            "INSERT INTO t VALUES (1); SELECT 1/0; INSERT INTO t VALUES (2)",
            "SELECT * FROM t",
            "INSERT INTO t VALUES (1); SELEC",
            "SELECT * FROM t",
            "INSERT INTO t VALUES (1); COMMIT; INSERT INTO t VALUES (2); SELECT 1/0",
            "SELECT * FROM t",
            "BEGIN; INSERT INTO t VALUES (3)",
            "ROLLBACK; INSERT INTO t VALUES (4); SELECT count(*) FROM t",
            "BEGIN; INSERT INTO t VALUES (5); COMMIT; SELECT 1/0",
            "SELECT * FROM t ORDER BY 1",
            "BEGIN; SELECT 1/0; COMMIT",
            "SELECT 1",
            "COMMIT; SELECT 2",
            "ROLLBACK; ROLLBACK",
            "SET work_mem = '1234kB'; SELECT 1/0",
            "SHOW work_mem",
            "SET work_mem = '1234kB'; SHOW work_mem; RESET work_mem; SHOW work_mem",
            "SAVEPOINT a; SELECT 1",
            "SELECT 1; SAVEPOINT a; ROLLBACK TO a; SELECT 2",
            "BEGIN; SAVEPOINT a; SELECT 1/0",
            "ROLLBACK TO a; SELECT 3",
            "COMMIT AND CHAIN",
            "SELECT 4",
            "ROLLBACK AND CHAIN",
            "COMMIT",
            "COMMIT AND CHAIN",
            "SELECT 1; VACUUM t",
            "VACUUM t",
            "BEGIN; VACUUM t",
            "ROLLBACK",
            "SELECT; SELECT FROM t; TABLE t",
            "LOCK TABLE t",
            "LOCK TABLE t; SELECT 1",
            "DECLARE c CURSOR FOR SELECT 1",
            "DECLARE c CURSOR FOR SELECT 1; FETCH c",
            "PREPARE p AS SELECT 1; EXECUTE p; DEALLOCATE p",
            "DO $$BEGIN RAISE NOTICE 'a'; RAISE WARNING 'b'; END$$; SELECT 1",
            "/* only a comment */",
            "-- and another",
            ";;; SELECT 1 ;;;",
            "START TRANSACTION READ ONLY; INSERT INTO t VALUES (9)",
            "ABORT",
            "END",
            "BEGIN ISOLATION LEVEL SERIALIZABLE, READ ONLY, DEFERRABLE; SHOW transaction_isolation",
            "BEGIN",
            "SET TRANSACTION ISOLATION LEVEL REPEATABLE READ",
            "COMMIT",
            "SET TRANSACTION READ ONLY",
            "SET LOCAL work_mem = '1MB'",
        )


@conversation
def procedures_that_commit(run):
    with logged_in(run) as c:
        ask_all(
            run,
            c,
            "CREATE TABLE t (i int)",
            "CREATE PROCEDURE p(INOUT n int) LANGUAGE plpgsql AS $$BEGIN INSERT INTO t VALUES (n); COMMIT;"
            " INSERT INTO t VALUES (n + 1); ROLLBACK; n := n * 10; END$$",
            "CALL p(1)",
            "SELECT * FROM t",
            "BEGIN; CALL p(2)",
            "ROLLBACK",
            "CALL p(3); SELECT 1",
            "SELECT * FROM t ORDER BY 1",
            "DO $$BEGIN FOR i IN 5..7 LOOP INSERT INTO t VALUES (i); IF i % 2 = 0 THEN COMMIT; ELSE ROLLBACK; END IF;"
            " END LOOP; END$$",
            "SELECT * FROM t ORDER BY 1",
        )
        c.send(parse("", "CALL p($1)", [23]), bind("", "", [b"20"]), describe("P", ""), execute(), SYNC)
        run.note(c.until_ready())
        ask_all(run, c, "SELECT * FROM t ORDER BY 1", "DROP PROCEDURE p")


@conversation
def bytes_that_are_no_text(run):
    with logged_in(run) as c:
        c.ask(query("CREATE TABLE t (v text, b bytea)"))
        run.note(c.ask(message("Q", b"SELECT '\xff\xfe'\0")))
        run.note(c.ask(message("Q", b"SELECT '\xc3'\0")))
        run.note(c.ask(message("Q", b"SELECT 'a\xe2\x82' || 'b'\0")))
        run.note(c.ask(message("Q", b"SELECT 1 AS \"\xff\"\0")))
        run.note(c.ask(message("Q", b"BEGIN\0")), c.ask(message("Q", b"SELECT '\xed\xa0\x80'\0")))
        run.note(c.ask(query("SELECT 1")), c.ask(query("ROLLBACK")))
        for value in (b"\xff", b"a\0b", b"", b"\\x00", "ü".encode(), "ü".encode("latin1")):
            for binary in (0, 1):
                c.send(parse("", "SELECT $1::text", [25]), bind("", "", [value], [binary]), execute(), SYNC)
                run.note(value, binary, c.until_ready())
        c.send(parse("", "INSERT INTO t (b) VALUES ($1) RETURNING b", [17]), bind("", "", [b"\0\xff"], [1], [1]))
        c.send(execute(), SYNC)
        run.note(c.until_ready())
        run.note(c.ask(message("P", b"\xc3\xa4\0SELECT 1\0\0\0"), bind("", "ä"), execute(), SYNC))
        run.note(c.ask(query("SELECT E'\\x00'")), c.ask(query("SELECT chr(0)")), c.ask(query("SELECT U&'\\0000'")))
        ask_all(run, c, "SET client_encoding = 'LATIN1'")
        run.note(c.ask(message("Q", b"INSERT INTO t VALUES ('\xe4\xf6') RETURNING v, octet_length(v)\0")))
        run.note(c.ask(query("SELECT U&'\\20AC'")))
        ask_all(run, c, "SET client_encoding = 'SQL_ASCII'", "SELECT v FROM t", "SET client_encoding = 'nothing'")
        ask_all(run, c, "RESET client_encoding", "SELECT v FROM t")


@conversation
def parameters_to_the_limit(run):
    with logged_in(run) as c:
        for count in (32767, 32768, 65535):
            text = "SELECT count(*) FROM (VALUES " + ",".join(f"(${i + 1}::int)" for i in range(count)) + ") v"
            run.note(count)
            c.send(parse("", text), bind("", "", [b"%d" % i for i in range(count)]), execute(), SYNC)
            run.note(c.until_ready())
        c.send(parse("", "SELECT $65535::int"), SYNC)
        run.note(c.until_ready())
        c.send(parse("", "SELECT $65536::int"), SYNC)
        run.note(c.until_ready())
        c.send(parse("", "SELECT $0"), SYNC)
        run.note(c.until_ready())
        c.send(parse("", "SELECT $1::int, $3::int"), bind("", "", [b"1", b"2", b"3"]), execute(), SYNC)
        run.note(c.until_ready())
        c.send(parse("", "SELECT $1::int", [23, 23, 25]), bind("", "", [b"1"]), execute(), SYNC)
        run.note(c.until_ready())
        for formats, results in (([0, 1], []), ([2], []), ([], [7]), ([], [0, 0]), ([1], [1])):
            value = struct.pack(">i", 7) if formats == [1] else b"7"
            c.send(parse("", "SELECT $1::int", [23]), bind("", "", [value], formats, results))
            c.send(execute(), SYNC)
            run.note(formats, results, c.until_ready())


@conversation
def statements_without_end(run):
    with logged_in(run, seconds=60) as c:
        size = scaled(5_000_000, 1_000_000)
        text = "SELECT length('" + "x" * size + "')"
        run.note(c.ask(query(text)))
        c.send(parse("long", text), bind("", "long"), execute(), SYNC)
        run.note(c.until_ready())
        c.send(bind("", "long"), execute(), SYNC)
        run.note(c.until_ready())
        run.note(c.ask(query("SELECT " + ",".join(str(i) for i in range(1664))))[1:])
        run.note(c.ask(query("SELECT " + ",".join(str(i) for i in range(1665)))))
        run.note(c.ask(query("SELECT " + "(" * 3000 + "1" + ")" * 3000)))
        run.note(c.ask(query("SELECT " + "1+" * 4000 + "1")))
        run.note(c.ask(query("SELECT 1 WHERE 1 IN (" + ",".join(str(i) for i in range(20000)) + ")")))
        deep = c.ask(query("SELECT " + "(" * 100000 + "1" + ")" * 100000))
        run.note(deep)
        run.note(c.ask(query("SELECT 1 AS " + "n" * 100)))
        run.note(c.ask(query(";" * 100000)))
        run.note(c.ask(query("SELECT 1;" * 500))[-2:])


@scenario
def limits_of_time(run):
    with run.connect() as c:
        c.execute("SET statement_timeout = '1s'")
        run.error(c.execute, "SELECT pg_sleep(10)")
        run.note(c.execute("SHOW statement_timeout").fetchone())
        with c.transaction():
            c.execute("SET LOCAL statement_timeout = 0")
            run.note(c.execute("SELECT pg_sleep(0.1)").fetchone())
        run.error(c.execute, "SELECT 1; SELECT pg_sleep(10)")
        c.execute("RESET statement_timeout")
        run.note(c.execute("SELECT pg_sleep(0.1)").fetchone())
        with c.pipeline():
            c.execute("SET statement_timeout = '1s'")
            run.error(lambda: c.execute("SELECT pg_sleep(10)").fetchone())
    with run.connect(options="-c statement_timeout=1s -c lock_timeout=3s") as c:
        run.error(c.execute, "SELECT pg_sleep(10)")
        run.note(c.execute("SHOW lock_timeout").fetchone())
        run.note(c.execute("RESET statement_timeout").statusmessage, c.execute("SHOW statement_timeout").fetchone())
    with run.connect() as holder, run.connect() as c:
        holder.execute("CREATE TABLE t (i int)")
        with holder.transaction():
            holder.execute("LOCK TABLE t")
            c.execute("SET lock_timeout = '1s'")
            run.error(c.execute, "SELECT * FROM t")
            run.error(c.execute, "LOCK TABLE t NOWAIT")
    c = run.connect()
    c.execute("SET idle_in_transaction_session_timeout = '100ms'")
    c.execute("BEGIN")
    c.execute("SELECT 1")
    run.note(select.select([c.pgconn.socket], [], [], 30)[0] != [])  # what is said at the end of the connection
    run.error(c.execute, "SELECT 1")
    c.close()


@scenario(pool=4)
def discard_in_every_way(run):
    with run.connect() as c:
        c.prepare_threshold = 0
        run.note(c.execute("SELECT 1").fetchone(), c.execute("SELECT 1").fetchone())
        c.execute("CREATE TEMP TABLE tt (i int)")
        c.execute("SET work_mem = '4321kB'")
        c.execute("SELECT pg_advisory_lock(77)")
        c.execute("LISTEN ch")
        c.execute("DECLARE h CURSOR WITH HOLD FOR SELECT 1")
        c.execute("PREPARE p AS SELECT 2")
        run.note(c.execute("DISCARD PLANS").statusmessage, c.execute("DISCARD SEQUENCES").statusmessage)
        run.note(c.execute("EXECUTE p").fetchone(), c.execute("FETCH h").fetchone())
        run.note(c.execute("DISCARD TEMP").statusmessage)
        run.error(c.execute, "SELECT * FROM tt")
        with c.transaction():
            run.error(c.execute, "DISCARD ALL", prepare=False)
            run.note(c.info.transaction_status.name)
            c.execute("ROLLBACK", prepare=False)
            c.execute("BEGIN", prepare=False)
        run.note(c.execute("SHOW work_mem").fetchone())
        run.note(c.execute("DISCARD ALL", prepare=False).statusmessage)
    with run.connect() as c:
        c.prepare_threshold = None
        c.execute("SET work_mem = '4321kB'")
        c.execute("SELECT pg_advisory_lock(77)")
        c.execute("LISTEN ch")
        c.execute("DECLARE h CURSOR WITH HOLD FOR SELECT 1")
        c.execute("PREPARE p AS SELECT 2")
        c.execute("CREATE TEMP TABLE tt (i int)")
        run.note(c.execute("DISCARD ALL").statusmessage)
        for text in ("EXECUTE p", "FETCH h", "SELECT * FROM tt"):
            run.error(c.execute, text)
        run.note(c.execute("SHOW work_mem").fetchone(), c.execute("SELECT * FROM pg_listening_channels()").fetchall())
        run.note(c.execute("SELECT count(*) FROM pg_locks WHERE locktype = 'advisory'").fetchone())
        c.execute("PREPARE p AS SELECT 3")
        run.note(c.execute("EXECUTE p").fetchone())
        run.note(c.execute("DEALLOCATE ALL").statusmessage)
        run.error(c.execute, "EXECUTE p")
        run.error(c.execute, "DEALLOCATE p")


@scenario(pool=4)
def roles_and_session_authorization(run):
    with run.connect() as c:
        show = "SELECT current_user, session_user, current_setting('role'), current_setting('is_superuser')"
        run.note(c.execute(show).fetchone())
        run.error(c.execute, "SET ROLE nobody_of_that_name")
        run.error(c.execute, "SET SESSION AUTHORIZATION other")
        run.note(c.execute("SET SESSION AUTHORIZATION app").statusmessage, c.execute(show).fetchone())
        run.note(c.execute("RESET SESSION AUTHORIZATION").statusmessage)
        run.note(c.execute("SET ROLE app").statusmessage, c.execute(show).fetchone())
        run.note(c.execute("SET ROLE NONE").statusmessage, c.execute(show).fetchone())
        with c.transaction():
            c.execute("SET LOCAL ROLE app")
            run.note(c.execute(show).fetchone())
        run.note(c.execute(show).fetchone())


@scenario(pool=4, wire=False)
def notifications_of_every_size(run):
    with run.connect() as a, run.connect() as b:
        got = []
        a.add_notify_handler(lambda n: got.append((n.channel, n.payload[:30], len(n.payload))))

        def until(payload):
            while not any(seen[1] == payload for seen in got):
                a.execute("SELECT 1")
            run.note(got)
            got.clear()

        a.execute("LISTEN one")
        a.execute('LISTEN "Two words"')
        run.note(a.execute("SELECT * FROM pg_listening_channels() ORDER BY 1").fetchall())
        b.execute("NOTIFY one")
        b.execute("NOTIFY one, 'payload with ''quotes'''")
        b.execute("SELECT pg_notify('Two words', repeat('ü', 3999))")
        run.error(b.execute, "SELECT pg_notify('one', repeat('x', 8000))")
        run.error(b.execute, "SELECT pg_notify('', 'x')")
        with b.transaction():
            b.execute("NOTIFY one, 'same'")
            b.execute("NOTIFY one, 'same'")
            b.execute("NOTIFY one, 'other'")
        with b.transaction():
            b.execute("NOTIFY one, 'never'")
            raise psycopg.Rollback
        b.execute("NOTIFY one, 'last'")
        until("last")
        a.execute("BEGIN")
        b.execute("NOTIFY one, 'in a transaction'")
        run.note(a.execute("SELECT 1").fetchone(), got)
        a.execute("COMMIT")
        until("in a transaction")
        a.execute("NOTIFY one, 'my own'")
        until("my own")
        a.execute("UNLISTEN *")
        run.note(a.execute("SELECT * FROM pg_listening_channels()").fetchall())
        b.execute("NOTIFY one, 'nobody listens'")
        a.execute("BEGIN")
        a.execute("LISTEN later")
        a.execute("ROLLBACK")
        run.note(a.execute("SELECT * FROM pg_listening_channels()").fetchall(), got)


@scenario(pool=4)
def cursors_that_stay(run):
    with run.connect() as c:
        c.execute("CREATE TABLE t AS SELECT i FROM generate_series(1, 20) i")
        c.execute("BEGIN")
        c.execute("DECLARE h SCROLL CURSOR WITH HOLD FOR SELECT i FROM t ORDER BY i")
        run.note(c.execute("FETCH 3 FROM h").fetchall())
        c.execute("COMMIT")
        for text in (
            "FETCH 2 FROM h",
            "FETCH BACKWARD 3 FROM h",
            "MOVE LAST IN h",
            "FETCH PRIOR h",
            "FETCH ABSOLUTE 5 FROM h",
            "FETCH RELATIVE -2 FROM h",
            "FETCH FORWARD ALL FROM h",
            "MOVE BACKWARD ALL FROM h",
            "FETCH FIRST h",
        ):
            cursor = c.execute(text)
            run.note(text, cursor.statusmessage, cursor.fetchall() if cursor.description else None)
        run.note(c.execute("SELECT name, is_holdable, is_scrollable FROM pg_cursors").fetchall())
        c.execute("DECLARE h2 NO SCROLL CURSOR WITH HOLD FOR SELECT i FROM t ORDER BY i LIMIT 1")
        run.note(c.execute("FETCH h2").fetchone())
        run.error(c.execute, "FETCH PRIOR h2")
        run.error(c.execute, "DECLARE h CURSOR WITH HOLD FOR SELECT 1")
        run.error(c.execute, "DECLARE h3 CURSOR WITH HOLD FOR SELECT 1/(i - 3) FROM t ORDER BY i")
        run.error(c.execute, "FETCH h3")
        run.note(c.execute("CLOSE h").statusmessage, c.execute("CLOSE ALL").statusmessage)
        run.error(c.execute, "FETCH h")
        c.execute("BEGIN")
        c.execute("DECLARE u CURSOR FOR SELECT i FROM t ORDER BY i FOR UPDATE")
        run.note(c.execute("FETCH u").fetchone())
        run.note(c.execute("UPDATE t SET i = 100 WHERE CURRENT OF u").statusmessage)
        run.note(c.execute("DELETE FROM t WHERE CURRENT OF u RETURNING i").fetchall())
        c.execute("ROLLBACK")
        run.note(c.execute("SELECT min(i), max(i) FROM t").fetchone())


@conversation
def plans_of_another_shape(run):
    with logged_in(run) as c, logged_in(run) as other:
        run.note(c.ask(query("CREATE TABLE t (i int)")), c.ask(query("INSERT INTO t VALUES (1)")))
        run.note(c.ask(parse("s", "SELECT * FROM t"), describe("S", "s"), SYNC))
        run.note(c.ask(bind("", "s"), execute(), SYNC))
        run.note(other.ask(query("ALTER TABLE t ADD COLUMN j text DEFAULT 'j'")))
        run.note(c.ask(bind("", "s"), execute(), SYNC))
        run.note(c.ask(bind("", "s"), describe("P", ""), execute(), SYNC))
        run.note(c.ask(parse("s", "SELECT * FROM t"), SYNC))
        run.note(c.ask(close("S", "s"), parse("s", "SELECT * FROM t"), bind("", "s"), execute(), SYNC))
        run.note(c.ask(query("BEGIN")))
        run.note(other.ask(query("ALTER TABLE t DROP COLUMN j")))
        run.note(c.ask(bind("", "s"), execute(), SYNC))
        run.note(c.ask(query("SELECT 1")), c.ask(query("ROLLBACK")))
        run.note(c.ask(parse("ins", "INSERT INTO t VALUES ($1)"), describe("S", "ins"), SYNC))
        run.note(other.ask(query("ALTER TABLE t ALTER COLUMN i TYPE bigint")))
        run.note(c.ask(bind("", "ins", [b"5000000000"]), execute(), SYNC))
        run.note(c.ask(bind("", "ins", [b"7"]), execute(), SYNC))
        run.note(c.ask(query("PREPARE q AS SELECT * FROM t")), c.ask(query("EXECUTE q")))
        run.note(other.ask(query("ALTER TABLE t RENAME COLUMN i TO k")))
        run.note(c.ask(query("EXECUTE q")))
        run.note(other.ask(query("DROP TABLE t")), c.ask(query("EXECUTE q")), c.ask(bind("", "s"), SYNC))
        run.note(other.ask(query("CREATE TABLE t (k bigint)")), c.ask(query("EXECUTE q")))
        run.note(c.ask(bind("", "ins", [b"9"]), execute(), SYNC))


@conversation(noise=False)
def plans_on_other_connections(run):
    # The pool has two connections. Who is inside a transaction has one of them, and the others get the other.
    with logged_in(run) as c, logged_in(run) as one, logged_in(run) as two:

        def hold(client):
            run.note(client.ask(query("BEGIN")), client.ask(query("SELECT 1")))

        # The client's statement was prepared before a definition, and the other connection gets it after that: what
        # its parameters are stays as it was.
        for text in ("CREATE TABLE t (i int, at timestamp)", "INSERT INTO t VALUES (1, '2020-02-03')"):
            run.note(c.ask(query(text)))
        run.note(c.ask(parse("ins", "INSERT INTO t VALUES ($1, $2)"), describe("S", "ins"), SYNC))
        run.note(c.ask(parse("get", "SELECT * FROM t"), describe("S", "get"), SYNC))
        run.note(c.ask(query("ALTER TABLE t ALTER i TYPE bigint, ALTER at TYPE timestamptz")))
        hold(one)
        run.note(c.ask(bind("", "ins", [b"5000000000", b"2020-02-04"]), execute(), SYNC))
        values = [struct.pack(">i", 7), struct.pack(">q", 3_600_000_000)]
        run.note(c.ask(bind("", "ins", values, [1]), execute(), SYNC))
        run.note(c.ask(describe("S", "ins"), SYNC))
        # The columns of a statement that was prepared before are others now.
        run.note(c.ask(bind("", "get"), execute(), SYNC))
        run.note(one.ask(query("COMMIT")))
        # A client that knows the new columns meets a connection on which the statement is an old one.
        hold(two)
        run.note(c.ask(close("S", "get"), parse("get", "SELECT * FROM t"), bind("", "get"), execute(), SYNC))
        hold(one)
        run.note(two.ask(query("COMMIT")))
        run.note(c.ask(bind("", "get"), execute(), SYNC))
        run.note(c.ask(close("S", "get"), parse("get", "SELECT * FROM t"), bind("", "get"), execute(), SYNC))
        hold(two)
        run.note(one.ask(query("COMMIT")))
        run.note(c.ask(bind("", "get"), execute(), SYNC))
        # And one whose table is gone.
        run.note(c.ask(query("ALTER TABLE t ADD COLUMN more int")), two.ask(query("COMMIT")))
        hold(two)
        run.note(c.ask(bind("", "get"), execute(), SYNC), c.ask(query("DROP TABLE t")), two.ask(query("COMMIT")))
        hold(one)
        run.note(c.ask(bind("", "get"), execute(), SYNC), one.ask(query("COMMIT")))


@conversation
def definitions_between_messages(run):
    with logged_in(run) as c:
        ask_all(run, c, "CREATE TABLE t (i int)", "BEGIN", "CREATE INDEX CONCURRENTLY x ON t (i)", "ROLLBACK", "CREATE INDEX x ON t (i)")
        for text in ("VACUUM t", "ANALYZE t", "CLUSTER"):
            run.note(text, c.ask(parse("", text), bind("", ""), execute(), SYNC))
        c.send(parse("", "SELECT 1"), bind("", ""), execute(), parse("", "VACUUM t"), bind("", ""), execute(), SYNC)
        run.note(c.until_ready())
        c.send(parse("", "VACUUM t"), bind("", ""), execute(), parse("", "SELECT 1"), bind("", ""), execute(), SYNC)
        run.note(c.until_ready())
        c.send(parse("", "INSERT INTO t VALUES (1)"), bind("", ""), execute())
        c.send(parse("", "COMMIT"), bind("", ""), execute())
        c.send(parse("", "SELECT 1/0"), bind("", ""), execute(), SYNC)
        run.note(c.until_ready(), c.ask(query("SELECT * FROM t")))
        c.send(parse("", "INSERT INTO t VALUES (2)"), bind("", ""), execute())
        c.send(parse("", "BEGIN"), bind("", ""), execute(), SYNC)
        run.note(c.until_ready(), c.ask(query("ROLLBACK")), c.ask(query("SELECT * FROM t")))
        c.send(parse("", "INSERT INTO t VALUES (3)"), bind("", ""), execute())
        c.send(parse("", "ROLLBACK"), bind("", ""), execute(), SYNC)
        run.note(c.until_ready(), c.ask(query("SELECT * FROM t")))
        c.send(parse("", "SAVEPOINT a"), bind("", ""), execute(), SYNC)
        run.note(c.until_ready())
        c.send(parse("", "SET LOCAL work_mem = '2MB'"), bind("", ""), execute())
        c.send(parse("", "SHOW work_mem"), bind("", ""), execute(), SYNC)
        run.note(c.until_ready(), c.ask(query("SHOW work_mem")))
        c.send(parse("", "SET work_mem = '2MB'"), bind("", ""), execute())
        c.send(parse("", "SELECT 1/0"), bind("", ""), execute(), SYNC)
        run.note(c.until_ready(), c.ask(query("SHOW work_mem")))
        c.send(parse("", "COPY t FROM STDIN"), bind("", ""), execute(), SYNC)
        run.note(c.read()[0], c.read()[0], c.read()[0])
        c.send(message("d", b"7\n"), message("f", b"enough\0"), SYNC)
        run.note(c.until_ready(), c.ask(query("SELECT * FROM t")))
        c.send(query("COPY t FROM STDIN"))
        run.note(c.read()[0])
        c.send(message("d", b"8\nnine\n10\n"), message("c"))
        run.note(c.until_ready(), c.ask(query("SELECT * FROM t")))
        c.send(query("COPY t FROM STDIN; SELECT 1; COPY t TO STDOUT"))
        run.note(c.read()[0])
        c.send(message("d", b"11\n"), message("c"))
        run.note(c.until_ready())
        ask_all(run, c, "COPY (SELECT 1/0) TO STDOUT", "COPY nowhere FROM STDIN", "COPY t (i) FROM '/nowhere'")


@scenario
def settings_in_odd_places(run):
    with run.connect(autocommit=True) as c:
        def show(name):
            return c.execute(f"SHOW {name}").fetchone()[0]

        for text in (
            "SET DateStyle = 'German'",
            "SET IntervalStyle = 'iso_8601'",
            "SET TimeZone = 'Asia/Tokyo'",
            "SET extra_float_digits = 0",
            "SET bytea_output = 'escape'",
            "SET xmlbinary = 'hex'",
            "SET TIME ZONE INTERVAL '-08:00' HOUR TO MINUTE",
            "SET TIME ZONE LOCAL",
            "SET NAMES 'UTF8'",
            "SET SESSION CHARACTERISTICS AS TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY",
            "SET SEED TO 0.5",
            "SET XML OPTION DOCUMENT",
            "SET search_path TO DEFAULT",
            "SET my.own = 'x'",
        ):
            run.note(text, c.execute(text).statusmessage)
        run.note(c.execute("SELECT date '2020-02-03', interval '1 day 2 hours' || '', '\\x41ff'::bytea::text").fetchone())
        run.note(show("transaction_isolation"), show("transaction_read_only"), show("my.own"), show("TimeZone"))
        run.note(c.execute("SELECT current_setting('xmloption')").fetchone())
        run.error(c.execute, "CREATE TABLE never (i int)")
        c.execute("RESET ALL")
        run.note(show("transaction_isolation"), show("transaction_read_only"), show("my.own"), show("TimeZone"))
        c.execute("BEGIN")
        c.execute("SET DateStyle = 'SQL'")
        c.execute("SAVEPOINT a")
        c.execute("SET DateStyle = 'German'")
        c.execute("ROLLBACK TO a")
        run.note(show("DateStyle"))
        c.execute("ROLLBACK")
        run.note(show("DateStyle"), c.info.parameter_status("DateStyle"))
        run.note(c.execute("SELECT set_config('work_mem', '3MB', false), set_config('my.own', 'y', true)").fetchone())
        run.note(show("work_mem"), show("my.own"))
        run.error(c.execute, "SET work_mem = 'much'")
        run.error(c.execute, "SET nothing_of_that_name = 1")
        run.error(c.execute, "SHOW nothing_of_that_name")
        run.error(c.execute, "SET server_version = '1'")
        run.error(c.execute, "SET shared_buffers = '1MB'")
        run.note(c.execute("SELECT count(*) > 300 FROM pg_settings").fetchone(), len(c.execute("SHOW ALL").fetchall()) > 300)
        run.note(c.execute("ALTER ROLE app SET work_mem = '5MB'").statusmessage, show("work_mem"))
        run.note(c.execute("ALTER ROLE app RESET ALL").statusmessage)
        c.execute("UPDATE pg_settings SET setting = '6144' WHERE name = 'work_mem'")
        run.note(show("work_mem"))


@scenario
def what_a_parsed_body_sets(run):
    with run.connect() as a, run.connect() as b:
        look = "SELECT nullif(current_setting('own.thing', true), ''), current_setting('work_mem')"
        with run.stage.cluster.admin() as admin:  # the router does not read it
            admin.execute(
                "CREATE FUNCTION leave() RETURNS text LANGUAGE sql BEGIN ATOMIC"
                " SELECT set_config('own.thing', 'mine', false) || set_config('work_mem', '7MB', false); END"
            )
        run.note(a.execute("SELECT leave()").fetchone())
        for _ in range(10):
            run.note(a.execute(look).fetchone(), b.execute(look).fetchone())


@scenario(wire=False)  # PostgreSQL 15 tells of a name that it shortens
def startup_that_is_odd(run):
    for extra in (
        {"options": "-c geqo=off -c my.thing=1"},
        {"options": "-c work_mem=2MB --statement-timeout=1s"},
        {"options": "-c search_path=a,public"},
        {"client_encoding": "LATIN1"},
        {"client_encoding": "SQL_ASCII"},
        {"options": "-c DateStyle=German"},
        {"options": "-cTimeZone=UTC"},
        {"application_name": "ü" * 5},
        {"application_name": "x" * 100},
        {"application_name": ""},
        {"fallback_application_name": "fallback"},
    ):
        with run.connect(**extra) as c:
            run.note(extra, c.execute(
                "SELECT current_setting('geqo'), current_setting('my.thing', true), current_setting('work_mem'), "
                "current_setting('statement_timeout'), current_setting('search_path'), current_setting('client_encoding'), "
                "current_setting('DateStyle'), current_setting('TimeZone'), current_setting('application_name')").fetchone())
            run.note(c.execute("RESET ALL").statusmessage, c.execute("SHOW work_mem").fetchone(), c.execute("SHOW DateStyle").fetchone())
    for extra in (
        {"options": "-c work_mem=much"},
        {"options": "-c nothing=1"},
        {"options": "-c shared_buffers=1MB"},
        {"options": "-x"},
        {"options": "nonsense"},
        {"client_encoding": "nothing"},
        {"options": "-c role=nobody_of_that_name"},
    ):
        try:
            run.connect(**extra).close()
            run.note(extra, "is taken")
        except psycopg.Error as error:
            run.note(extra, str(error).replace(str(run.port), "PORT"))


if __name__ == "__main__":
    main()
