"""What a session says, at random: statements over a World, of the dialect that Kintsugi claims.

A statement's answer is fixed by its text and the data: LIMIT has an order over all columns, windows and ordered
aggregates order by what is unique, an error is made on purpose by a statement of its own. `ordered` says that the rows
come in one order only.
"""

import re

from random_kinds import KINDS
from random_writes import Writes

SETTINGS = {
    "DateStyle": ["'SQL, DMY'", "'German'", "'Postgres'"],
    "IntervalStyle": ["'iso_8601'", "'sql_standard'"],
    "TimeZone": ["'America/New_York'", "'Asia/Kathmandu'"],
    "extra_float_digits": ["-5", "3"],
    "bytea_output": ["'escape'"],
    "transform_null_equals": ["on"],
    "array_nulls": ["off"],
    "standard_conforming_strings": ["off"],
    "enable_sort": ["off"],
    "default_transaction_read_only": ["on"],
    "plan_cache_mode": ["force_generic_plan"],
}
COPY_FORMS = "", " (FORMAT csv)", " (FORMAT csv, HEADER, DELIMITER ';')", " WITH (NULL 'none', DELIMITER '|')", " CSV FORCE QUOTE *"


class Statement:
    def __init__(self, text, ordered=False, write=False, parameters=(), simple=False, data=""):
        self.text, self.ordered, self.write = text, ordered, write
        self.parameters = tuple(parameters)  # (text, kind) each
        self.simple = simple  # several statements: the simple protocol only
        self.data = data  # for COPY FROM STDIN

    def __repr__(self):
        return (self.text + (f"  -- {[value for value, _ in self.parameters]}" if self.parameters else "")
                + (f"  -- data {self.data!r}" if self.data else ""))


class Generator(Writes):
    def next_statements(self):
        """One statement, or a transaction of several."""
        roll = self.random.random()
        if roll < 0.60:
            yield self.one_read()
        elif roll < 0.63:
            again = self.one_read()
            yield again
            yield again  # by what was learnt of it
        elif roll < 0.66:
            yield self.copy_out()
        elif roll < 0.68:
            yield self.copy_in()
        elif roll < 0.70:
            yield from self.prepared()
        elif roll < 0.72:
            yield from self.under_settings()
        elif roll < 0.84:
            yield Statement(self.write(), write=True)
        elif roll < 0.86:
            yield Statement("; ".join(self.write() for _ in range(self.random.randint(2, 3))), write=True, simple=True)
        elif roll < 0.89:
            yield Statement(self.mistake(), write=True)
        else:
            yield from self.transaction()

    def transaction(self):
        yield Statement("BEGIN" + self.pick("", "", " ISOLATION LEVEL REPEATABLE READ", " READ ONLY"), write=True)
        saved = []
        for _ in range(self.random.randint(2, 6)):
            inner = self.random.random()
            if inner < 0.40:
                yield Statement(self.write(), write=True)
            elif inner < 0.65:
                yield self.one_read()
            elif inner < 0.72:
                yield from self.cursor()
            elif inner < 0.75:
                yield self.copy_in()
            elif inner < 0.85:
                saved.append(f"p{len(saved)}")
                yield Statement(f"SAVEPOINT {saved[-1]}", write=True)
            elif saved:
                yield Statement(f"{self.pick('ROLLBACK TO', 'RELEASE')} {self.random.choice(saved)}", write=True)
            elif inner < 0.95:
                yield Statement(self.write(), write=True)
            elif inner < 0.97:
                yield Statement(f"TRUNCATE {self.table().name}", write=True)
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

    def ordered_read(self):
        """A query whose rows come in one order, without parameters."""
        self.parameters = None
        for _ in range(50):
            text, ordered = self.read()
            if ordered and " FOR " not in text:
                return text
        return "SELECT 1"

    def cursor(self):
        name = f"c{self.random.randint(0, 10**9)}"
        scroll = self.chance(0.4)
        yield Statement(f"DECLARE {name} {'SCROLL ' if scroll else self.pick('', 'NO SCROLL ')}CURSOR "
                        f"{self.pick('', '', 'WITHOUT HOLD ')}FOR {self.ordered_read()}", write=True)
        for _ in range(self.random.randint(1, 4)):
            ways = ["NEXT", str(self.random.randint(0, 6)), "ALL", f"FORWARD {self.random.randint(1, 4)}"]
            if scroll:
                ways += ["PRIOR", "FIRST", "LAST", "BACKWARD 2", "BACKWARD ALL", f"ABSOLUTE {self.random.randint(-3, 4)}", "RELATIVE -1"]
            yield Statement(f"{self.pick('FETCH', 'FETCH', 'FETCH', 'MOVE')} {self.random.choice(ways)} FROM {name}",
                            ordered=True, write=True)
            if self.chance(0.2):
                yield Statement(self.write(), write=True)
        if self.chance(0.7):
            yield Statement(f"CLOSE {name}", write=True)

    def copy_out(self):
        form = self.random.choice(COPY_FORMS)
        if self.chance(0.4):
            table = self.table()
            columns = ", ".join(self.random.sample([c.name for c in table.columns], 2)) if self.chance(0.5) else ""
            return Statement(f"COPY {table.name}{f' ({columns})' if columns else ''} TO STDOUT{form}")
        if self.chance(0.5):
            return Statement(f"COPY ({self.ordered_read()}) TO STDOUT{form}", ordered=True)
        self.parameters = None
        return Statement(f"COPY ({self.read()[0]}) TO STDOUT{form}")

    def copy_in(self):
        table = self.table()
        rows = [self.world.make_row(table, fresh=self.chance(0.85)) for _ in range(self.random.randint(0, 5))]
        bare = lambda v: None if v == "NULL" else v[1:-1].replace("''", "'") if v.startswith("'") else v  # noqa: E731
        rows = [[bare(value) for value in row] for row in rows]
        if self.chance(0.5):
            lines = ["\t".join("\\N" if v is None else v.replace("\\", "\\\\") for v in row) for row in rows]
            return Statement(f"COPY {table.name} FROM STDIN", write=True, data="".join(line + "\n" for line in lines))
        lines = [",".join("" if v is None else '"' + v.replace('"', '""') + '"' for v in row) for row in rows]
        names = ", ".join(c.name for c in table.columns)
        return Statement(f"COPY {table.name} ({names}) FROM STDIN (FORMAT csv)", write=True, data="".join(line + "\n" for line in lines))

    def prepared(self):
        """SQL's own PREPARE, and EXECUTE more than once."""
        read = self.one_read()
        name = f"s{self.random.randint(0, 10**9)}"
        types = ", ".join(KINDS[kind].cast.replace(' COLLATE "C"', "").split("(")[0] for _, kind in read.parameters)
        yield Statement(f"PREPARE {name}{f' ({types})' if types else ''} AS {read.text}", write=True)
        for _ in range(2):
            values = ", ".join("'" + value.replace("'", "''") + "'" for value, _ in read.parameters)
            yield Statement(f"EXECUTE {name}{f' ({values})' if values else ''}", read.ordered, write=True)
        yield Statement(f"DEALLOCATE {name}", write=True)

    def under_settings(self):
        name = self.random.choice(list(SETTINGS))
        yield Statement(f"SET {name} = {self.random.choice(SETTINGS[name])}", write=True)
        for _ in range(self.random.randint(1, 3)):
            yield self.pick(self.one_read, self.one_read, self.copy_out, lambda: Statement(self.write(), write=True))()
        yield Statement(f"RESET {name}", write=True)
