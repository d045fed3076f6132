"""psycopg 3: what applications do with it, directly and routed."""

import datetime
import decimal
import uuid

import psycopg
from psycopg import pq, sql
from psycopg.rows import dict_row
from psycopg.types.json import Jsonb

from harness import main, said, scaled, scenario

TYPED = (
    "SELECT 1::int2, 2::int4, 3::int8, 1.5::float4, 2.5::float8, 12345.6789::numeric, true, 'text', 'v'::varchar(3), "
    "'\\x00ff'::bytea, '2024-02-29'::date, '2024-02-29 12:34:56.789'::timestamp, "
    "'2024-02-29 12:34:56.789+02'::timestamptz, '12:34:56'::time, '1 day 02:03:04'::interval, "
    "'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11'::uuid, '{\"a\": [1, 2]}'::jsonb, ARRAY[1, NULL, 3], "
    "ARRAY['a', 'b,c'], NULL::int, '10.0.0.1/24'::inet, int4range(1, 5)"
)


def describe(run, cursor):
    run.note(
        [(c.name, c.type_code, c.internal_size, c.precision, c.scale) for c in cursor.description or []],
        cursor.statusmessage,
        cursor.rowcount,
    )


@scenario
def types_in_text_and_binary(run):
    for binary in (False, True):
        with run.connect() as connection, connection.cursor(binary=binary) as cursor:
            cursor.execute(TYPED)
            describe(run, cursor)
            run.note(cursor.fetchall())


@scenario
def parameters_of_every_kind(run):
    values = [
        1,
        2**40,
        1.25,
        decimal.Decimal("1.10"),
        True,
        "it's",
        b"\0\1",
        datetime.date(2024, 1, 2),
        datetime.datetime(2024, 1, 2, 3, 4, 5, tzinfo=datetime.timezone.utc),
        datetime.timedelta(days=2, seconds=3),
        uuid.UUID(int=7),
        Jsonb({"k": [None, "x"]}),
        [1, 2, 3],
        ["a", None],
        None,
    ]
    with run.connect() as connection:
        for binary in (False, True):
            cursor = connection.cursor(binary=binary)
            for value in values:
                for form in ("%s", "%b", "%t"):
                    try:
                        cursor.execute(f"SELECT {form}", [value])
                        run.note(form, cursor.fetchone(), cursor.description[0].type_code)
                    except psycopg.ProgrammingError as error:
                        run.note(form, value, type(error).__name__)


@scenario
def table_and_command_tags(run):
    with run.connect() as connection, connection.cursor(row_factory=dict_row) as cursor:
        for text in (
            "CREATE TABLE t (id serial PRIMARY KEY, name text UNIQUE, amount numeric(10, 2) CHECK (amount >= 0))",
            "INSERT INTO t (name, amount) SELECT 'n' || i, i FROM generate_series(1, 5) i RETURNING *",
            "UPDATE t SET amount = amount * 2 WHERE id > 3",
            "DELETE FROM t WHERE id = 1",
            "SELECT * FROM t ORDER BY id",
            "TABLE t",
            "CREATE INDEX ON t (amount)",
            "ANALYZE t",
            "CREATE VIEW v AS SELECT name FROM t",
            "SELECT * FROM v",
            "TRUNCATE t RESTART IDENTITY CASCADE",
            "INSERT INTO t (name) VALUES ('x') ON CONFLICT (name) DO UPDATE SET amount = 9",
            "VACUUM t",
            "COMMENT ON TABLE t IS 'hello'",
            "SELECT",
            "",
            "VALUES (1, 'a'), (2, 'b')",
            "DO $$ BEGIN NULL; END $$",
            "EXPLAIN (COSTS OFF) SELECT * FROM t WHERE id = 1",
            "SHOW server_version_num",
            "CREATE FUNCTION f(a int) RETURNS int LANGUAGE sql AS 'SELECT a + 1'",
            "SELECT f(1)",
            "DROP TABLE t CASCADE",
        ):
            cursor.execute(text)
            describe(run, cursor)
            run.note(text, cursor.fetchall() if cursor.description else "no result")


