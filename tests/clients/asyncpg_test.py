"""asyncpg: prepared statements everywhere, binary results, its own pool with its own reset query."""

import asyncio
import datetime
import decimal
import re
import uuid

import asyncpg

from harness import PATIENCE, main, scaled, scenario
from postgres import DATABASE, PASSWORD, USER, wait_until


def asynchronous(function):
    """The scenario's body as a coroutine."""

    def run_it(run):
        asyncio.run(asyncio.wait_for(function(run), 55 * PATIENCE))

    run_it.__name__, run_it.__doc__ = function.__name__, function.__doc__
    return run_it


def address(run, **extra):
    return dict(
        host=run.host,
        port=run.port,
        user=USER,
        password=PASSWORD,
        database=DATABASE,
        ssl=False,
        timeout=20,
        **extra,
    )


async def connect(run, **extra):
    return await asyncpg.connect(**address(run, **extra))


async def failing(run, awaitable):
    try:
        await awaitable
        run.note("no error")
    except asyncpg.PostgresError as error:
        run.note(
            "error",
            type(error).__name__,
            error.sqlstate,
            error.message,
            error.detail,
            error.hint,
            error.position,
        )
    except asyncpg.InterfaceError as error:
        run.note("interface error", re.sub("0x[0-9a-f]+", "0x", str(error)))


@scenario
@asynchronous
async def queries_and_types(run):
    c = await connect(run)
    row = await c.fetchrow(
        "SELECT $1::int2 a, $2::int8 b, $3::float8 c, $4::numeric d, $5::text e, $6::bytea f, $7::date g, "
        "$8::timestamptz h, $9::interval i, $10::uuid j, $11::jsonb k, $12::int[] l, $13::inet m, "
        "$14::int4range n, $15::bool o, $16::time p, $17::point q, $18::bit(5) r",
        1,
        2**40,
        1.5,
        decimal.Decimal("1.10"),
        "é",
        b"\0\1",
        datetime.date(2024, 2, 29),
        datetime.datetime(2024, 1, 1, tzinfo=datetime.timezone.utc),
        datetime.timedelta(days=1, seconds=2),
        uuid.UUID(int=5),
        '{"a": 1}',
        [1, None],
        "10.0.0.1",
        asyncpg.Range(1, 5),
        True,
        datetime.time(1, 2, 3),
        (1.0, 2.0),
        asyncpg.BitString("10101"),
    )
    run.note(dict(row))
    for text in (
        "SELECT 1; SELECT 2",
        "CREATE TABLE t (i int PRIMARY KEY, x text)",
        "INSERT INTO t SELECT i, 'x' " "FROM generate_series(1, 5) i",
        "UPDATE t SET x = 'y' WHERE i < 3",
        "DELETE FROM t WHERE i = 5",
        "BEGIN",
        "COMMIT",
    ):
        run.note(text, await c.execute(text))
    run.note(await c.fetchval("SELECT count(*) FROM t"), await c.fetch("SELECT * FROM t ORDER BY i"))
    run.note(await c.execute("INSERT INTO t VALUES ($1, $2)", 9, "nine"))
    await c.executemany("INSERT INTO t VALUES ($1, $2)", [(i, str(i)) for i in range(100, 100 + scaled(300))])
    run.note(await c.fetchval("SELECT count(*) FROM t WHERE i >= 100") == scaled(300))
    await failing(
        run, c.executemany("INSERT INTO t VALUES ($1, $2)", [(i, "z") for i in (1000, 1001, 1, 1002)])
    )
    run.note(await c.fetchval("SELECT count(*) FROM t WHERE i >= 1000"))
    run.note(c.get_server_version(), c.get_settings().TimeZone, c.get_settings().server_encoding)
    await c.close()


@scenario(wire=False)  # object ids are inside arrays
@asynchronous
async def type_introspection(run):
    c = await connect(run)
    await c.execute(
        "CREATE TYPE color AS ENUM ('red', 'green'); CREATE TYPE pair AS (a int, c color); "
        "CREATE DOMAIN small AS int CHECK (VALUE < 100); CREATE TABLE typed (p pair, cs color[], s small)"
    )
    run.note(await c.execute("INSERT INTO typed VALUES ($1, $2, $3)", (1, "red"), ["green", "red"], 7))
    row = await c.fetchrow("SELECT * FROM typed")
    run.note(tuple(row["p"]), row["cs"], row["s"])
    await failing(run, c.execute("INSERT INTO typed VALUES ($1, $2, $3)", (1, "red"), [], 700))
    await c.set_type_codec("jsonb", encoder=str, decoder=lambda v: ("decoded", v), schema="pg_catalog")
    run.note(await c.fetchval("SELECT '{\"a\": 1}'::jsonb"))
    await c.reload_schema_state()
    run.note(await c.fetchval("SELECT ARRAY[ROW(1, 'red')::pair]"))
    await c.close()


