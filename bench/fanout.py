"""Statements over two shards against plain PostgreSQL with the same rows: latency, COPY, and commits on two shards.

The two clusters and the router share this machine's cores with the client, as plain PostgreSQL does: what is gained by two
machines is not seen here, what is lost by a second hop and a merge is.
"""

import concurrent.futures
import statistics
import time

import psycopg

import tpcb
from postgres import DATABASE, PASSWORD, USER, Cluster
from systems import Direct, Kintsugi

TABLE = "CREATE TABLE facts (id bigint PRIMARY KEY, grp int NOT NULL, v bigint NOT NULL, name text NOT NULL)"
QUERIES = {
    "count and sum": "SELECT count(*), sum(v) FROM facts",
    "top 10": "SELECT id, v FROM facts ORDER BY v DESC, id LIMIT 10",
    "group by": "SELECT grp, count(*), sum(v) FROM facts GROUP BY grp ORDER BY grp",
    "count distinct": "SELECT count(DISTINCT grp) FROM facts",
    "average under having": "SELECT grp, avg(v) FROM facts GROUP BY grp HAVING count(*) > 10 ORDER BY grp LIMIT 5",
    "100000 rows": "SELECT id, v FROM facts WHERE grp < 5",
    "100000 rows in order": "SELECT id, v FROM facts WHERE grp < 5 ORDER BY id",
}


class Mapped(Kintsugi):
    """A router whose shards are in its map, not in its configuration."""

    def write_config(self):
        super().write_config()
        with open(self.config) as file:
            text = file.read().split("[[shard]]")[0]
        with open(self.config, "w") as file:
            file.write(text)


def connect(port, **more):
    return psycopg.connect(
        host="127.0.0.1", port=port, dbname=DATABASE, user=USER, password=PASSWORD, sslmode="disable",
        autocommit=True, **more,
    )  # fmt: skip


def lines(rows, part=None):
    """The same pseudo-random rows for everybody, as COPY text in pieces of a few hundred KB: neighbours belong on the two
    shards by turns. `part`: those of one shard alone."""
    piece, state = [], 12345
    for i in range(rows):
        state = (state * 1103515245 + 12345) & 0x7FFFFFFF
        if part in (None, i % 2):
            number = i // 2 + i % 2 * (rows // 2)
            piece.append(f"{number}\t{state % 100}\t{state // 7 % 1000003}\tname{state % 5000}\n")
        if len(piece) == 10000:
            yield "".join(piece)
            piece = []
    if piece:
        yield "".join(piece)


def load(connection, data):
    began = time.monotonic()
    with connection.cursor().copy("COPY facts FROM STDIN") as copy:
        for piece in data:
            copy.write(piece)
    return time.monotonic() - began


def latency(connection, sql):
    began = time.monotonic()
    rows = connection.execute(sql).fetchall()
    return (time.monotonic() - began) * 1000, rows