@scenario
def errors_keep_their_fields(run):
    with run.connect() as connection:
        connection.execute(
            "CREATE TABLE e (id int PRIMARY KEY, name text NOT NULL, c int CONSTRAINT small CHECK (c < 10))"
        )
        connection.execute("CREATE TABLE child (e int CONSTRAINT parent REFERENCES e)")
        connection.execute("INSERT INTO e VALUES (1, 'one', 1)")
        for text in (
            "SELEC 1",
            "SELECT nothing FROM e",
            "SELECT * FROM nowhere",
            "INSERT INTO e VALUES (1, 'again', 1)",
            "INSERT INTO e VALUES (2, NULL, 1)",
            "INSERT INTO e VALUES (3, 'x', 99)",
            "INSERT INTO child VALUES (5)",
            "SELECT 1 / 0",
            "SELECT 'x'::int",
            "SELECT 'abc",
            "SELECT f(1)",
            "DROP TABLE nowhere",
            "DO $$ BEGIN RAISE EXCEPTION 'mine' USING ERRCODE = 'AB123', DETAIL = 'd', HINT = 'h'; END $$",
            "DO $$ BEGIN PERFORM 1 / 0; END $$",
            "SET work_mem = 'x'",
            "SET no_such = 1",
            "ROLLBACK TO SAVEPOINT s",
            "SELECT pg_catalog.set_config('nope', 'x', false)",
            "GRANT ALL ON e TO nobody_at_all",
            "SELECT repeat('x', 1100000000)",
        ):
            for parameters in (None, ()):
                error = run.error(connection.execute, text, parameters)
                d = error.diag
                run.note(
                    d.table_name,
                    d.column_name,
                    d.constraint_name,
                    d.schema_name,
                    d.datatype_name,
                    d.source_function,
                )
            run.note(connection.info.transaction_status)


@scenario
def notices_reach_the_client(run):
    with run.connect() as connection:
        connection.add_notice_handler(
            lambda d: run.note("notice", d.severity, d.sqlstate, d.message_primary, d.message_hint)
        )
        connection.execute(
            "DO $$ BEGIN RAISE NOTICE 'one %', 1; RAISE WARNING 'two' USING HINT = 'three'; END $$"
        )
        connection.execute("DROP TABLE IF EXISTS nowhere")
        connection.execute("SET client_min_messages = error")
        connection.execute("DROP TABLE IF EXISTS nowhere")
        connection.execute("SET client_min_messages = debug1")
        connection.execute("DO $$ BEGIN RAISE DEBUG 'four'; END $$")
        connection.execute("COMMIT")


@scenario
def transactions_and_savepoints(run):
    with run.connect(autocommit=False) as connection:
        connection.execute("CREATE TABLE t (i int PRIMARY KEY)")
        connection.commit()
        for i in range(3):
            connection.execute("INSERT INTO t VALUES (%s)", [i])
        run.note(connection.info.transaction_status)
        connection.rollback()
        run.note(connection.execute("SELECT count(*) FROM t").fetchone())
        with connection.transaction():
            connection.execute("INSERT INTO t VALUES (1)")
            try:
                with connection.transaction("inner"):
                    connection.execute("INSERT INTO t VALUES (2)")
                    connection.execute("INSERT INTO t VALUES (1)")
            except psycopg.errors.UniqueViolation as error:
                run.note(error.sqlstate, connection.info.transaction_status)
            connection.execute("INSERT INTO t VALUES (3)")
        run.error(connection.execute, "INSERT INTO t VALUES (3)")
        run.note(connection.info.transaction_status)
        run.error(connection.execute, "SELECT 1")
        connection.rollback()
        run.note(connection.execute("SELECT array_agg(i ORDER BY i) FROM t").fetchall())
        connection.rollback()
        for level in psycopg.IsolationLevel:
            connection.isolation_level = level
            connection.read_only = level == psycopg.IsolationLevel.SERIALIZABLE
            run.note(
                connection.execute("SHOW transaction_isolation").fetchone(),
                connection.execute("SHOW transaction_read_only").fetchone(),
            )
            if connection.read_only:
                run.error(connection.execute, "INSERT INTO t VALUES (9)")
            connection.rollback()
        connection.read_only, connection.isolation_level = None, None
        run.note(
            connection.execute("BEGIN; SELECT 1; COMMIT; SELECT 2").nextset(),
            connection.info.transaction_status,
        )


