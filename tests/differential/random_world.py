"""A random schema and its data, from a seed: tables sharded by range, hash and list maps, replicated ones, home ones, views."""

from random_kinds import DECLARED, HASH_KEYS, KEY_TEXTS, KINDS, TYPES_MADE


class Column:
    def __init__(self, name, type_name, not_null=False, kind=None, default=None):
        self.name, self.type_name, self.kind, self.not_null = name, type_name, kind or type_name, not_null
        self.default = default


class Table:
    """`key`: the sharding key's column for sharded tables. Every table has a primary key (its key and `id`)."""

    def __init__(self, name, placement, columns, key=None, map_name=None):
        self.name, self.placement, self.columns, self.key, self.map_name = name, placement, columns, key, map_name
        self.primary = [key, "id"] if key and key != "id" else ["id"]
        self.unique = None
        self.check = None

    def column(self, name):
        return next(column for column in self.columns if column.name == name)

    def create(self):
        parts = [f"{c.name} {c.type_name}{f' DEFAULT {c.default}' if c.default else ''}{' NOT NULL' if c.not_null else ''}"
                 for c in self.columns]
        parts.append(f"PRIMARY KEY ({', '.join(self.primary)})")
        if self.check:
            parts.append(f"CHECK ({self.check})")
        where = {"sharded": f" SHARD BY {self.map_name} ({self.key})", "replicated": " REPLICATED", "home": ""}
        return f"CREATE TABLE {self.name} ({', '.join(parts)}){where[self.placement]}"


class View:
    """Read as a table is; `key`: the column that is its tables' sharding key, if it shows it."""

    placement = "view"

    def __init__(self, name, text, columns, key=None, map_name=None):
        self.name, self.text, self.columns, self.key, self.map_name = name, text, columns, key, map_name
        self.primary = None

    def create(self):
        return f"CREATE VIEW {self.name} AS {self.text}"


