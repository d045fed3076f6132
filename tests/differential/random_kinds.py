"""The kinds of columns that a random World has, and their values as literals.

Values are chosen so that equal answers are equal bytes: equal numerics have equal scales, floating point numbers are multiples
of a quarter (their sums are exact), intervals are of days and hours only, texts repeat and some differ by case only.
"""

import struct

TEXTS = ["", "a", "A", "b", "ab", "Ab", "b c", "z", "Zoë", "it''s", "100%", "a_b"]
KEY_TEXTS = ["de", "fr", "jp", "us", "uk", "it", "es", "pl"]
DAY_0 = 730120  # 2000-01-01 as date.toordinal() has it


def whole(r):
    return str(r.choice([r.randint(-3, 12), r.randint(-3, 12), r.randint(-1000, 1000), 0]))


def moment(r):
    return f"2024-0{r.randint(1, 4)}-{r.randint(10, 28)} {r.choice(['00:00:00', '12:30:00', '23:59:59.5', '02:15:00.123456'])}"


def quoted(choose):
    return lambda r: f"'{choose(r)}'"


class Kind:
    """`types`: as a column is declared. `value` makes a literal; `equal`, `extremes`: what PostgreSQL can do with it."""

    def __init__(self, name, value, types=None, cast=None, oid=0, pack=None, equal=True, extremes=True, weight=1):
        self.name, self.value, self.types, self.cast = name, value, types or (name,), cast or name
        self.oid, self.pack, self.equal, self.extremes, self.weight = oid, pack, equal, extremes, weight


KINDS = {
    kind.name: kind
    for kind in [
        Kind("int", whole, oid=23, pack=lambda t: struct.pack("!i", int(t)), weight=4),
        Kind("bigint", whole, oid=20, pack=lambda t: struct.pack("!q", int(t)), weight=4),
        Kind("smallint", whole, oid=21, pack=lambda t: struct.pack("!h", int(t))),
        Kind("numeric", lambda r: f"{r.choice([r.randint(-300, 300), r.randint(-3, 3) * 100]) / 100:.2f}", ("numeric(10,2)",),
             "numeric(10,2)", weight=4),
        Kind("decimal", lambda r: r.choice(["0", "1.5", "-2.25", "3.125", "1e20", "0.00001", "'NaN'", "'Infinity'", "7"]), ("numeric",), "numeric"),
        Kind("float8", lambda r: str(r.randint(-20, 20) / 4), oid=701, pack=lambda t: struct.pack("!d", float(t)), weight=3),
        Kind("real", lambda r: str(r.randint(-20, 20) / 4), oid=700, pack=lambda t: struct.pack("!f", float(t))),
        Kind("text", quoted(lambda r: r.choice(TEXTS)), oid=25, pack=str.encode, weight=4),
        Kind("textc", quoted(lambda r: r.choice(TEXTS)), ('text COLLATE "C"',), 'text COLLATE "C"'),
        Kind("varchar", quoted(lambda r: r.choice(TEXTS)), ("varchar(8)", "varchar"), "varchar"),
        Kind("bpchar", quoted(lambda r: r.choice(["", "a", "A", "b", "ab", "zz"])), ("char(3)",), "char(3)"),
        Kind("boolean", lambda r: r.choice(["true", "false"]), oid=16, pack=lambda t: bytes([t[0] == "t"]), extremes=False, weight=3),
        Kind("date", quoted(lambda r: f"2024-0{r.randint(1, 4)}-{r.randint(10, 28)}"), weight=3),
        Kind("timestamp", quoted(moment)),
        Kind("timestamptz", quoted(lambda r: moment(r) + r.choice(["+00", "+02", "-05:30"])), weight=2),
        Kind("time", quoted(lambda r: moment(r).split()[1])),
        Kind("interval", quoted(lambda r: f"{r.randint(-3, 9)} days {r.randint(0, 23)} hours")),
        Kind("uuid", quoted(lambda r: f"00000000-0000-4000-8000-00000000000{r.randint(0, 9)}"), oid=2950,
             pack=lambda t: bytes.fromhex(t.replace("-", "")), extremes=False, weight=2),
        Kind("bytea", quoted(lambda r: r.choice(["\\x", "\\x00", "\\x4100", "\\xff", "\\x5c27"])), extremes=False),
        Kind("jsonb", quoted(lambda r: r.choice(["{}", '{"a": 1}', '{"a": 2, "b": [1, 2]}', "null", "3", '"x"'])), extremes=False, weight=2),
        Kind("json", quoted(lambda r: r.choice(['{"a":1}', '{ "a": 2 }', "[1,2]", "null"])), equal=False, extremes=False),
        Kind("ints", quoted(lambda r: r.choice(["{}", "{1}", "{1,2}", "{2,NULL}", "{{1,2},{3,4}}"])), ("int[]",), "int[]"),
        Kind("texts", quoted(lambda r: r.choice(["{}", "{a}", '{"b c",NULL}', '{"a,b","\\"x"}', '{"","NULL"}'])), ("text[]",), "text[]"),
        Kind("mood", quoted(lambda r: r.choice(["sad", "ok", "happy"]))),
        Kind("small", lambda r: str(r.randint(0, 9)), ("small",), "small"),
        Kind("pair", quoted(lambda r: r.choice(["(1,a)", '(2,"b c")', "(,)", "(3,)"])), extremes=False),
        Kind("inet", quoted(lambda r: r.choice(["10.0.0.1", "10.0.0.0/8", "::1", "192.168.1.5/24"]))),
        Kind("int4range", quoted(lambda r: r.choice(["empty", "[1,5)", "[3,)", "(,2)"])), extremes=False),
        Kind("bits", quoted(lambda r: r.choice(["", "0", "101", "11"])), ("bit varying(5)",), "varbit", extremes=False),
    ]
}
DECLARED = [(type_name, kind.name) for kind in KINDS.values() for type_name in kind.types for _ in range(kind.weight)]
# What columns of some kinds need to be there first.
TYPES_MADE = (
    "CREATE TYPE mood AS ENUM ('sad', 'ok', 'happy')",
    "CREATE DOMAIN small AS int CHECK (VALUE < 100000)",
    "CREATE TYPE pair AS (n int, t text)",
)
HASH_KEYS = "text", "int", "text", "int", "uuid", "bigint", "date", "timestamptz"