@scenario
def transaction_control_by_hand(run):
    with run.connect() as connection:
        connection.execute("CREATE TABLE t (i int UNIQUE DEFERRABLE INITIALLY DEFERRED)")
        connection.add_notice_handler(lambda d: run.note("notice", d.sqlstate, d.message_primary))
        for text in (
            "BEGIN",
            "BEGIN",
            "INSERT INTO t VALUES (1), (1)",
            "COMMIT",
            "COMMIT",
            "ROLLBACK",
            "BEGIN READ ONLY",
            "INSERT INTO t VALUES (1)",
            "COMMIT",
            "START TRANSACTION ISOLATION LEVEL SERIALIZABLE DEFERRABLE READ ONLY",
            "SHOW transaction_deferrable",
            "COMMIT AND CHAIN",
            "SHOW transaction_isolation",
            "ROLLBACK AND CHAIN",
            "SHOW transaction_read_only",
            "END",
            "ABORT",
            "SAVEPOINT x",
            "BEGIN",
            "SAVEPOINT x",
            "SELECT 1 / 0",
            "ROLLBACK TO x",
            "RELEASE x",
            "COMMIT",
            "BEGIN",
            "SELECT 1 / 0",
            "COMMIT",
            "SET TRANSACTION READ ONLY",
            "BEGIN; INSERT INTO t VALUES (5); COMMIT; BEGIN; SELECT 1/0; COMMIT",
            "ROLLBACK",
            "INSERT INTO t VALUES (6); SELECT 1 / 0; INSERT INTO t VALUES (7)",
            "SELECT * FROM t",
            "BEGIN",
            "INSERT INTO t VALUES (8)",
            "PREPARE TRANSACTION 'two-phase'",
            "SELECT * FROM t",
            "COMMIT PREPARED 'two-phase'",
            "SELECT * FROM t",
            "ROLLBACK PREPARED 'two-phase'",
            "SET SESSION CHARACTERISTICS AS TRANSACTION READ ONLY",
            "SHOW transaction_read_only",
            "INSERT INTO t VALUES (9)",
            "SET default_transaction_read_only = off",
            "SHOW transaction_read_only",
        ):
            try:
                cursor = connection.execute(text)
                run.note(text, cursor.statusmessage, cursor.fetchall() if cursor.description else None)
            except psycopg.Error as error:
                run.note(text, error.sqlstate, error.diag.message_primary)
            run.note(connection.info.transaction_status)


@scenario
def pipeline_with_errors_in_the_middle(run):
    with run.connect() as connection:
        connection.execute("CREATE TABLE p (i int PRIMARY KEY)")
        with connection.pipeline() as pipeline:
            cursors = [connection.execute("INSERT INTO p VALUES (%s) RETURNING i", [i]) for i in range(20)]
            pipeline.sync()
            run.note([c.fetchall() for c in cursors])
        try:
            with connection.pipeline() as pipeline:
                good = connection.execute("INSERT INTO p VALUES (100)")
                pipeline.sync()
                connection.execute("INSERT INTO p VALUES (101)")
                connection.execute("INSERT INTO p VALUES (1)")
                connection.execute("INSERT INTO p VALUES (102)")
                # The end of the block is the Sync. With one here the driver sends another when it has met the error
                # already, and none when the error is still on its way.
        except psycopg.Error as error:
            run.note(type(error).__name__, error.sqlstate)
        run.note(good.statusmessage)
        run.note(connection.info.transaction_status, connection.info.pipeline_status)
        run.note(connection.execute("SELECT count(*), max(i) FROM p").fetchone())
        with connection.pipeline() as pipeline, connection.transaction():
            for i in range(200, 205):
                connection.execute("INSERT INTO p VALUES (%s)", [i])
        run.note(connection.execute("SELECT count(*), max(i) FROM p").fetchone())
        with connection.pipeline(), connection.cursor() as cursor:
            cursor.executemany(
                "INSERT INTO p VALUES (%s) RETURNING i", [(i,) for i in range(300, 310)], returning=True
            )
            rows = [cursor.fetchone()]
            while cursor.nextset():
                rows.append(cursor.fetchone())
            run.note(rows)


