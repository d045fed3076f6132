"""A random schema and its data, from a seed: tables sharded by range, hash and list maps, replicated ones, home ones.

Values are chosen so that equal answers are equal bytes: numerics have two places, floating point numbers are multiples
of a quarter (their sums are exact), texts repeat and some differ by case only.
"""

TYPES = "int", "bigint", "numeric(10,2)", "text", "boolean", "date", "float8"
TEXTS = ["", "a", "A", "b", "ab", "Ab", "b c", "z", "Zoë", "it''s", "100%", "a_b"]
KEY_TEXTS = ["de", "fr", "jp", "us", "uk", "it", "es", "pl"]


def kind_of(type_name):
    return "numeric" if type_name.startswith("numeric") else type_name


class Column:
    def __init__(self, name, type_name, not_null=False):
        self.name, self.type_name, self.kind, self.not_null = name, type_name, kind_of(type_name), not_null


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
        parts = [f"{c.name} {c.type_name}{' NOT NULL' if c.not_null else ''}" for c in self.columns]
        parts.append(f"PRIMARY KEY ({', '.join(self.primary)})")
        if self.check:
            parts.append(f"CHECK ({self.check})")
        where = {"sharded": f" SHARD BY {self.map_name} ({self.key})", "replicated": " REPLICATED", "home": ""}
        return f"CREATE TABLE {self.name} ({', '.join(parts)}){where[self.placement]}"


class World:
    """Everything about one schema. `shards` of them hold it."""

    def __init__(self, random, shards):
        self.random, self.shards = random, shards
        self.tables, self.views = [], []
        self.next_id = 1000
        self.make_tables()
        self.rows = {table.name: self.make_rows(table) for table in self.tables}

    def make_tables(self):
        r = self.random
        # Two tables of the first map, so that joins by the key are frequent; one of each other map.
        plan = [("by_range", "int"), ("by_range", "int"), ("by_hash", r.choice(["text", "int"])), ("by_list", "text")]
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
        kinds = ["int", "text"] + [r.choice(TYPES) for _ in range(count - 2)]
        r.shuffle(kinds)
        return [Column(name, kind, r.random() < 0.15) for name, kind in zip(names, kinds)]

    # ---- values, as literals

    def value(self, kind, null=0.0):
        r = self.random
        if r.random() < null:
            return "NULL"
        if kind in ("int", "bigint"):
            return str(r.choice([r.randint(-3, 12), r.randint(-3, 12), r.randint(-1000, 1000), 0]))
        if kind == "numeric":
            return f"{r.choice([r.randint(-300, 300), r.randint(-3, 3) * 100]) / 100:.2f}"
        if kind == "text":
            return f"'{r.choice(TEXTS)}'"
        if kind == "boolean":
            return r.choice(["true", "false"])
        if kind == "date":
            return f"'2024-0{r.randint(1, 4)}-{r.randint(10, 28)}'"
        return str(r.randint(-20, 20) / 4)

    def key_value(self, table):
        if table.column(table.key).kind == "int":
            return str(self.random.randint(0, 11))
        return f"'{self.random.choice(KEY_TEXTS)}'"

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
        for table in self.tables:
            yield table.create()

    def data_statements(self):
        for table in self.tables:
            yield f"DELETE FROM {table.name}"
            rows = self.rows[table.name]
            if rows:
                values = ", ".join("(" + ", ".join(row) + ")" for row in rows)
                yield f"INSERT INTO {table.name} VALUES {values}"
