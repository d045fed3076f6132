"""Random writes to the tables of a World, and statements that are wrong on purpose."""

from random_expressions import INTEGERS, Item
from random_queries import Queries


class Writes(Queries):
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