@scenario
def raw_pipeline_of_libpq(run):
    """Several syncs in flight; an error aborts to its own sync and no further."""
    connection = run.connect()
    c = connection.pgconn
    c.nonblocking = 0
    c.enter_pipeline_mode()
    c.send_query_params(b"SELECT 1", None)
    c.send_query_params(b"SELECT 1 / 0", None)
    c.send_query_params(b"SELECT 2", None)
    c.pipeline_sync()
    c.send_prepare(b"named", b"SELECT $1::int * 2")
    c.send_query_prepared(b"named", [b"21"])
    c.pipeline_sync()
    c.send_query_prepared(b"absent", [b"21"])
    c.pipeline_sync()
    c.send_query_params(b"BEGIN", None)
    c.send_query_params(b"SELECT txid_current_if_assigned()", None)
    c.send_query_params(b"COMMIT", None)
    c.pipeline_sync()
    syncs = 0
    while syncs < 4:
        result = c.get_result()
        if result is None:
            continue
        run.note(
            pq.ExecStatus(result.status).name,
            result.ntuples,
            said(result),
            result.get_value(0, 0) if result.ntuples else None,
        )
        syncs += result.status == pq.ExecStatus.PIPELINE_SYNC
    c.exit_pipeline_mode()
    run.note(c.transaction_status)
    connection.close()


@scenario
def server_side_cursors(run):
    with run.connect(autocommit=False) as connection:
        for withhold in (False, True):
            for scrollable in (None, True, False):
                with connection.cursor(name="c", withhold=withhold, scrollable=scrollable) as cursor:
                    cursor.itersize = 7
                    cursor.execute("SELECT i, repeat('x', i) FROM generate_series(1, 20) i")
                    run.note(cursor.fetchone(), len(cursor.fetchmany(3)))
                    if withhold:
                        connection.commit()
                    run.note([row[0] for row in cursor])
                    if scrollable:
                        cursor.scroll(2, "absolute")
                        run.note(cursor.fetchone())
                connection.commit()
    with run.connect() as connection:
        run.error(connection.execute, "DECLARE c CURSOR FOR SELECT 1")
        connection.execute("DECLARE held CURSOR WITH HOLD FOR SELECT generate_series(1, 5)")
        run.note(connection.execute("FETCH 2 FROM held").fetchall())
        run.note(connection.execute("SELECT name, is_holdable FROM pg_cursors WHERE name <> ''").fetchall())
        run.note(connection.execute("FETCH 2 FROM held").fetchall())
        run.note(connection.execute("CLOSE held").statusmessage)
        run.error(connection.execute, "FETCH 1 FROM held")
        with connection.transaction(), connection.cursor("b", row_factory=dict_row) as cursor:
            cursor.execute("SELECT 1 AS one", binary=True)
            run.note(cursor.fetchall(), cursor.description[0].name)


@scenario
def copy_in_and_out(run):
    with run.connect() as connection, connection.cursor() as cursor:
        cursor.execute("CREATE TABLE c (i int, t text, n numeric)")
        with cursor.copy("COPY c FROM STDIN") as copy:
            for i in range(1000):
                copy.write_row((i, f"tab\tnew\nline\\{i}", decimal.Decimal(i) / 4))
        describe(run, cursor)
        with cursor.copy("COPY c (i, t) FROM STDIN (FORMAT binary)") as copy:
            copy.set_types(["int4", "text"])
            for i in range(1000, 1500):
                copy.write_row((i, None))
        describe(run, cursor)
        with cursor.copy("COPY (SELECT * FROM c WHERE i % 250 = 0 ORDER BY i) TO STDOUT") as copy:
            run.note(list(copy.rows()))
        with cursor.copy(
            "COPY (SELECT i, t FROM c WHERE i % 250 = 0 ORDER BY i) TO STDOUT (FORMAT binary)"
        ) as copy:
            copy.set_types(["int4", "text"])
            run.note(list(copy.rows()))
        describe(run, cursor)
        for lines in ("1\tx\n", "x\ty\tz\n", "1\t2\t3\t4\n"):

            def broken():
                with cursor.copy("COPY c FROM STDIN") as copy:
                    copy.write(lines)

            run.error(broken)

        def given_up():
            with cursor.copy("COPY c FROM STDIN") as copy:
                copy.write("1\ta\t1\n")
                raise KeyError("the application's own")

        run.error(given_up)
        run.note(connection.info.transaction_status)
        run.error(lambda: cursor.copy("COPY nowhere TO STDOUT").__enter__())
        run.note(cursor.execute("SELECT count(*), sum(i), sum(n) FROM c").fetchone())
        with connection.transaction():
            with cursor.copy("COPY c FROM STDIN WITH (FORMAT csv, HEADER)") as copy:
                copy.write('i,t,n\n7,"a,""b",1\n')
            run.note(cursor.execute("SELECT * FROM c WHERE n = 1 AND i = 7").fetchall())


