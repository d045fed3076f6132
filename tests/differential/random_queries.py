"""Random queries: SELECT of every shape, set operations, WITH. A query is (text, columns as (name, kind), ordered)."""

from random_expressions import INTEGERS
from random_groups import Groups
from random_kinds import KINDS


class Queries(Groups):
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
        if any(kind == "json" for _, kind in columns):
            return text, columns, False  # an error
        if total and (self.chance(0.4) or not top):
            limit = self.pick(f" LIMIT {r.randint(0, 8)}", f" LIMIT {r.randint(0, 8)} OFFSET {r.randint(0, 4)}",
                              f" OFFSET {r.randint(0, 4)}", f" FETCH FIRST {r.randint(1, 4)} ROWS ONLY")
            if self.parameters is not None and limit.startswith(" LIMIT") and self.chance(0.3):
                limit = f" LIMIT {self.parameter(str(r.randint(0, 8)), 'bigint')}"
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
        if not distinct and targets and top and self.chance(0.15):
            return self.ordered_by_others(text, items, columns)
        if top and not distinct and self.chance(0.04):
            return text + f" FOR {self.pick('UPDATE', 'SHARE', 'NO KEY UPDATE', 'KEY SHARE')}{self.pick('', ' SKIP LOCKED')}", columns, False
        return self.finish(text, columns, top, bool(distinct))

    def ordered_by_others(self, text, items, columns):
        """ORDER BY what is not in the list, then by the whole list: what has the same place looks the same."""
        item, kind = self.any_expression(items, 1)
        if kind == "json" or any(k == "json" for _, k in columns) or item.lstrip("(-").split(":")[0].isdigit() or "$" in item:
            return text, columns, False
        how = ' COLLATE "C"' if kind == "text" and self.chance(0.4) else ""
        how += self.pick("", " DESC", " NULLS FIRST", " USING <" if kind == "int" and not how else "")
        limit = self.pick("", f" LIMIT {self.random.randint(1, 8)}", f" OFFSET {self.random.randint(0, 5)}")
        return f"{text} ORDER BY {item}{how}, {', '.join(str(i + 1) for i in range(len(columns)))}{limit}", columns, True

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

    def set_operation(self, depth, top):
        kinds = [self.pick("int", "text", "bigint", "numeric", "date", *[k for k in KINDS if k not in ("json",)]) for _ in range(self.random.randint(1, 2))]
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
            arm = f"SELECT {', '.join(targets)} FROM {text}{self.where([item], 1)}"
            if self.chance(0.12):
                arm = f"({arm} ORDER BY {', '.join(str(i + 1) for i in range(len(targets)))} LIMIT {self.random.randint(1, 5)})"
            elif self.chance(0.08):
                arm = f"VALUES ({', '.join(self.literal(kind) for kind in kinds)})"
            arms.append(arm)
        if len(arms) == 3 and self.chance(0.3):
            arms = [arms[0], f"({arms[1]} {self.pick('UNION', 'EXCEPT', 'INTERSECT ALL')} {arms[2]})"]
        if arms[0].startswith("VALUES"):
            arms.append(arms.pop(0))
        if arms[0].startswith("VALUES"):
            arms[0] = f"SELECT {', '.join(f'{self.literal(kind)} AS c{i}' for i, kind in enumerate(kinds))}"
        operator = self.pick("UNION", "UNION ALL", "UNION ALL", "INTERSECT", "EXCEPT", "EXCEPT ALL", "INTERSECT ALL")
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
