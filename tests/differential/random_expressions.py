"""Expressions and conditions of a random World: of a kind that is asked for, over what stands in FROM, never failing."""

from random_kinds import KINDS

INTEGERS = "int", "bigint"
PLAIN = "int", "bigint", "numeric", "text", "date"  # what operators are made of
COMPARISONS = "=", "=", "<>", "<", "<=", ">", ">="


class Item:
    """What stands in FROM: an alias, its columns as (name, kind), what identifies a row, the sharding key."""

    def __init__(self, alias, columns, unique=None, key=None, map_name=None):
        self.alias, self.columns, self.unique, self.key, self.map_name = alias, columns, unique, key, map_name

    def of(self, kinds):
        return [f"{self.alias}.{name}" for name, kind in self.columns if kind in kinds]


class Expressions:
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
            return f"{self.parameter(text, kind)}::{KINDS[kind].cast}"
        if kind in ("date", "timestamp", "uuid", "interval") and self.chance(0.5):
            return f"{kind} {text}"
        if kind in ("int", "numeric", "text", "bigint", "boolean"):
            return text if not text.startswith("-") else f"({text})"
        return self.cast(f"({text})" if text.startswith("-") else text, kind)

    def cast(self, text, kind):
        if kind == "textc":
            return f'({text})::text COLLATE "C"'
        return f"{text}::{KINDS[kind].cast}"

    def parameter(self, text, kind):
        """A `$n` with the value of the literal."""
        value = text[1:-1].replace("''", "'") if text.startswith("'") else text
        self.parameters.append((value, kind))
        return f"${len(self.parameters)}"

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
            "smallint": [lambda: f"({e('int')} % 100)::smallint"],
            "decimal": [lambda: f"abs({e('decimal')})"],
            "real": [lambda: f"{e('smallint')}::real"],
            "textc": [lambda: f"lower({e('textc')})", lambda: f"{e('text')} COLLATE \"C\""],
            "varchar": [lambda: f"{e('text')}::varchar(8)"],
            "bpchar": [lambda: f"left({e('text')}, 3)::char(3)"],
            "timestamp": [lambda: f"({e('timestamp')} + interval '1 day 2 hours')", lambda: f"({e('timestamptz')} AT TIME ZONE 'UTC')",
                          lambda: f"date_trunc('day', {e('timestamp')})", lambda: f"{e('date')}::timestamp"],
            "timestamptz": [lambda: f"({e('timestamptz')} - interval '90 minutes')", lambda: f"{e('timestamp')}::timestamptz"],
            "time": [lambda: f"{e('timestamp')}::time"],
            "interval": [lambda: f"({e('interval')} * 2)", lambda: f"({e('timestamp')} - {e('timestamp')})"],
            "uuid": [lambda: f"md5({e('text')})::uuid"],
            "bytea": [lambda: f"convert_to({e('text')}, 'UTF8')", lambda: f"({e('bytea')} || {e('bytea')})"],
            "jsonb": [lambda: f"jsonb_build_object('k', {e('int')})", lambda: f"to_jsonb({e('text')})", lambda: f"({e('jsonb')} -> 'a')",
                      lambda: f"jsonb_build_array({self.any_expression(items, 0)[0]})"],
            "json": [lambda: f"to_json({e('texts')})"],
            "ints": [lambda: f"ARRAY[{e('int')}, {e('int')}]", lambda: f"array_append('{{7}}'::int[], {e('int')})"],
            "texts": [lambda: f"ARRAY[{e('text')}]", lambda: f"string_to_array({e('text')}, ' ')"],
            "mood": [lambda: f"CASE WHEN {self.condition(items, 0)} THEN 'ok'::mood ELSE {e('mood')} END"],
            "small": [lambda: f"(abs({e('int')}) % 9)::small"],
            "pair": [lambda: f"ROW({e('int')}, {e('text')})::pair"],
            "inet": [lambda: f"network({e('inet')})::inet"],
            "int4range": [lambda: f"int4range({e('int')}, NULL)"],
            "bits": [lambda: f"~ {e('bits')}"],
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
        kinds = [kind for item in items for _, kind in item.columns if kind != "boolean" and KINDS[kind].equal] or ["int"]
        kind = r.choice(kinds)
        e = lambda k: self.expression(k, items, depth - 1)  # noqa: E731
        choices = [
            lambda: f"{e(kind)} {self.pick(*COMPARISONS)} {self.literal(kind)}",
            lambda: f"{e(kind)} {self.pick(*COMPARISONS)} {e(kind)}",
            lambda: f"{e(kind)} IN ({', '.join(self.literal(kind) for _ in range(r.randint(1, 4)))})",
            lambda: f"{e(kind)} BETWEEN {self.literal(kind)} AND {self.literal(kind)}",
            lambda: f"{e(kind)} IS {self.pick('', 'NOT ')}NULL",
            lambda: f"{e(kind)} IS DISTINCT FROM {self.literal(kind)}",
            lambda: f"{e(kind)} = {self.pick('ANY', 'ANY', 'SOME')} (ARRAY[{self.literal(kind)}, {self.literal(kind)}])",
            lambda: f"{e(kind)} {self.pick('<>', '>=', '<')} ALL (ARRAY[{self.literal(kind)}, {self.literal(kind)}])",
            lambda: f"({e(kind)}, {e('int')}) {self.pick('=', '<', '>=', '<>', 'IS DISTINCT FROM')} ({self.literal(kind)}, {self.literal('int')})",
            lambda: f"({e('int')} {self.pick('>', '=')} {self.literal('int')}) IS {self.pick('', 'NOT ')}{self.pick('TRUE', 'FALSE', 'UNKNOWN')}",
            lambda: f"{e(kind)} NOT BETWEEN SYMMETRIC {self.literal(kind)} AND {self.literal(kind)}",
            lambda: f"num_nulls({e(kind)}, {e('text')}) {self.pick('=', '<')} 1",
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
        kind = table.column(table.key).kind
        if self.parameters is not None and self.chance(0.5):
            values[0] = self.parameter(values[0], kind) + self.pick("", f"::{KINDS[kind].cast}")
            return f"{key} = {values[0]}"
        return self.pick(f"{key} = {values[0]}", f"{key} = {values[0]}", f"{key} IN ({', '.join(values)})",
                         f"{key} > {values[0]}", f"{key} BETWEEN {values[0]} AND {values[1]}",
                         f"({key} = {values[0]} OR {key} = {values[1]})", f"{values[0]} = {key}",
                         f"{key} = ANY (ARRAY[{values[0]}, {values[1]}]::{KINDS[kind].cast}[])",
                         f"({key}, {item.alias}.{item.columns[-1][0]}) >= ({values[0]}, {self.literal(item.columns[-1][1])})",
                         f"({key} >= {values[0]} AND {key} < {values[1]} OR {key} = {values[2]})",
                         f"CASE WHEN {key} = {values[0]} THEN true ELSE {key} = {values[1]} END",
                         f"{key} IS NOT DISTINCT FROM {values[0]}", f"{key} = (SELECT {values[0]}::{KINDS[kind].cast})",
                         f"{key} IN (SELECT {self.cast(values[0], kind)} UNION ALL SELECT {self.cast(values[1], kind)})")