@scenario
@asynchronous
async def prepared_and_the_statement_cache(run):
    c = await connect(run, statement_cache_size=3, max_cached_statement_lifetime=0)
    for turn in range(3):
        for i in range(6):
            run.note(await c.fetchval(f"SELECT {i} * $1::int", turn))
    p = await c.prepare("SELECT $1::int AS n, $2::text AS t")
    run.note(
        [(a.name, a.type.name) for a in p.get_attributes()],
        [t.name for t in p.get_parameters()],
        p.get_statusmsg(),
    )
    for i in range(4):
        run.note(await p.fetchrow(i, str(i)))
    run.note(await p.explain(1, "x"))
    await failing(run, c.prepare("SELECT oops"))
    await failing(run, c.fetch("SELECT 1 / $1::int", 0))
    for _ in range(2):
        await failing(run, c.fetch("SELECT 10 / $1::int", 0))
        run.note(await c.fetchval("SELECT 10 / $1::int", 5))
    uncached = await connect(run, statement_cache_size=0)
    for i in range(3):
        run.note(await uncached.fetchval("SELECT $1::int + 1", i))
    await uncached.close()
    await c.close()


@scenario
@asynchronous
async def cached_plan_after_ddl(run):
    c, other = await connect(run), await connect(run)
    await other.execute("CREATE TABLE d (a int); INSERT INTO d VALUES (1)")
    for _ in range(3):
        run.note(await c.fetch("SELECT * FROM d"))
    await other.execute("ALTER TABLE d ADD b text DEFAULT 'new'")
    for _ in range(3):
        try:
            run.note(await c.fetch("SELECT * FROM d"))
        except asyncpg.PostgresError as error:
            run.note(type(error).__name__, error.sqlstate, str(error))
    await other.execute("ALTER TABLE d ALTER a TYPE bigint")
    async with c.transaction():
        await failing(run, c.fetch("SELECT * FROM d"))
    await c.close()
    await other.close()


@scenario
@asynchronous
async def cursors(run):
    c = await connect(run)
    async with c.transaction():
        total = 0
        async for row in c.cursor("SELECT i FROM generate_series(1, 137) i", prefetch=10):
            total += row["i"]
        run.note(total)
        cursor = await c.cursor("SELECT i FROM generate_series(1, $1::int) i", 20)
        run.note(
            await cursor.fetch(3), await cursor.forward(5), await cursor.fetchrow(), await cursor.fetch(100)
        )
        one, two = await c.cursor("SELECT generate_series(1, 9)"), await c.cursor(
            "SELECT generate_series(11, 19)"
        )
        for _ in range(3):
            run.note(await one.fetch(2), await two.fetch(2))
    await failing(run, c.cursor("SELECT 1").__aiter__().__anext__())
    await c.close()


@scenario
@asynchronous
async def transactions(run):
    c = await connect(run)
    await c.execute("CREATE TABLE t (i int PRIMARY KEY)")
    for isolation in ("read_committed", "repeatable_read", "serializable"):
        async with c.transaction(isolation=isolation, readonly=True, deferrable=isolation == "serializable"):
            run.note(
                await c.fetchval("SHOW transaction_isolation"), await c.fetchval("SHOW transaction_read_only")
            )
            run.note(c.is_in_transaction())
    async with c.transaction():
        await c.execute("INSERT INTO t VALUES (1)")
        try:
            async with c.transaction():
                await c.execute("INSERT INTO t VALUES (2)")
                raise KeyError
        except KeyError:
            pass
        await failing(run, inner_failure(c))
        await c.execute("INSERT INTO t VALUES (3)")
    run.note(await c.fetch("SELECT * FROM t ORDER BY i"))
    transaction = c.transaction()
    await transaction.start()
    await failing(run, c.execute("SELECT 1 / 0"))
    await failing(run, c.execute("SELECT 1"))
    await transaction.rollback()
    run.note(await c.fetchval("SELECT count(*) FROM t"))
    await c.close()


async def inner_failure(c):
    async with c.transaction():
        await c.execute("INSERT INTO t VALUES (1)")