@scenario
def large_values_both_ways(run):
    size = scaled(8_000_000)
    text, raw = "é" * (size // 2), bytes(range(256)) * (size // 256)
    with run.connect() as connection:
        run.note(connection.execute("SELECT length(%s), md5(%s::text)", [text, text]).fetchone())
        seen = connection.execute("SELECT %b::bytea", [raw]).fetchone()[0]
        run.note(seen == raw, len(seen))
        run.note(len(connection.execute(f"SELECT repeat('x', {size})").fetchone()[0]))
        run.note(connection.execute(f"SELECT length('{'y' * size}')").fetchone())
        total = 0
        with connection.cursor() as cursor:
            for row in cursor.stream(f"SELECT i, repeat('z', 100) FROM generate_series(1, {scaled(50000)}) i"):
                total += row[0]
        run.note(total)
        columns = ", ".join(f"{i} AS c{i}" for i in range(1600))
        run.note(sum(connection.execute(f"SELECT {columns}").fetchone()))
        run.note(len(connection.execute(sql.SQL("SELECT {}").format(sql.Literal(["v"] * 20000))).fetchone()[0]))


@scenario
def many_statements_in_one_string(run):
    with run.connect() as connection:
        connection.execute("CREATE TABLE m (i int)")
        cursor = connection.execute(
            "INSERT INTO m VALUES (1), (2); SELECT * FROM m; UPDATE m SET i = i + 1; ; SELECT 'end'"
        )
        while True:
            run.note(cursor.statusmessage, cursor.fetchall() if cursor.description else None)
            if not cursor.nextset():
                break
        run.error(connection.execute, "SELECT 1; SELECT 2", [], prepare=True)
        run.error(connection.execute, "INSERT INTO m VALUES (9); SELECT oops; SELECT 3")
        run.note(connection.execute("SELECT array_agg(i ORDER BY i) FROM m").fetchone())
        run.note(
            connection.execute("SET my.x = 'in'; SELECT current_setting('my.x'); RESET my.x").statusmessage
        )
        run.note(connection.execute("SELECT current_setting('my.x', true)").fetchone())


@scenario
def portals_with_row_limits(run):
    """The row limit of Execute, as JDBC's fetch size uses it: here by FETCH through cursors and by single rows."""
    with run.connect(autocommit=False) as connection:
        c = connection.pgconn
        c.send_query(b"SELECT generate_series(1, 3); SELECT 'two'")
        c.set_single_row_mode()
        while (result := c.get_result()) is not None:
            run.note(pq.ExecStatus(result.status).name, [result.get_value(i, 0) for i in range(result.ntuples)])
        connection.rollback()
        connection.execute("DECLARE scrolling SCROLL CURSOR FOR SELECT generate_series(1, 10)")
        for move in ("FETCH 3", "FETCH BACKWARD 2", "FETCH LAST", "MOVE FIRST IN scrolling --", "FETCH ALL"):
            cursor = connection.execute(f"{move} FROM scrolling" if "IN" not in move else move)
            run.note(cursor.statusmessage, cursor.fetchall() if cursor.description else None)
        run.note(connection.execute("SELECT name, is_scrollable FROM pg_cursors WHERE name <> ''").fetchall())


@scenario(pool=4)
def large_objects(run):
    with run.connect() as connection:
        oid = connection.execute("SELECT lo_from_bytea(0, %b)", [b"large object"]).fetchone()[0]
        run.note(connection.execute("SELECT lo_get(%s)", [oid]).fetchone())
        with connection.transaction():
            fd = connection.execute("SELECT lo_open(%s, x'60000'::int)", [oid]).fetchone()[0]
            run.note(connection.execute("SELECT loread(%s, 5)", [fd]).fetchone())
        run.note(connection.execute("SELECT lo_unlink(%s)", [oid]).fetchone())


@scenario
def identity_sequences_and_lastval(run):
    with run.connect() as connection:
        connection.execute("CREATE TABLE s (id bigserial, v int)")
        with connection.transaction():
            connection.execute("INSERT INTO s (v) VALUES (1)")
            run.note(connection.execute("SELECT currval('s_id_seq'), lastval()").fetchone())


if __name__ == "__main__":
    main()
