"""What stands in FROM, at random, and subqueries of conditions."""

from random_expressions import Expressions, Item


class Sources(Expressions):
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
        if form == "in" and self.chance(0.4):
            second = self.column([inner[1]], ["int"])
            return self.pick(f"{test} {self.pick('<>', '>=', '=')} {self.pick('ALL', 'ANY')} (SELECT {column} FROM {inner[0]}{tail})",
                             f"({test}, {self.expression('int', items, 0)}) {negation}IN (SELECT {column}, {second} FROM {inner[0]}{tail})"
                             if second else "true",
                             f"{test} {negation}IN (SELECT {self.pick('min', 'max')}({column}) FROM {inner[0]}{tail} GROUP BY {second or 1})"
                             if second else "true",
                             f"{test} = ANY (ARRAY(SELECT {column} FROM {inner[0]}{tail}))")
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
        pool = tables or [t for t in self.world.tables for _ in range(6 if t.placement == "sharded" else 2)] + self.world.views
        table = self.random.choice(pool)
        alias = self.alias()
        item = Item(alias, [(c.name, c.kind) for c in table.columns], table.primary, table.key, table.map_name)
        return f"{table.name}{self.pick(' AS', '')} {alias}", item

    def from_item(self, depth):
        if depth > 0 and self.chance(0.2):
            text, columns = self.query(depth - 1)[:2]
            alias = self.alias()
            return f"({text}) AS {alias}", Item(alias, columns)
        if self.chance(0.06):
            return self.rows_of_none()
        return self.base_item()

    def rows_of_none(self):
        """Rows that no table has."""
        alias = self.alias()
        kind = self.pick("int", "text", "date")
        rows = ", ".join(f"({self.literal('int')}, {self.literal(kind)})" for _ in range(self.random.randint(1, 3)))
        return self.pick(
            (f"(VALUES {rows}) AS {alias} (v1, v2)", Item(alias, [("v1", "int"), ("v2", kind)])),
            (f"generate_series(1, {self.random.randint(0, 4)}) AS {alias} (g)", Item(alias, [("g", "int")])),
            (f"unnest(ARRAY[{self.literal('text')}, {self.literal('text')}]) WITH ORDINALITY AS {alias} (u, n)",
             Item(alias, [("u", "text"), ("n", "bigint")])),
            (f"ROWS FROM (generate_series(1, 2), unnest('{{a,b,z}}'::text[])) AS {alias} (g, u)", Item(alias, [("g", "int"), ("u", "text")])))

    def lateral(self, items):
        """Something that looks at what stands before it; None when there is nothing to look at."""
        number = self.column(items, ["int"])
        if not number:
            return None
        alias = self.alias()
        if self.chance(0.3):
            return self.pick(
                (f"LATERAL generate_series(1, abs({number}) % 3) AS {alias} (g)", Item(alias, [("g", "int")])),
                (f"LATERAL (VALUES ({number}), ({self.expression('int', items, 1)})) AS {alias} (v)", Item(alias, [("v", "int")])),
                (f"LATERAL (SELECT {self.expression('text', items, 1)} AS l) AS {alias}", Item(alias, [("l", "text")])))
        text, inner = self.base_item()
        parts = []
        same_map = [i for i in items if i.key and i.map_name == inner.map_name]
        if same_map and inner.key and self.chance(0.7):
            parts.append(f"{inner.alias}.{inner.key} = {same_map[0].alias}.{same_map[0].key}")
        own = self.column([inner], ["int"])
        if own and (not parts or self.chance(0.3)):
            parts.append(f"{own} {self.pick('=', '<=')} {number}")
        where = f" WHERE {' AND '.join(parts)}" if parts else ""
        if own and self.chance(0.3):
            return (f"LATERAL (SELECT count(*) AS n, max({own}) AS m FROM {text}{where}) AS {alias}",
                    Item(alias, [("n", "bigint"), ("m", "int")]))
        target, kind = self.any_expression([inner], 0)
        if kind == "json":
            target, kind = "1", "int"
        tail = self.pick("", "", f" ORDER BY 1 LIMIT {self.random.randint(1, 3)}", " ORDER BY 1 DESC NULLS LAST LIMIT 1")
        return f"LATERAL (SELECT {target} AS l FROM {text}{where}{tail}) AS {alias}", Item(alias, [("l", kind)])

    def from_clause(self, depth):
        """The text and the items; at most three."""
        text, item = self.from_item(depth)
        items = [item]
        for _ in range(self.random.choice([0, 0, 0, 1, 1, 2])):
            if self.chance(0.12) and (found := self.lateral(items)):
                text += f" {self.pick('CROSS JOIN ' + found[0], 'LEFT JOIN ' + found[0] + ' ON true')}"
                items.append(found[1])
                continue
            more, other = self.from_item(depth)
            if len(items) == 1 and items[0].key and items[0].key == other.key and items[0].map_name == other.map_name and self.chance(0.2):
                text += f" {self.pick('JOIN', 'LEFT JOIN', 'FULL JOIN')} {more} USING ({other.key})"
                items.append(other)
                continue
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
