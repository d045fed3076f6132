"""Random statements over a World, of the dialect that Kintsugi claims.

A statement's answer is fixed by its text and the data: LIMIT has an order over all columns, windows and ordered
aggregates order by what is unique, an error is made on purpose by a statement of its own. `ordered` says that the rows
come in one order only.
"""

import re

INTEGERS = "int", "bigint"
NUMBERS = "int", "bigint", "numeric", "float8"
COMPARISONS = "=", "=", "<>", "<", "<=", ">", ">="


class Statement:
    def __init__(self, text, ordered=False, write=False, parameters=(), marks=()):
        self.text, self.ordered, self.write, self.parameters = text, ordered, write, tuple(parameters)
        self.marks = set(marks)

    def __repr__(self):
        return self.text + (f"  -- {list(self.parameters)}" if self.parameters else "")


class Item:
    """What stands in FROM: an alias, its columns as (name, kind), what identifies a row, the sharding key."""

    def __init__(self, alias, columns, unique=None, key=None, map_name=None):
        self.alias, self.columns, self.unique, self.key, self.map_name = alias, columns, unique, key, map_name

    def of(self, kinds):
        return [f"{self.alias}.{name}" for name, kind in self.columns if kind in kinds]


class Generator:
    def __init__(self, random, world):
        self.random, self.world = random, world
        self.aliases = 0
        self.parameters = None  # a list: literals may become parameters
        self.commons = []

    # ---- small things

    def chance(self, probability):
        return self.random.random() < probability

    def pick(self, *choices):
        return self.random.choice(choices)

    def alias(self):
        self.aliases += 1
        return f"x{self.aliases}"

    def literal(self, kind):
        text = self.world.value(kind)
        if self.parameters is not None and self.chance(0.3):
            types = {"int": "int", "bigint": "bigint", "numeric": "numeric(10,2)", "text": "text", "boolean": "boolean",
                     "date": "date", "float8": "float8"}
            self.parameters.append(text.strip("'").replace("''", "'"))
            return f"${len(self.parameters)}::{types[kind]}"
        if kind == "date":
            return f"date {text}"
        if kind == "float8":
            return f"{text}::float8"
        if kind == "numeric":
            return text if not text.startswith("-") else f"({text})"
        return text if not text.startswith("-") else f"({text})"

    def column(self, items, kinds):
        found = [name for item in items for name in item.of(kinds)]
        return self.random.choice(found) if found else None

    # ---- expressions of one kind that never fail

    def expression(self, kind, items, depth=2):
        column = self.column(items, [kind])
        if column and (depth <= 0 or self.chance(0.6)):
            return column
        if depth <= 0:
            return self.literal(kind)
        e = lambda k: self.expression(k, items, depth - 1)  # noqa: E731
        general = [
            lambda: f"coalesce({e(kind)}, {self.literal(kind)})",
            lambda: f"CASE WHEN {self.condition(items, depth - 1)} THEN {e(kind)} ELSE {e(kind)} END",
            lambda: f"nullif({e(kind)}, {self.literal(kind)})",
            lambda: f"{self.pick('greatest', 'least')}({e(kind)}, {e(kind)})",
            lambda: self.literal(kind),
        ]
        own = {
            "int": [lambda: f"({e('int')} {self.pick('+', '-')} {self.random.randint(0, 9)})",
                    lambda: f"length({e('text')})", lambda: f"({e('int')} % 3)",
                    lambda: f"extract(day FROM {e('date')})::int"],
            "bigint": [lambda: f"({e('bigint')} + {self.random.randint(0, 9)})", lambda: f"{e('int')}::bigint"],
            "numeric": [lambda: f"({e('numeric')} + {e('numeric')})::numeric(12,2)",
                        lambda: f"({e('int')} / 4.0)::numeric(12,2)", lambda: f"round({e('numeric')}, 2)"],
            "text": [lambda: f"upper({e('text')})", lambda: f"({e('text')} || {e('text')})",
                     lambda: f"left({e('text')}, 1)", lambda: f"{e('int')}::text"],
            "boolean": [lambda: f"({self.condition(items, depth - 1)})"],
            "date": [lambda: f"({e('date')} + {self.random.randint(0, 9)})"],
            "float8": [lambda: f"({e('float8')} * 2)", lambda: f"{e('int')}::float8"],
        }
        return self.random.choice(general + own[kind] * 2)()

    def any_expression(self, items, depth=2):
        kinds = [kind for item in items for _, kind in item.columns] or ["int"]
        kind = self.random.choice(kinds)
        return self.expression(kind, items, depth), kind

    def condition(self, items, depth=2):
        r = self.random
        kinds = [kind for item in items for _, kind in item.columns if kind != "boolean"] or ["int"]
        kind = r.choice(kinds)
        e = lambda k: self.expression(k, items, depth - 1)  # noqa: E731
        choices = [
            lambda: f"{e(kind)} {self.pick(*COMPARISONS)} {self.literal(kind)}",
            lambda: f"{e(kind)} {self.pick(*COMPARISONS)} {e(kind)}",
            lambda: f"{e(kind)} IN ({', '.join(self.literal(kind) for _ in range(r.randint(1, 4)))})",
            lambda: f"{e(kind)} BETWEEN {self.literal(kind)} AND {self.literal(kind)}",
            lambda: f"{e(kind)} IS {self.pick('', 'NOT ')}NULL",
            lambda: f"{e(kind)} IS DISTINCT FROM {self.literal(kind)}",
            lambda: f"{e('text')} {self.pick('', 'NOT ')}{self.pick('LIKE', 'ILIKE')} '{self.pick('a%', '%b%', '_', '%')}'",
        ]
        if depth > 0:
            choices += [
                lambda: f"({self.condition(items, depth - 1)} {self.pick('AND', 'OR')} {self.condition(items, depth - 1)})",
                lambda: f"NOT ({self.condition(items, depth - 1)})",
                lambda: self.key_condition(items),
                lambda: self.key_condition(items),
            ]
            if depth > 1:
                choices += [lambda: self.subquery_condition(items)] * 2
        return r.choice(choices)()

    def key_condition(self, items):
        """Of a sharding key, so that plans are pruned and pinned."""
        keyed = [item for item in items if item.key]
        if not keyed:
            return self.condition(items, 0)
        item = self.random.choice(keyed)
        key = f"{item.alias}.{item.key}"
        table = next(t for t in self.world.tables if t.map_name == item.map_name)
        values = [self.world.key_value(table) for _ in range(3)]
        if self.parameters is not None and self.chance(0.5):
            self.parameters.append(values[0].strip("'"))
            values[0] = f"${len(self.parameters)}" + self.pick("", f"::{table.column(table.key).type_name}")
            return f"{key} = {values[0]}"
        return self.pick(f"{key} = {values[0]}", f"{key} = {values[0]}", f"{key} IN ({', '.join(values)})",
                         f"{key} > {values[0]}", f"{key} BETWEEN {values[0]} AND {values[1]}",
                         f"({key} = {values[0]} OR {key} = {values[1]})", f"{values[0]} = {key}")

    def subquery_condition(self, items):
        inner = self.base_item()
        outer_key = [i for i in items if i.key and i.map_name == inner[1].map_name]
        where = []
        if outer_key and self.chance(0.7):
            where.append(f"{inner[1].alias}.{inner[1].key} = {outer_key[0].alias}.{outer_key[0].key}")
        elif self.chance(0.5):
            kind = self.pick("int", "text")
            left, right = self.column([inner[1]], [kind]), self.column(items, [kind])
            if left and right:
                where.append(f"{left} = {right}")
        if self.chance(0.5):
            where.append(self.condition([inner[1]], 0))
        tail = f" WHERE {' AND '.join(where)}" if where else ""
        form = self.pick("exists", "in", "scalar")
        negation = self.pick("", "", "NOT ")
        if form == "exists":
            return f"{negation}EXISTS (SELECT 1 FROM {inner[0]}{tail})"
        kind = self.pick("int", "text")
        column = self.column([inner[1]], [kind])
        test = self.column(items, [kind])
        if not column or not test:
            return f"EXISTS (SELECT 1 FROM {inner[0]}{tail})"
        if form == "in":
            return f"{test} {negation}IN (SELECT {column} FROM {inner[0]}{tail})"
        return f"{test} {self.pick('=', '<', '>=')} (SELECT {self.pick('min', 'max')}({column}) FROM {inner[0]}{tail})"

    # ---- FROM

    def base_item(self, tables=None):
        if tables is None and self.commons and self.chance(0.6):
            name, columns = self.random.choice(self.commons)
            alias = self.alias()
            return f"{name} AS {alias}", Item(alias, columns)
        # Sharded ones are what it is about.
        pool = tables or [t for t in self.world.tables for _ in range(3 if t.placement == "sharded" else 1)]
        table = self.random.choice(pool)
        alias = self.alias()
        item = Item(alias, [(c.name, c.kind) for c in table.columns], table.primary, table.key, table.map_name)
        return f"{table.name}{self.pick(' AS', '')} {alias}", item

    def from_item(self, depth):
        if depth > 0 and self.chance(0.2):
            text, columns = self.query(depth - 1)[:2]
            alias = self.alias()
            return f"({text}) AS {alias}", Item(alias, columns)
        return self.base_item()

    def from_clause(self, depth):
        """The text and the items; at most three."""
        text, item = self.from_item(depth)
        items = [item]
        for _ in range(self.random.choice([0, 0, 0, 1, 1, 2])):
            more, other = self.from_item(depth)
            on = self.join_condition(items, other)
            if not on:
                kind = self.pick("CROSS JOIN", "comma")
                if len(items) > 1:
                    continue
                text += f" CROSS JOIN {more}" if kind == "CROSS JOIN" else f", {more}"
                items.append(other)
                continue
            join = self.pick("JOIN", "JOIN", "LEFT JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN")
            if join == "FULL JOIN":
                on = on.split(" AND ")[0] if " AND " in on else on
                if "=" not in on or "<" in on or ">" in on:
                    join = "LEFT JOIN"
            text += f" {join} {more} ON {on}"
            items.append(other)
        return text, items

    def join_condition(self, items, other):
        """Mostly by the sharding key and more, then by any equal kinds."""
        parts = []
        same_map = [i for i in items if i.key and other.key and i.map_name == other.map_name]
        if same_map and self.chance(0.75):
            one = self.random.choice(same_map)
            parts.append(f"{one.alias}.{one.key} = {other.alias}.{other.key}")
            if self.chance(0.4):
                parts.append(f"{one.alias}.id = {other.alias}.id")
        else:
            kind = self.pick("int", "text", "int")
            left, right = self.column(items, [kind]), self.column([other], [kind])
            if left and right and self.chance(0.9):
                parts.append(f"{left} = {right}")
        if parts and self.chance(0.2):
            parts.append(self.condition(items + [other], 0))
        return " AND ".join(parts)

    # ---- queries: (text, columns as (name, kind), ordered)

    def where(self, items, depth=2):
        parts = []
        for _ in range(self.random.choice([0, 1, 1, 2])):
            parts.append(self.key_condition(items) if self.chance(0.35) else self.condition(items, depth))
        return f" WHERE {' AND '.join(parts)}" if parts else ""

    def query(self, depth=1, top=False):
        kind = self.random.random()
        if kind < 0.10 and depth > 0:
            return self.set_operation(depth, top)
        if kind < 0.20 and depth > 0:
            return self.with_query(depth, top)
        if kind < 0.50:
            return self.grouped(depth, top)
        if kind < 0.62:
            return self.windowed(depth, top)
        return self.plain(depth, top)

    def finish(self, text, columns, top, distinct=False, exact_ties=True):
        """ORDER BY over everything, and LIMIT; only with an order."""
        r = self.random
        if not top and not self.chance(0.15):
            return text, columns, False
        if top and self.chance(0.35):
            return text, columns, False
        positions = list(range(1, len(columns) + 1))
        r.shuffle(positions)
        total = self.chance(0.8) or not top
        if not total:
            positions = positions[: r.randint(1, len(positions))]
        items = [f"{p if self.chance(0.6) else columns[p - 1][0]}{self.pick('', '', ' DESC', ' ASC', ' NULLS FIRST', ' DESC NULLS LAST')}"
                 for p in positions]
        text += f" ORDER BY {', '.join(items)}"
        if total and (self.chance(0.4) or not top):
            limit = self.pick(f" LIMIT {r.randint(0, 8)}", f" LIMIT {r.randint(0, 8)} OFFSET {r.randint(0, 4)}",
                              f" OFFSET {r.randint(0, 4)}", f" FETCH FIRST {r.randint(1, 4)} ROWS ONLY")
            if self.parameters is not None and limit.startswith(" LIMIT") and self.chance(0.3):
                self.parameters.append(str(r.randint(0, 8)))
                limit = f" LIMIT ${len(self.parameters)}"
            text += limit
        return text, columns, total

    def plain(self, depth, top):
        from_text, items = self.from_clause(depth)
        r = self.random
        targets, columns = [], []
        if len(items) == 1 and top and self.chance(0.2):
            columns = list(items[0].columns)
            select = self.pick("*", f"{items[0].alias}.*")
        else:
            for number in range(r.randint(1, 4)):
                text, kind = self.any_expression(items, self.pick(0, 0, 1, 2))
                if self.chance(0.06):
                    text, kind = self.scalar_subquery(items), "bigint"
                targets.append(f"{text} AS c{number}")
                columns.append((f"c{number}", kind))
            select = ", ".join(targets)
        distinct = ""
        on = None
        if targets and self.chance(0.15):
            distinct = "DISTINCT "
            if self.chance(0.3):
                on = "c0"
                distinct = f"DISTINCT ON ({targets[0].rsplit(' AS ', 1)[0]}) "
        text = f"SELECT {distinct}{select} FROM {from_text}{self.where(items)}"
        if on:
            rest = ", ".join(f"c{i}" for i in range(len(columns)))
            return f"{text} ORDER BY {rest}", columns, True
        return self.finish(text, columns, top, bool(distinct))

    def scalar_subquery(self, items):
        text, inner = self.base_item()
        parts = []
        same_map = [i for i in items if i.key and i.map_name == inner.map_name]
        if same_map and self.chance(0.7):
            parts.append(f"{inner.alias}.{inner.key} = {same_map[0].alias}.{same_map[0].key}")
        if self.chance(0.4):
            parts.append(self.condition([inner], 0))
        where = f" WHERE {' AND '.join(parts)}" if parts else ""
        column = self.column([inner], INTEGERS)
        what = self.pick("count(*)", f"sum({column}::int)" if column else "count(*)")
        return f"(SELECT {what} FROM {text}{where})"

    def aggregate(self, items):
        """(text, kind)."""
        r = self.random
        number = self.expression(self.pick("int", "bigint", "int"), items, self.pick(0, 0, 1))
        any_text, any_kind = self.any_expression(items, 0)
        orderable = any_kind if any_kind != "boolean" else "int"
        if any_kind == "boolean":
            any_text = f"{any_text}::int"
        text_value = self.expression("text", items, 0)
        choices = [
            ("count(*)", "bigint"), ("count(*)", "bigint"), (f"count({any_text})", "bigint"),
            (f"sum({number}::int)", "bigint"), (f"sum({number}::int)", "bigint"),
            (f"sum({self.expression('numeric', items, 0)}::numeric(10,2))::numeric(12,2)", "numeric"),
            (f"{self.pick('min', 'max')}({any_text})", orderable), (f"{self.pick('min', 'max')}({any_text})", orderable),
            (f"round(avg({number}), 2)::numeric(12,2)", "numeric"), (f"avg({number})::numeric(12,2)", "numeric"),
            (f"count(DISTINCT {any_text})", "bigint"), (f"sum(DISTINCT {number}::int)", "bigint"),
            (f"{self.pick('bool_and', 'bool_or', 'every')}({self.condition(items, 0)})", "boolean"),
            (f"string_agg({text_value}, ',' ORDER BY {text_value})", "text"),
            (f"array_to_string(array_agg({any_text} ORDER BY {any_text}{self.pick('', ' DESC')}), '/')", "text"),
            (f"sum({self.expression('float8', items, 0)})", "float8"),
            (f"(count(*) + sum(coalesce({number}::int, 0)))::bigint", "bigint"),
            (f"round(stddev({number}), 4)::numeric(12,2)", "numeric"),
            (f"percentile_disc(0.5) WITHIN GROUP (ORDER BY {number}::int)", "int"),
        ]
        text, kind = r.choice(choices)
        simple = text.endswith(")") and "::numeric" not in text[-16:] and text.split("(")[0] in ("count", "sum", "min", "max", "bool_and", "bool_or")
        if simple and self.chance(0.12):
            text += f" FILTER (WHERE {self.condition(items, 0)})"
        return text, kind

    def grouped(self, depth, top):
        from_text, items = self.from_clause(depth)
        r = self.random
        groups, columns, targets = [], [], []
        for number in range(r.choice([0, 0, 1, 1, 1, 2])):
            keyed = [i for i in items if i.key]
            if keyed and self.chance(0.3):
                item = r.choice(keyed)
                text, kind = f"{item.alias}.{item.key}", dict(item.columns)[item.key]
            else:
                text, kind = self.any_expression(items, self.pick(0, 0, 0, 1))
            groups.append(text)
            targets.append(f"{text} AS g{number}")
            columns.append((f"g{number}", kind))
        if "$" in "".join(groups):
            # The same parameter twice is not the same expression.
            positions = True
        else:
            positions = self.chance(0.3)
        for number in range(r.randint(1, 3)):
            text, kind = self.aggregate(items)
            targets.append(f"{text} AS a{number}")
            columns.append((f"a{number}", kind))
        clause = ""
        if groups:
            names = [str(i + 1) for i in range(len(groups))] if positions else groups
            style = self.random.random()
            if style < 0.08:
                clause = f" GROUP BY ROLLUP ({', '.join(groups)})" if not positions else f" GROUP BY {', '.join(names)}"
            elif style < 0.14:
                clause = (f" GROUP BY GROUPING SETS (({', '.join(groups)}), ())" if not positions
                          else f" GROUP BY {', '.join(names)}")
            else:
                clause = f" GROUP BY {', '.join(names)}"
        if self.chance(0.2):
            clause += f" HAVING {self.pick('count(*) > 1', 'count(*) > 0', 'count(*) BETWEEN 1 AND 3')}"
        text = f"SELECT {', '.join(targets)} FROM {from_text}{self.where(items)}{clause}"
        return self.finish(text, columns, top)

    def windowed(self, depth, top):
        text, item = self.base_item(self.world.tables)
        where = self.where([item], 1)
        unique = ", ".join(f"{item.alias}.{name}" for name in item.unique)
        keyed = [f"{item.alias}.{item.key}"] if item.key else []
        partition = self.random.choice(keyed * 2 + [self.any_expression([item], 0)[0], ""])
        over = (f"PARTITION BY {partition} " if partition else "")
        first, kind = self.any_expression([item], 0)
        number = self.expression("int", [item], 0)
        order = f"{first}{self.pick('', ' DESC')}"
        calls = [
            (f"row_number() OVER ({over}ORDER BY {order}, {unique})", "bigint"),
            (f"rank() OVER ({over}ORDER BY {order})", "bigint"),
            (f"dense_rank() OVER ({over}ORDER BY {order})", "bigint"),
            (f"sum({number}) OVER ({over}ORDER BY {order})", "bigint"),
            (f"count(*) OVER ({over.strip()})", "bigint"),
            (f"lag({number}) OVER ({over}ORDER BY {order}, {unique})", "int"),
            (f"first_value({first}) OVER ({over}ORDER BY {unique})", kind),
            (f"sum({number}) OVER ({over}ORDER BY {unique} ROWS BETWEEN 1 PRECEDING AND CURRENT ROW)", "bigint"),
        ]
        targets = [f"{item.alias}.{name} AS u{i}" for i, name in enumerate(item.unique)]
        columns = [(f"u{i}", dict(item.columns)[name]) for i, name in enumerate(item.unique)]
        for i in range(self.random.randint(1, 2)):
            call, call_kind = self.random.choice(calls)
            targets.append(f"{call} AS w{i}")
            columns.append((f"w{i}", call_kind))
        return self.finish(f"SELECT {', '.join(targets)} FROM {text}{where}", columns, top)

    def set_operation(self, depth, top):
        kinds = [self.pick("int", "text", "bigint", "numeric", "date") for _ in range(self.random.randint(1, 2))]
        by_key = self.chance(0.3)
        arms = []
        for _ in range(self.random.choice([2, 2, 3])):
            if by_key:
                text, item = self.base_item([t for t in self.world.tables if t.map_name == "by_range"])
                targets = [f"{item.alias}.{item.key} AS c0"]
                kinds = ["int"]
            else:
                text, items = self.from_clause(0)
                targets = [f"{self.expression(kind, items, 1)} AS c{i}" for i, kind in enumerate(kinds)]
                item = items[0]
            arms.append(f"SELECT {', '.join(targets)} FROM {text}{self.where([item], 1)}")
        operator = self.pick("UNION", "UNION ALL", "UNION ALL", "INTERSECT", "EXCEPT", "EXCEPT ALL")
        columns = [(f"c{i}", kind) for i, kind in enumerate(kinds)]
        return self.finish(f" {operator} ".join(arms), columns, top)

    def with_query(self, depth, top):
        r = self.random
        before = list(self.commons)
        parts = []
        for _ in range(r.choice([1, 1, 2])):
            text, columns, _ = self.query(depth - 1)
            name = f"w{len(self.commons)}_{r.randint(0, 99)}"
            parts.append(f"{name} AS {self.pick('', '', 'MATERIALIZED ', 'NOT MATERIALIZED ')}({text})")
            self.commons.append((name, columns))
        recursive = ""
        if self.chance(0.1):
            recursive = "RECURSIVE "
            name = f"rec{r.randint(0, 99)}"
            text, item = self.base_item([t for t in self.world.tables])
            start = self.column([item], ["int"])
            parts.append(f"{name} (n) AS (SELECT {start} FROM {text}{self.where([item], 0)} UNION "
                         f"SELECT n + 1 FROM {name} WHERE n BETWEEN 0 AND 6)")
            self.commons.append((name, [("n", "int")]))
        text, columns, ordered = self.pick(self.plain, self.grouped)(depth - 1, top)
        self.commons = before
        return f"WITH {recursive}{', '.join(parts)} {text}", columns, ordered

    def read(self):
        self.aliases = 0
        text, _, ordered = self.query(self.pick(0, 1, 1, 2), top=True)
        return text, ordered

    # ---- writes

    def table(self, placements=("sharded", "sharded", "sharded", "replicated", "home")):
        placement = self.random.choice(placements)
        return self.random.choice([t for t in self.world.tables if t.placement == placement])

    def returning(self, table, alias=None, chance=0.4):
        if not self.chance(chance):
            return ""
        item = Item(alias or table.name, [(c.name, c.kind) for c in table.columns])
        return " RETURNING " + self.pick("*", f"{self.any_expression([item], 1)[0]} AS r0", ", ".join(table.primary))

    def insert(self):
        table = self.table()
        rows = [self.world.make_row(table, fresh=self.chance(0.7)) for _ in range(self.random.choice([1, 1, 2, 3, 6]))]
        columns = ""
        if self.chance(0.4):
            kept = [i for i, c in enumerate(table.columns) if c.not_null or self.chance(0.7)]
            self.random.shuffle(kept)
            columns = f" ({', '.join(table.columns[i].name for i in kept)})"
            rows = [[row[i] for i in kept] for row in rows]
            if self.chance(0.2):
                free = [(at, table.columns[i]) for at, i in enumerate(kept)
                        if table.columns[i].name not in table.primary and table.columns[i].kind != "boolean"]
                for at, column in free[:1]:
                    rows[0][at] = self.read_elsewhere(table, column)
        values = ", ".join("(" + ", ".join(row) + ")" for row in rows)
        conflict = ""
        if self.chance(0.35):
            target = f"({', '.join(table.primary)})"
            free = [c for c in table.columns if c.name not in table.primary]
            column = self.random.choice(free)
            conflict = self.pick(" ON CONFLICT DO NOTHING", f" ON CONFLICT {target} DO NOTHING",
                                 f" ON CONFLICT {target} DO UPDATE SET {column.name} = excluded.{column.name}",
                                 f" ON CONFLICT {target} DO UPDATE SET {column.name} = excluded.{column.name} "
                                 f"WHERE {table.name}.{column.name} IS NOT NULL")
        return f"INSERT INTO {table.name}{columns} VALUES {values}{conflict}{self.returning(table)}"

    def insert_select(self):
        table = self.table()
        source = self.random.choice([t for t in self.world.tables if t.placement != "home"])
        alias = self.alias()
        item = Item(alias, [(c.name, c.kind) for c in source.columns], source.primary, source.key, source.map_name)
        values = []
        for column in table.columns:
            if column.name == table.key and source.map_name == table.map_name:
                values.append(f"{alias}.{source.key}")
            elif column.name == table.key:
                values.append(self.pick(self.world.key_value(table), self.expression(column.kind, [item], 0)))
            elif column.name == "id":
                self.world.next_id += 100
                values.append(f"{alias}.id + {self.world.next_id}")
            elif column.not_null:
                values.append(f"coalesce({self.expression(column.kind, [item], 0)}, {self.literal(column.kind)})")
            else:
                values.append(self.expression(column.kind, [item], 1))
        values = [v if c.kind not in ("numeric",) else f"({v})::numeric(10,2)" for v, c in zip(values, table.columns)]
        return (f"INSERT INTO {table.name} SELECT {', '.join(values)} FROM {source.name} AS {alias}{self.where([item], 1)}"
                # With ids that come twice, which row is there first would be chance.
                # No ON CONFLICT: of two source rows with one key the first would win, and nothing orders them.
                )

    def read_elsewhere(self, table, column):
        """A value for the column that has to be read in any table."""
        other = self.random.choice(self.world.tables)
        what = f"count(*)::{column.type_name}" if column.kind in INTEGERS else f"max({self.literal(column.kind)})"
        own = [c.name for c in other.columns if c.kind == column.kind]
        if own and self.chance(0.7):
            what = f"{self.pick('min', 'max')}({self.random.choice(own)})"
        return f"coalesce((SELECT {what} FROM {other.name}), {self.literal(column.kind)})"

    def link_elsewhere(self, table, alias):
        """Any other table as y, and what its rows have to do with the target's; nothing: they have nothing in common."""
        other = self.random.choice([t for t in self.world.tables if t is not table])
        pairs = [(a.name, b.name) for a in table.columns for b in other.columns if a.kind == b.kind and a.kind != "boolean"]
        if not pairs:
            return None
        left, right = self.random.choice(pairs)
        link = f"y.{right} = {alias}.{left}"
        if self.chance(0.4):
            link += f" AND {self.condition([Item('y', [(c.name, c.kind) for c in other.columns])], 0)}"
        return other.name, link

    def with_in_front(self, write):
        """The write, perhaps behind a WITH that only reads, or as one."""
        if write.startswith(("DELETE", "UPDATE")) and " RETURNING " in write and self.chance(0.15):
            return f"WITH written AS ({write}) SELECT count(*) FROM written"
        return write

    def free_columns(self, table):
        return [c for c in table.columns if c.name not in table.primary]

    def update(self):
        table = self.table()
        alias = self.alias()
        item = Item(alias, [(c.name, c.kind) for c in table.columns], table.primary, table.key, table.map_name)
        free = self.free_columns(table)
        sets = []
        for column in self.random.sample(free, self.random.randint(1, min(2, len(free)))):
            value = self.expression(column.kind, [item], 1)
            if column.kind != "boolean" and self.chance(0.15):
                value = self.read_elsewhere(table, column)
            if column.not_null:
                value = f"coalesce({value}, {self.literal(column.kind)})"
            if column.kind == "numeric":
                value = f"({value})::numeric(10,2)"
            sets.append(f"{column.name} = {value}")
        if self.chance(0.05):
            sets.append(f"{table.primary[0]} = {self.literal(table.column(table.primary[0]).kind)}")
        join, where = "", self.where([item], 1)
        others = [t for t in self.world.tables if t is not table and t.map_name == table.map_name and t.key]
        if table.key and others and self.chance(0.25):
            other = self.random.choice(others)
            join = f" FROM {other.name} AS y"
            link = f"y.{other.key} = {alias}.{table.key} AND y.id = {alias}.id"
            where = f"{where} AND {link}" if where else f" WHERE {link}"
        elif self.chance(0.25) and (found := self.link_elsewhere(table, alias)):
            join, link = f" FROM {found[0]} AS y", found[1]
            where = f"{where} AND {link}" if where else f" WHERE {link}"
        return f"UPDATE {table.name} AS {alias} SET {', '.join(sets)}{join}{where}{self.returning(table, alias)}".replace(
            "RETURNING *", f"RETURNING {alias}.*").replace(
            f"RETURNING {', '.join(table.primary)}", "RETURNING " + ", ".join(f"{alias}.{n}" for n in table.primary))

    def delete(self):
        table = self.table()
        alias = self.alias()
        item = Item(alias, [(c.name, c.kind) for c in table.columns], table.primary, table.key, table.map_name)
        parts = [self.key_condition([item]) if self.chance(0.6) else self.condition([item], 1), self.condition([item], 1)]
        using = ""
        others = [t for t in self.world.tables if t is not table and t.map_name == table.map_name and t.key]
        if table.key and others and self.chance(0.2):
            other = self.random.choice(others)
            using = f" USING {other.name} AS y"
            parts.append(f"y.{other.key} = {alias}.{table.key} AND y.id = {alias}.id")
        elif self.chance(0.25) and (found := self.link_elsewhere(table, alias)):
            using = f" USING {found[0]} AS y"
            parts.append(found[1])
        where = " WHERE " + " AND ".join(parts)
        return f"DELETE FROM {table.name} AS {alias}{using}{where}{self.returning(table, alias)}".replace(
            "RETURNING *", f"RETURNING {alias}.*").replace(
            f"RETURNING {', '.join(table.primary)}", "RETURNING " + ", ".join(f"{alias}.{n}" for n in table.primary))

    def write(self):
        self.aliases = 0
        return self.with_in_front(self.pick(self.insert, self.insert, self.insert, self.update, self.update, self.delete,
                                            self.insert_select)())

    def mistake(self):
        """Wrong on purpose."""
        r = self.random
        table = r.choice(self.world.tables)
        number = next(c.name for c in table.columns if c.kind in INTEGERS)
        text = next(c.name for c in table.columns if c.kind == "text")
        whole = self.world.make_row(table, fresh=True)
        no_id = [value if c.name != "id" else "NULL" for c, value in zip(table.columns, whole)]
        return r.choice([
            f"SELECT nope FROM {table.name}", f"SELECT {number} FROM {table.name} GROUP BY {text}",
            f"SELECT sum({text}) FROM {table.name}", f"SELECT * FROM {table.name} WHERE {number} = 'x'",
            f"SELECT {number} || {number} FROM {table.name}", "SELECT * FROM nowhere", f"SELEC * FROM {table.name}",
            f"SELECT 1 / (count(*) - count(*)) FROM {table.name}", f"SELECT {number} FROM {table.name} x, {table.name} y",
            f"SELECT * FROM {table.name} ORDER BY 99", f"SELECT nosuch({number}) FROM {table.name}",
            f"SELECT {number} FROM {table.name} UNION SELECT {text} FROM {table.name}",
            f"INSERT INTO {table.name} VALUES ({', '.join(no_id)})",
            f"INSERT INTO {table.name} (id, id) VALUES (1, 1)", f"INSERT INTO {table.name} (nope) VALUES (1)",
            f"INSERT INTO {table.name} VALUES ({', '.join(whole)}), ({', '.join(whole)})",
            f"UPDATE {table.name} SET nope = 1", f"UPDATE {table.name} SET id = NULL WHERE id IS NOT NULL AND id < 0",
            f"SELECT cast({text} || 'x' AS int) FROM (VALUES ('a')) v ({text})",
            f"SELECT {table.name}.nope FROM {table.name}", f"SELECT x.{number} FROM {table.name}",
            f"SELECT count(count(*)) FROM {table.name}", f"SELECT {number} FROM {table.name} WHERE count(*) > 1",
            f"SELECT row_number() FROM {table.name}", f"SELECT * FROM {table.name} LIMIT -1",
        ])

    # ---- what a session says

    def next_statements(self):
        """One statement, or a transaction of several."""
        roll = self.random.random()
        if roll < 0.70:
            yield self.one_read()
        elif roll < 0.86:
            yield Statement(self.write(), write=True)
        elif roll < 0.90:
            yield Statement(self.mistake(), write=True)
        else:
            yield Statement("BEGIN" + self.pick("", "", " ISOLATION LEVEL REPEATABLE READ", " READ ONLY"), write=True)
            saved = []
            for _ in range(self.random.randint(2, 6)):
                inner = self.random.random()
                if inner < 0.45:
                    yield Statement(self.write(), write=True)
                elif inner < 0.75:
                    yield self.one_read()
                elif inner < 0.85:
                    saved.append(f"p{len(saved)}")
                    yield Statement(f"SAVEPOINT {saved[-1]}", write=True)
                elif saved:
                    yield Statement(f"{self.pick('ROLLBACK TO', 'RELEASE')} {self.random.choice(saved)}", write=True)
                elif inner < 0.97:
                    yield Statement(self.write(), write=True)
                else:
                    yield Statement(self.mistake(), write=True)
            yield Statement(self.pick("COMMIT", "COMMIT", "ROLLBACK"), write=True)

    def one_read(self):
        self.parameters = [] if self.chance(0.35) else None
        text, ordered = self.read()
        parameters, self.parameters = self.parameters or [], None
        # Some were made for choices that were not taken.
        used = sorted({int(number) for number in re.findall(r"\$(\d+)", text)})
        text = re.sub(r"\$(\d+)", lambda match: f"${used.index(int(match.group(1))) + 1}", text)
        return Statement(text, ordered, parameters=[parameters[number - 1] for number in used])