@scenario
@asynchronous
async def copying(run):
    c = await connect(run)
    await c.execute("CREATE TABLE c (i int, t text, d date)")
    rows = [
        (i, None if i % 7 == 0 else f"text {i}", datetime.date(2024, 1, 1 + i % 28))
        for i in range(scaled(5000))
    ]
    run.note(await c.copy_records_to_table("c", records=rows))
    run.note(await c.copy_records_to_table("c", records=[(1,), (2,)], columns=["i"]))
    run.note(await c.fetchrow("SELECT count(*), sum(i), count(t), max(d) FROM c"))
    await failing(run, c.copy_records_to_table("nowhere", records=[(1,)]))
    await failing(run, c.copy_to_table("c", source=Bytes(b"not a number\tx\t2024-01-01\n"), format="text"))
    run.note(await c.copy_to_table("c", source=Bytes(b"7,x,2024-01-01\n"), format="csv"))
    out = bytearray()

    async def collect(data):
        out.extend(data)

    run.note(
        await c.copy_from_query("SELECT i, t FROM c WHERE i < 10 ORDER BY i, t", output=collect, format="csv"),
        bytes(out),
    )
    out.clear()
    run.note(await c.copy_from_table("c", output=collect, format="binary"), len(out))
    async with c.transaction():
        await c.copy_records_to_table("c", records=rows[:10])
        run.note(await c.fetchval("SELECT count(*) FROM c"))
    await c.close()


class Bytes:
    """An asynchronous source of one chunk."""

    def __init__(self, data):
        self.chunks = [data]

    def __aiter__(self):
        return self

    async def __anext__(self):
        if not self.chunks:
            raise StopAsyncIteration
        return self.chunks.pop()


@scenario(pool=4)
@asynchronous
async def listeners(run):
    a, b = await connect(run), await connect(run)
    heard = asyncio.Queue()
    callback = lambda _, pid, channel, payload: heard.put_nowait((channel, payload))
    await a.add_listener("events", callback)
    for i in range(5):
        await b.execute(f"NOTIFY events, 'payload {i}'")
    for _ in range(5):
        run.note(await asyncio.wait_for(heard.get(), 20))
    run.note(await a.fetchval("SELECT 1"), await b.fetch("SELECT pg_listening_channels()"))
    await a.remove_listener("events", callback)
    run.note(await a.fetch("SELECT pg_listening_channels()"))
    logged = []
    b.add_log_listener(lambda _, message: logged.append((message.severity, message.message)))
    await b.execute("DO $$ BEGIN RAISE NOTICE 'noted'; END $$")
    await asyncio.sleep(0)
    run.note(logged)
    await a.close()
    await b.close()


@scenario(wire=False)
@asynchronous
async def its_pool_resets_sessions(run):
    async with asyncpg.create_pool(min_size=1, max_size=8, **address(run)) as pool:
        async with pool.acquire() as c:
            await c.execute("CREATE TABLE t (i int); SET work_mem = '3MB'; SET search_path = nowhere, public")
            run.note(await c.fetchval("SHOW work_mem"))

        async def worker(n):
            for turn in range(scaled(20)):
                async with pool.acquire() as c:
                    seen = await c.fetchval("SHOW work_mem"), await c.fetchval("SHOW search_path")
                    if seen != ("4MB", '"$user", public'):
                        return f"worker {n} saw {seen} at turn {turn}"
                    await c.execute(f"SET work_mem = '{n + 1000}kB'; SET search_path = s{n}, public")
                    async with c.transaction():
                        await c.execute("INSERT INTO t VALUES ($1)", n)
                    seen = await c.fetchval("SHOW work_mem")
                    if seen != f"{n + 1000}kB":
                        return f"worker {n} saw {seen}, its own is {n + 1000}kB"

        run.note(set(await asyncio.gather(*(worker(n) for n in range(12)))))
        run.note(await pool.fetchval("SELECT count(*) FROM t") == 12 * scaled(20))


@scenario(wire=False)
@asynchronous
async def cancelled_by_a_timeout(run):
    c = await connect(run)
    for _ in range(3):
        try:
            await c.fetchval("SELECT pg_sleep(30)", timeout=0.2)
        except asyncio.TimeoutError:
            run.note("timed out")
        run.note(await c.fetchval("SELECT 1"), c.is_in_transaction())
    with run.connect() as witness:
        wait_until(
            "the cancelled statement to be gone",
            lambda: witness.execute(
                "SELECT count(*) FROM pg_stat_activity WHERE query LIKE '%pg_sleep(30)%' AND state = 'active' "
                "AND pid <> pg_backend_pid()"
            ).fetchone()[0]
            == 0,
        )
    await c.close()


@scenario
@asynchronous
async def server_settings(run):
    c = await connect(
        run, server_settings={"application_name": "async app", "work_mem": "3MB", "search_path": "x,y"}
    )
    for _ in range(2):
        run.note(
            await c.fetchrow(
                "SELECT current_setting('application_name') a, current_setting('work_mem') b, "
                "current_setting('search_path') c"
            )
        )
    await c.execute("SET work_mem = '5MB'")
    await c.reset()
    run.note(await c.fetchval("SHOW work_mem"))
    await c.close()
    try:
        await connect(run, server_settings={"nonsense": "1"})
    except asyncpg.PostgresError as error:
        run.note(error.sqlstate, error.message)


if __name__ == "__main__":
    main()