def bounds(rows, shards):
    cuts = ["MINVALUE"] + [str(rows * i // shards) for i in range(1, shards)] + ["MAXVALUE"]
    return list(zip(cuts, cuts[1:]))


def measure(program, root, rows, rounds, repeats, seconds=5):
    """{"queries": {name: {"plain": ms, "kintsugi": ms}}, "copy": {...}, "commit": {...}, "tpcb": {...}}"""
    settings = {"max_prepared_transactions": "100", "shared_buffers": "256MB", "max_wal_size": "4GB", "checkpoint_timeout": "1h"}
    clusters = [Cluster(root, name, settings=settings) for name in ("plain", "shard1", "shard2")]
    router = None
    try:
        router = Mapped(
            program, clusters[1], root, "fanout",
            sections={"server": {"threads": 1}, "pool": {"size": 10}, "log": {"level": "warning"}},
            users=[{"name": USER, "password": PASSWORD, "admin": True}],
        )  # fmt: skip
        plain, over = connect(Direct(clusters[0]).port), connect(router.port)
        for i, cluster in enumerate(clusters[1:], 1):
            over.execute("CREATE SHARD s%d DSN '%s'" % (i, cluster.shard_dsn().replace("'", "''")))
        over.execute("CREATE SHARD MAP ids BY RANGE (bigint)")
        for i, (low, high) in enumerate(bounds(rows, 2), 1):
            over.execute(f"CREATE SHARDLET part{i} OF ids FOR VALUES FROM ({low}) TO ({high}) ON SHARD s{i}")
        over = connect(router.port)
        plain.execute(TABLE)
        for cluster in clusters[1:]:
            connect(cluster.port).execute(TABLE)
        over.execute("ALTER TABLE facts SHARD BY ids (id)")
        data = list(lines(rows))
        result = {"rows": rows, "queries": {}, "copy": {}, "commit": {}}
        result["copy"] = {"plain": rows / load(plain, data)}
        # The same shards, each given its own half by a client of its own, both at the same time.
        halves = [list(lines(rows, part)) for part in (0, 1)]
        directly = [connect(cluster.port) for cluster in clusters[1:]]
        began = time.monotonic()
        with concurrent.futures.ThreadPoolExecutor(len(directly)) as clients:
            list(clients.map(load, directly, halves))
        result["copy"]["directly"] = rows / (time.monotonic() - began)
        for connection in directly:
            connection.execute("TRUNCATE facts")
        try:
            result["copy"]["kintsugi"] = rows / load(over, data)
        except psycopg.Error as error:
            print("COPY over shards:", str(error).split("\n")[0], flush=True)
            for cluster, part in zip(clusters[1:], halves):
                load(connect(cluster.port), part)
        print("COPY, rows a second:", {k: round(v) for k, v in result["copy"].items()}, flush=True)
        for connection in (plain, *(connect(c.port) for c in clusters[1:])):
            connection.execute("VACUUM ANALYZE facts")
        for name, sql in QUERIES.items():
            result["queries"][name] = compare(plain, over, sql, rounds)
            print(f"{name:24}", result["queries"][name], flush=True)
        result["commit"] = commits(over, rows, repeats)
        print("transactions, ms:", result["commit"], flush=True)
        try:
            result["tpcb"] = tpcb.measure(plain, over, clusters[0].port, router.port, seconds, 3)
        except (RuntimeError, psycopg.Error) as error:
            result["tpcb"] = {"error": str(error)[:160]}
        print("TPC-B, 8 clients, transactions a second:", result["tpcb"], flush=True)
        return result
    finally:
        if router:
            router.stop()
        for cluster in clusters:
            cluster.stop()


def compare(plain, over, sql, rounds):
    times = {"plain": [], "kintsugi": []}
    try:
        for _ in range(rounds):
            milliseconds, expected = latency(plain, sql)
            times["plain"].append(milliseconds)
            milliseconds, got = latency(over, sql)
            times["kintsugi"].append(milliseconds)
            if (got if "ORDER BY" in sql else sorted(got)) != (expected if "ORDER BY" in sql else sorted(expected)):
                return {"error": "another answer than PostgreSQL's"}
    except psycopg.Error as error:
        return {"error": str(error).split("\n")[0][:160]}
    medians = {name: round(statistics.median(each), 2) for name, each in times.items()}
    return {**medians, "ratio": round(medians["kintsugi"] / medians["plain"], 2)}


def commits(over, rows, repeats):
    """Two updates in a transaction, on one shard and on two: the median in ms."""
    medians = {}
    for name, second in (("one shard", 2), ("two shards", rows - 2)):
        times = []
        for _ in range(repeats):
            began = time.monotonic()
            with over.transaction():
                over.execute("UPDATE facts SET v = v + 1 WHERE id = 1")
                over.execute(f"UPDATE facts SET v = v - 1 WHERE id = {second}")
            times.append((time.monotonic() - began) * 1000)
        medians[name] = round(statistics.median(times), 2)
    return medians


def table(result):
    """As lines of Markdown."""
    yield f"{result['rows']:,} rows in two shards; milliseconds, the median."
    yield ""
    yield "| | PostgreSQL | Kintsugi | ratio |"
    yield "|---|---|---|---|"
    for name, each in result["queries"].items():
        if "error" in each:
            yield f"| {name} | | | {each['error']} |"
        else:
            yield f"| {name} | {each['plain']} | {each['kintsugi']} | {each['ratio']} |"
    copy = result["copy"]
    if "kintsugi" in copy:
        yield (
            f"| COPY FROM, rows a second | {copy['plain']:,.0f} | {copy['kintsugi']:,.0f} | "
            f"{copy['kintsugi'] / copy['plain']:.2f} |"
        )
    if "directly" in copy and "kintsugi" in copy:
        yield (
            f"| the same, into both shards directly at the same time | {copy['directly']:,.0f} | {copy['kintsugi']:,.0f} | "
            f"{copy['kintsugi'] / copy['directly']:.2f} |"
        )
    bank = result.get("tpcb", {})
    if "kintsugi" in bank:
        yield (
            f"| TPC-B, 8 clients, most of it on both shards, a second | {bank['plain']:,.0f} | {bank['kintsugi']:,.0f} | "
            f"{bank['kintsugi'] / bank['plain']:.2f} |"
        )
    if result["commit"]:
        yield f"| two updates, on one shard and on two | {result['commit']['one shard']} | {result['commit']['two shards']} | |"