class World:
    """Everything about one schema. `shards` of them hold it."""

    def __init__(self, random, shards):
        self.random, self.shards = random, shards
        self.tables, self.views = [], []
        self.next_id = 1000
        self.make_tables()
        self.make_views()
        self.rows = {table.name: self.make_rows(table) for table in self.tables}

    def make_tables(self):
        r = self.random
        # Two tables of the first map, so that joins by the key are frequent; one of each other map.
        plan = [("by_range", "int"), ("by_range", "int"), ("by_hash", r.choice(HASH_KEYS)), ("by_list", "text")]
        if r.random() < 0.5:
            plan.append(("by_range", "int"))
        for number, (map_name, key_type) in enumerate(plan):
            key = r.choice(["k", "k", f"k{number}"])
            columns = [Column(key, key_type, True), Column("id", "int", True), *self.more_columns()]
            table = Table(f"t{number}", "sharded", columns, key, map_name)
            self.tables.append(table)
        self.hash_type = next(t.column(t.key).type_name for t in self.tables if t.map_name == "by_hash")
        for name, placement in (("r0", "replicated"), ("r1", "replicated"), ("h0", "home")):
            self.tables.append(Table(name, placement, [Column("id", "int", True), *self.more_columns()]))
        for table in self.tables:
            if r.random() < 0.4:
                numbers = [c.name for c in table.columns[1:] if c.kind in ("int", "bigint")]
                table.check = f"{r.choice(numbers)} < 100000"

    def more_columns(self):
        r = self.random
        count = r.randint(3, 6)
        names = ["a", "b", "c", "d", "e", "f"][:count]
        kinds = [("int", "int"), ("text", "text")] + [r.choice(DECLARED) for _ in range(count - 2)]
        r.shuffle(kinds)
        return [Column(name, type_name, r.random() < 0.15, kind, self.value(kind) if r.random() < 0.2 else None)
                for name, (type_name, kind) in zip(names, kinds)]

    def make_views(self):
        one, two = self.tables[:2]  # both by the first map
        copy = next(t for t in self.tables if t.placement == "replicated")
        named = lambda t, a: ", ".join(f"{a}.{c.name}" for c in t.columns)  # noqa: E731
        other = [c for c in two.columns if c.name not in {d.name for d in one.columns}]
        more = "".join(f", y.{c.name}" for c in other)
        ints = [next(c.name for c in t.columns if c.kind == "int" and c.name not in ("id", t.key)) for t in (one, two)]
        self.views = [
            View("v0", f"SELECT {named(one, 'x')} FROM {one.name} x WHERE x.{ints[0]} > 0", one.columns, one.key, one.map_name),
            View("v1", f"SELECT {named(one, 'x')}{more} FROM {one.name} x LEFT JOIN {two.name} y "
                 f"ON x.{one.key} = y.{two.key} AND x.id = y.id", one.columns + other, one.key, one.map_name),
            View("v2", f"SELECT x.{two.key} AS k, count(*) AS n, max(x.{ints[1]}) AS m FROM {two.name} x GROUP BY x.{two.key}",
                 [Column("k", "int"), Column("n", "bigint"), Column("m", "int")], "k", two.map_name),
            View("v3", f"SELECT {one.key} AS k, {ints[0]} AS a FROM {one.name} UNION ALL SELECT {two.key}, {ints[1]} FROM {two.name}",
                 [Column("k", "int"), Column("a", "int")], "k", one.map_name),
            View("v4", f"SELECT x.{one.key} AS k, x.{ints[0]} AS a, y.id FROM {one.name} x JOIN {copy.name} y ON x.{ints[0]} = y.id",
                 [Column("k", "int"), Column("a", "int"), Column("id", "int")], "k", one.map_name),
        ]

    # ---- values, as literals

    def value(self, kind, null=0.0):
        r = self.random
        if r.random() < null:
            return "NULL"
        return KINDS[kind].value(r)

    def key_value(self, table):
        kind = table.column(table.key).kind
        if kind in ("int", "bigint"):
            return str(self.random.randint(0, 11))
        if kind == "text":
            return f"'{self.random.choice(KEY_TEXTS)}'"
        return KINDS[kind].value(self.random)

    def make_row(self, table, fresh=True):
        row = []
        for column in table.columns:
            if column.name == table.key:
                row.append(self.key_value(table))
            elif column.name == "id":
                if fresh:
                    self.next_id += 1
                    row.append(str(self.next_id))
                else:
                    row.append(str(self.random.randint(0, 12)))
            else:
                row.append(self.value(column.kind, 0 if column.not_null else 0.2))
        return row

    def make_rows(self, table):
        r = self.random
        count = r.choice([0, 5, 12, 25, 40]) if table.placement == "sharded" else r.choice([1, 4, 8])
        rows, seen = [], set()
        for _ in range(count):
            row = self.make_row(table, fresh=False)
            key = tuple(row[i] for i, c in enumerate(table.columns) if c.name in table.primary)
            if key not in seen:
                seen.add(key)
                rows.append(row)
        return rows

    # ---- what makes it

    def own_statements(self):
        """The shard maps, for the router alone."""
        r = self.random
        names = [f"s{i + 1}" for i in range(self.shards)]
        yield "CREATE SHARD MAP by_range BY RANGE (int)"
        pieces = max(self.shards, r.randint(1, 5))
        cuts = sorted(r.sample(range(1, 11), pieces - 1))
        bounds = ["MINVALUE", *map(str, cuts), "MAXVALUE"]
        for i, (low, high) in enumerate(zip(bounds, bounds[1:])):
            place = names[i] if i < len(names) else r.choice(names)
            yield f"CREATE SHARDLET rng{i} OF by_range FOR VALUES FROM ({low}) TO ({high}) ON SHARD {place}"
        yield f"CREATE SHARD MAP by_hash BY HASH ({self.hash_type}) SHARDLETS {r.choice([1, 2, 3]) * self.shards}"
        yield "CREATE SHARD MAP by_list BY LIST (text)"
        for i, value in enumerate(KEY_TEXTS):
            place = names[i % len(names)]
            yield f"CREATE SHARDLET lst{i} OF by_list FOR VALUES IN ('{value}') ON SHARD {place}"

    def schema_statements(self):
        yield from TYPES_MADE
        for table in self.tables + self.views:
            yield table.create()

    def data_statements(self):
        for table in self.tables:
            yield f"DELETE FROM {table.name}"
            rows = self.rows[table.name]
            if rows:
                values = ", ".join("(" + ", ".join(row) + ")" for row in rows)
                yield f"INSERT INTO {table.name} VALUES {values}"
