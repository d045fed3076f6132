"""Every type a sharding key can have, with every form in which a statement can say a key: against one plain PostgreSQL.

For each type: a RANGE, a HASH or a LIST map over the shards, two tables of it, and predicates in the spellings of SQL and of
drivers (declared and undeclared parameters, text and binary, arrays), each in queries, joins, views, CTEs and writes. What is the
same and what may be refused is as in differential_test.py. `--type NAME` runs one type.

    KINTSUGI_PROGRAM   the program to test
    KINTSUGI_SHARDS    which numbers of shards (default: 3)
"""

import argparse
import collections
import os
import re
import shutil
import struct
import sys
import time

from psycopg import pq

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "clients"))

from differential_test import connect, run_script, same, show  # noqa: E402
from postgres import PASSWORD, USER, Cluster, scratch_directory  # noqa: E402
from systems import Kintsugi  # noqa: E402

REFUSED_MOST = 0.02


class KeyType:
    """`values` are texts in key order; `others` expressions that are not of the type's plain form, or not in the table."""

    def __init__(self, name, sql, kind, values, others=(), oid=0, array=0, pack=None, column=None):
        self.name, self.sql, self.kind, self.values, self.others = name, sql, kind, values, list(others)
        self.oid, self.array, self.pack, self.column = oid, array, pack, column or sql


def quoted(text):
    return "'" + text.replace("'", "''") + "'"


INTS = ["-2147483648", "-5", "0", "1", "7", "42", "1000", "2147483647"]
INT_OTHERS = ["7.0", "7.5", "1e0", "4.2e1", "99999999999", "-0", "+7", "' 7 '", "'+7'", "7::smallint", "7::bigint", "7::numeric",
              "7.5::numeric", "'7'::text::int", "7::text::int", "7.4::int", "7::float8", "7.5::float4", "1 + 6", "'NaN'::numeric",
              "2 * 3 + 1", "abs(-7)", "(SELECT 7)", "NULL", "NULL::int", "'7'::int", "length('abcdefg')", "-(-7)", "- 5",
              "'seven'", "-99999999999999999999999"]
TEXTS = ["", "A", "Z z", "a", "ab", "it's", "zz", "ü"]
TEXT_OTHERS = ["E'\\x61'", "U&'\\0061'", "U&'!0061' UESCAPE '!'", "$$ab$$", "$q$it's$q$", "'a' 'b'", "'a'\n'b'", "'a'::varchar", "'ab '::char(3)",
               "'ab'::char(2)", "'a'::name", "'a' || 'b'", "lower('AB')", "upper('a')", "'ab'::varchar(1)", "NULL", "'a'::\"char\"", "concat('a', 'b')",
               "'a' COLLATE \"C\"", "'nothing'", "e'it\\'s'", "7::text", "chr(97)", "'A'::citext"]
UUIDS = ["00000000-0000-0000-0000-000000000000", "11111111-1111-1111-1111-111111111111", "7fffffff-ffff-ffff-ffff-ffffffffffff",
         "80000000-0000-0000-0000-000000000000", "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11", "ffffffff-ffff-ffff-ffff-ffffffffffff"]

TYPES = [
    KeyType("int", "int", "RANGE", INTS, INT_OTHERS, 23, 1007, lambda t: struct.pack("!i", int(t))),
    KeyType("inth", "int", "HASH", INTS, INT_OTHERS, 23, 1007, lambda t: struct.pack("!i", int(t))),
    KeyType("intl", "int", "LIST", INTS, INT_OTHERS[:12], 23, 1007, lambda t: struct.pack("!i", int(t))),
    KeyType("small", "smallint", "RANGE", ["-32768", "-1", "0", "7", "9", "32767"], ["7", "7::int", "70000", "7.0", "7::bigint", "'7'::smallint", "6+1"],
            21, 1005, lambda t: struct.pack("!h", int(t))),
    KeyType("big", "bigint", "RANGE", ["-9223372036854775808", "-1", "0", "7", "99999999999", "9223372036854775807"],
            ["7::int", "7::smallint", "7.0", "9223372036854775808", "1e3", "7.5", "'7'::int", "'7'::text::bigint", "3 + 4", "7::numeric", "1e30", "-9223372036854775809"],
            20, 1016, lambda t: struct.pack("!q", int(t))),
    KeyType("num", "numeric", "RANGE", ["-1e30", "-1.5", "0", "0.10", "1", "2.5", "100000000000000000000", "NaN"],
            ["1.00", "0.1", "1e0", "2.50", "'1.0'", "1::int", "'Infinity'", "'-Infinity'::numeric", "0.1::float8", "2.5::float4", "1.04::numeric(10,1)", "-0.0", "0.5 + 0.5", "' nan '"],
            1700, 1231),
    KeyType("numh", "numeric", "HASH", ["-1.5", "0", "0.10", "1", "2.5", "100000000000000000000", "NaN"], ["1.00", "0.1", "1e0", "2.5::float8", "'1.0'"], 1700, 1231),
    KeyType("text", "text", "RANGE", TEXTS, TEXT_OTHERS, 25, 1009, lambda t: t.encode(), column='text COLLATE "C"'),
    KeyType("textd", "text", "RANGE", TEXTS, TEXT_OTHERS, 25, 1009, lambda t: t.encode()),
    KeyType("texth", "text", "HASH", TEXTS, TEXT_OTHERS, 25, 1009, lambda t: t.encode()),
    KeyType("textl", "text", "LIST", TEXTS, TEXT_OTHERS, 25, 1009, lambda t: t.encode()),
    KeyType("vc", "varchar", "HASH", TEXTS, TEXT_OTHERS, 1043, 1015, lambda t: t.encode()),
    KeyType("vc4", "varchar", "HASH", ["", "abc", "abcd", "x", "üöäß"], ["'abcde'", "'abcd '", "'x    '", "'üöäß '", "'üöäßx'", "'abcde'::varchar(4)", "'x'::text", "'x '"], 1043, 1015,
            lambda t: t.encode(), column='varchar(4) COLLATE "C"'),
    KeyType("bytea", "bytea", "RANGE", ["\\x", "\\x00", "\\x0001", "\\x41", "\\x4100", "\\xff", "\\xff00"],
            ["'A'", "E'\\\\x41'", "'\\101'", "E'\\\\101'", "'\\x4 1'", "'\\xFF'", "decode('41', 'hex')", "'A'::text::bytea", "'\\x4'", "convert_to('A', 'UTF8')", "'A\\\\'"],
            17, 1001, lambda t: bytes.fromhex(t[2:])),
    KeyType("uuid", "uuid", "RANGE", UUIDS, ["'A0EEBC99-9C0B-4EF8-BB6D-6BB9BD380A11'", "'{a0eebc999c0b4ef8bb6d6bb9bd380a11}'", "'a0ee-bc99-9c0b-4ef8-bb6d-6bb9-bd38-0a11'",
             "'no uuid'", "'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11'::text::uuid", "md5('x')::uuid", "'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a1'"], 2950, 2951,
            lambda t: bytes.fromhex(t.replace("-", ""))),
    KeyType("uuidh", "uuid", "HASH", UUIDS, ["'A0EEBC99-9C0B-4EF8-BB6D-6BB9BD380A11'"], 2950, 2951, lambda t: bytes.fromhex(t.replace("-", ""))),
    KeyType("date", "date", "RANGE", ["-infinity", "4713-01-01 BC", "1999-12-31", "2000-01-01", "2024-02-29", "2024-03-01", "infinity"],
            ["'20240229'", "'Feb 29, 2024'", "'29.2.2024'", "'02/03/2024'", "'2024-02-29 10:00'", "timestamp '2024-02-29'", "timestamp '2024-02-29 10:00'",
             "timestamptz '2024-02-29 00:00+00'", "'epoch'", "'J2460370'", "date '2024-02-28' + 1", "make_date(2024, 2, 29)", "'2024-02-30'", "'2024.060'", "'2024-2-29'", "'99-12-31'"],
            1082, 1182),
    KeyType("ts", "timestamp", "RANGE", ["-infinity", "1999-12-31 23:59:59.999999", "2000-01-01 00:00:00", "2024-02-29 10:00:00", "2024-02-29 10:00:00.5", "infinity"],
            ["'2024-02-29T10:00'", "'2024-02-29 10:00:00+05'", "'2024-02-29 10:00:00.50'", "'2000-01-01'", "date '2000-01-01'", "timestamptz '2024-02-29 10:00+00'",
             "timestamp '2024-02-29' + interval '10 h'", "'2024-02-29 10:00:00.4999999'", "'20240229T100000'", "'2024-02-29 10:00 AM'", "'02/29/2024 10:00'", "'1999-12-31 24:00'", "timestamp(0) '2024-02-29 10:00:00.3'"],
            1114, 1115),
    KeyType("tz", "timestamptz", "RANGE", ["-infinity", "1999-12-31 23:59:59.999999+00", "2000-01-01 00:00:00+00", "2024-02-29 10:00:00+00", "2024-02-29 10:00:00.5+00", "infinity"],
            ["'2024-02-29 10:00'", "'2024-02-29 12:00+02'", "'2024-02-29 10:00Z'", "'2024-02-29 10:00 UTC'", "'2024-02-29 11:00 Europe/Berlin'", "timestamp '2024-02-29 10:00'", "date '2000-01-01'",
             "'2000-01-01'", "timestamptz '2024-02-29 12:00+02'", "'2024-02-29 10:00:00.5+0'", "'Thu Feb 29 10:00:00 2024 UTC'", "to_timestamp(0)"],
            1184, 1185),
    KeyType("tzh", "timestamptz", "HASH", ["-infinity", "1999-12-31 23:59:59.999999+00", "2000-01-01 00:00:00+00", "2024-02-29 10:00:00+00", "infinity"],
            ["'2024-02-29 10:00'", "'2024-02-29 12:00+02'", "timestamp '2024-02-29 10:00'"], 1184, 1185),
    KeyType("bool", "boolean", "LIST", ["f", "t"], ["true", "false", "'yes'", "'off'", "' TRUE '", "'o'", "1::boolean", "'1'", "not true", "0::boolean", "NULL", "'tr'", "1 = 1"],
            16, 1000, lambda t: b"\1" if t == "t" else b"\0"),
]


def predicates(type, k="k", n="n"):
    """(text, parameters): each parameter is (oid, bytes or None, binary)."""
    v = [quoted(value) for value in type.values]
    some, other, third = v[len(v) // 2], v[1], v[-1]
    cast = f"::{type.sql}"
    for value in v:
        yield f"{k} = {value}", ()
    for value in [some, *type.others]:
        for form in (f"{k} = {value}", f"{value} = {k}", f"{k} IN ({value}, {other})", f"{k} = ANY (ARRAY[{value}, {other}])", f"{k} < {value}",
                     f"{value} <= {k}", f"{k} IS NOT DISTINCT FROM {value}"):
            yield form, ()
        if not value.startswith("(SELECT"):
            yield f"{k} BETWEEN {value} AND {third}", ()
            yield f"({k}, {n}) = ({value}, 1)", ()
            yield f"{k} = CAST({value} AS {type.sql})", ()
            yield f"{k} = {value}{cast}", ()
            yield f"{k} = ({value})", ()
    for op in ("<", "<=", ">", ">=", "<>", "!="):
        for value in (v[0], some, third):
            yield f"{k} {op} {value}", ()
            yield f"{value}{cast} {op} {k}", ()
        yield f"({k}, {n}) {op} ({some}, 1)", ()
        yield f"({n}, {k}) {op} (1, {some}{cast})", ()
        yield f"ROW({k}, {n}) {op} ROW({some}{cast}, 2)", ()
        yield f"{k} {op} ANY (ARRAY[{some}, {other}]{cast}[])", ()
        yield f"{k} {op} ALL (ARRAY[{some}, {other}]{cast}[])", ()
    yield from ((text, ()) for text in (
        f"{k} IN ({some}, NULL, {other})", f"{k} NOT IN ({some}, {other})", f"{k} NOT IN ({some}, NULL)", f"{k} IN (NULL)", f"{k} IN ({some}{cast}, {other})",
        f"({k}, {n}) IN (({some}, 1), ({other}, 2))", f"({n}, {k}) IN ((1, {some}), (2, {other}))", f"({k}, {k}) IN (({some}, {other}), ({third}, {third}))",
        f"({k}, {n}) NOT IN (({some}, 1), ({other}, 2))", f"{k} BETWEEN {other} AND {some}", f"{k} BETWEEN {some} AND {other}", f"{k} BETWEEN SYMMETRIC {some} AND {other}",
        f"{k} NOT BETWEEN {other} AND {some}", f"{k} NOT BETWEEN SYMMETRIC {some} AND {other}", f"{k} IS NULL", f"{k} IS NOT NULL", f"{k} ISNULL", f"{k} IS DISTINCT FROM {some}",
        f"NOT ({k} = {some})", f"NOT ({k} <> {some})", f"NOT ({k} < {some})", f"NOT {k} = {some}", f"{k} = {some} AND {k} = {other}", f"{k} = {some} OR {n} = 1",
        f"{k} = {some} OR {k} = {other} AND {n} = 1", f"({k} = {some} OR {k} = {other}) AND {n} = 2", f"({k} = {some}) IS TRUE", f"({k} = {some}) IS NOT FALSE", f"({k} = {some}) IS NOT TRUE",
        f"({k} = {some}) IS UNKNOWN", f"({k} = {some}) = true", f"({k} = {some}) = false", f"CASE WHEN {k} = {some} THEN true ELSE {n} = 2 END", f"COALESCE({k}, {other}) = {some}",
        f"{k} = COALESCE(NULL, {some}{cast})", f"NULLIF({k}, {some}) IS NULL", f"{k} = (SELECT {some}{cast})", f"{k} IN (SELECT {some}{cast} UNION SELECT {other}{cast})",
        f"{k} = ANY (SELECT {some}{cast})", f"EXISTS (SELECT 1 WHERE {k} = {some})", f"{k} = {some} AND false", f"{k} = {some} AND NULL", f"{k} = {some} OR true", f"{k} = NULL OR {k} = {some}",
        f"{k} = NULL", f"NULL = {k}", f"{k} IS NOT DISTINCT FROM NULL", f"{k}::text = {some}", f"{k}::text = {some}{cast}::text", f"{k}{cast} = {some}", f"CAST({k} AS {type.sql}) = {some}",
        f"{k} = ANY ({quoted(array_text(type, [type.values[1], type.values[-1]]))})", f"{k} = ANY ({quoted(array_text(type, [type.values[1], None]))}{cast}[])",
        f"{k} = ALL ({quoted(array_text(type, [type.values[1]]))}{cast}[])", f"{k} = ANY ('{{}}')", f"{k} = ANY (NULL)", f"{k} = ANY (NULL{cast}[])", f"{k} = ANY (ARRAY[]{cast}[])",
        f"{k} = SOME (ARRAY[{some}]{cast}[])", f"{k} = ANY (ARRAY[{some}, NULL]{cast}[])", f"{k} <> ALL (ARRAY[{some}]{cast}[])", f"NOT {k} = ANY (ARRAY[{some}]{cast}[])",
        f"{k} OPERATOR(pg_catalog.=) {some}", f"{k} = {some} -- 'comment\n", f"{k} /* {other} */ = /* /* nested */ */ {some}", f"{k} >= {other} AND {k} < {some}", f"{k} > {some} AND {k} < {other}",
        f"{k} = {some} AND {n} = 1 OR {k} = {other} AND {n} = 2", f"{k} >= {some} AND {k} <= {some}", f"NOT ({k} = {some} OR {k} = {other})", f"NOT ({k} = {some} AND {n} = 1)",
        f"NOT ({k} IN ({some}, {other}))", f"({k} = {some}) <> ({n} = 1)", f"(({k})) = (({some}))", f"{k} = {some} AND {n} IN (SELECT 1)", f"{k} = {k}", f"{k} <> {k} OR {k} = {some}",
        f"'{{}}' <> '{{a}}' AND {k} = {some}", f"{k} LIKE '%'" if type.oid in (25, 1043) else f"{k} = {some}", f"GREATEST({k}, {some}) = {some}",
        f"{k} = ANY (VALUES ({some}{cast}), ({other}{cast}))", f"{k} IN (VALUES ({some}{cast}))", f"({k}, {n}) = (SELECT {some}{cast}, 1)", f"ROW({k}) = ROW({some}{cast})"))
    one, two = type.values[len(type.values) // 2], type.values[1]
    array = array_text(type, [two, None, one])
    for oid in (type.oid, 0):
        yield f"{k} = $1", ((oid, one.encode(), 0),)
        yield f"$1 = {k} AND {n} = $2", ((oid, one.encode(), 0), (0, b"1", 0))
        yield f"{k} = $1", ((oid, None, 0),)
        yield f"{k} IN ($1, $2)", ((oid, one.encode(), 0), (oid, two.encode(), 0))
        yield f"{k} IN ($1, $1, {some})", ((oid, two.encode(), 0),)
        yield f"{k} BETWEEN $1 AND $2", ((oid, two.encode(), 0), (oid, one.encode(), 0))
        yield f"{k} >= $1 AND {k} < $2", ((oid, two.encode(), 0), (oid, one.encode(), 0))
        yield f"({k}, {n}) = ($1, $2)", ((oid, one.encode(), 0), (23, b"1", 0))
        yield f"({k}, {n}) > ($1, 1)", ((oid, one.encode(), 0),)
        yield f"{k} IS NOT DISTINCT FROM $1", ((oid, one.encode(), 0),)
        yield f"{k} = $1 OR $1 IS NULL", ((oid, one.encode(), 0),)
        yield f"$1 IS NULL OR {k} = $1", ((type.oid, None, 0),)
        yield f"{k} = COALESCE($1, {some})", ((oid, None, 0),)
        yield f"{k} = $1{cast}", ((oid, one.encode(), 0),)
        yield f"{k} = $1::text{cast}", ((0, one.encode(), 0),)
        yield f"{k} = CAST($1 AS {type.sql})", ((25, one.encode(), 0),)
    for oid in (type.array, 0):
        yield f"{k} = ANY ($1)", ((oid, array.encode(), 0),)
        yield f"{k} = ANY ($1{cast}[])", ((oid, array.encode(), 0),)
        yield f"{k} <> ALL ($1)", ((oid, array_text(type, [one]).encode(), 0),)
        yield f"{k} = ANY ($1)", ((oid, None, 0),)
        yield f"{k} = ANY ($1)", ((oid, b"{}", 0),)
        yield f"{k} = ANY ($1)", ((oid, ("{" + array + "," + array + "}").encode(), 0),)
    if type.pack:
        for oid in (type.oid, 0):
            yield f"{k} = $1", ((oid, type.pack(one), 1),)
            yield f"{k} IN ($1, $2)", ((oid, type.pack(one), 1), (oid, two.encode(), 0))
            yield f"{k} = $1{cast}", ((oid, type.pack(one), 1),)
        packed = b"".join(struct.pack("!i", len(type.pack(x))) + type.pack(x) for x in (one, two)) + struct.pack("!i", -1)
        whole = struct.pack("!iiiii", 1, 1, type.oid, 3, 1) + packed
        for oid in (type.array, 0):
            yield f"{k} = ANY ($1)", ((oid, whole, 1),)
    if type.oid in (21, 23, 20, 1700):
        for oid, value in ((21, struct.pack("!h", 7)), (23, struct.pack("!i", 7)), (20, struct.pack("!q", 7)), (701, struct.pack("!d", 7.0)), (700, struct.pack("!f", 7.5))):
            yield f"{k} = $1", ((oid, value, 1),)
            yield f"{k} < $1", ((oid, value, 1),)
            yield f"{k} = $1::bigint", ((oid, value, 1),)
        for oid, value in ((21, b"7"), (20, b"7"), (1700, b"7.0"), (1700, b"7.5"), (701, b"7"), (25, b"7"), (1043, b"7"), (20, b"99999999999")):
            yield f"{k} = $1", ((oid, value, 0),)
            yield f"{k} > $1", ((oid, value, 0),)
            yield f"{k} = $1::bigint", ((oid, value, 0),)
            yield f"{k} = $1 + 0", ((oid, value, 0),)
    if type.oid in (25, 1043):
        for oid in (25, 1043, 1042, 19, 705):
            yield f"{k} = $1", ((oid, b"ab", 0),)
            yield f"{k} = $1", ((oid, b"ab ", 0),)
            yield f"{k} = $1::text", ((oid, b"ab", 0),)
            yield f"{k} = lower($1)", ((oid, b"AB", 0),)


def array_text(type, values):
    parts = ["NULL" if v is None else '"' + v.replace("\\", "\\\\").replace('"', '\\"') + '"' for v in values]
    return "{" + ",".join(parts) + "}"


QUERIES = [
    "SELECT k, n, v FROM {a} WHERE {p}",
    "SELECT count(*) FROM {a} WHERE {p}",
    "SELECT s.k, s.n FROM (SELECT * FROM {a}) s WHERE {p}",
    "WITH c AS (SELECT k, n FROM {a}) SELECT * FROM c WHERE {p}",
    "WITH c AS MATERIALIZED (SELECT k, n FROM {a} WHERE {p}) SELECT count(*) FROM c",
    "SELECT k, n FROM {a}_view WHERE {p}",
    "SELECT k, n FROM {a}_over WHERE {p}",
    "SELECT k, n FROM (SELECT k, n FROM {a} UNION ALL SELECT k, n FROM {b}) u WHERE {p}",
    "SELECT k, n FROM {a} WHERE {p} EXCEPT SELECT k, n FROM {b}",
    "SELECT x.n, y.k FROM {a} x LEFT JOIN {b} y ON y.k = x.k AND y.n = x.n AND {py}",
    "SELECT x.n, y.k FROM {a} x LEFT JOIN {b} y ON y.k = x.k AND y.n = x.n AND {px}",
    "SELECT x.n, y.k FROM {a} x LEFT JOIN {b} y ON y.k = x.k AND y.n = x.n WHERE {py}",
    "SELECT x.n, y.n FROM {a} x RIGHT JOIN {b} y ON y.k = x.k AND y.n = x.n AND {px}",
    "SELECT x.k, y.k FROM {a} x FULL JOIN {b} y ON y.k = x.k AND y.n = x.n WHERE {py}",
    "SELECT x.k, y.k FROM {a} x FULL JOIN {b} y ON y.k = x.k AND y.n = x.n AND {px}",
    "SELECT k, n FROM {a} x JOIN {b} y USING (k, n) WHERE {p}",
    "SELECT k, n FROM {a} x NATURAL LEFT JOIN {b} y WHERE {p}",
    "SELECT count(k) FROM {a} x FULL JOIN {b} y USING (k, n) WHERE {p}",
    "SELECT n FROM {a} x WHERE EXISTS (SELECT 1 FROM {b} y WHERE y.k = x.k AND {py})",
    "SELECT n FROM {a} x WHERE NOT EXISTS (SELECT 1 FROM {b} y WHERE y.k = x.k AND {py})",
    "SELECT n FROM {a} x WHERE n = (SELECT max(y.n) FROM {b} y WHERE y.k = x.k AND {px})",
    "SELECT x.n, l.n FROM {a} x LEFT JOIN LATERAL (SELECT y.n FROM {b} y WHERE y.k = x.k AND {px} ORDER BY n LIMIT 1) l ON true",
    "SELECT k, sum(n), grouping(k) FROM {a} WHERE {p} GROUP BY ROLLUP (k)",
    "SELECT k, sum(n) FROM {a} GROUP BY k HAVING {pk}",
    "SELECT k, n FROM {a} WHERE k IN (SELECT k FROM {b} WHERE {p})",
    "SELECT DISTINCT ON (k) k, n FROM {a} WHERE {p} ORDER BY k, n",
    "SELECT k, n, rank() OVER (PARTITION BY k ORDER BY n) FROM {a} WHERE {p}",
    "SELECT * FROM (SELECT k, n, rank() OVER (ORDER BY k, n) FROM {a}) w WHERE {p}",
    "SELECT * FROM (SELECT k, n FROM {a} ORDER BY k, n LIMIT 3) w WHERE {p}",
]
WRITES = [
    "UPDATE {a} SET v = v || 'x' WHERE {p} RETURNING k, n, v",
    "DELETE FROM {a} WHERE {p} RETURNING n",
    "UPDATE {a} x SET v = y.v FROM {b} y WHERE y.k = x.k AND y.n = x.n AND {py}",
    "DELETE FROM {a} x USING {b} y WHERE y.k = x.k AND {px}",
    "SELECT k, n FROM {a} WHERE {p} FOR UPDATE",
    "INSERT INTO {b} (k, n, v) SELECT k, n + 10, v FROM {a} WHERE {p}",
]


class Asked:
    def __init__(self, text, parameters):
        self.text, self.parameters, self.ordered = text, parameters, False


def statements(type, wide):
    a, b = f"{type.name}_a", f"{type.name}_b"
    forms = [(x, False) for x in QUERIES] + [(x, True) for x in WRITES]
    for number, (text, parameters) in enumerate(predicates(type)):
        # `text` names k and n; the same with an alias before them.
        at = lambda alias: re.sub(r"(?<![\w'$.\\])([kn])(?![\w'(])", rf"{alias}.\1", text)  # noqa: E731
        values = {"a": a, "b": b, "p": text, "px": at("x"), "py": at("y"), "pk": text if "n" not in re.findall(r"\b\w+\b", text) else "k IS NOT NULL"}
        # Each predicate in the plainest query, and in some of the other statements by turns.
        chosen = forms if wide else [forms[0], *(forms[(number * 5 + i * 7) % len(forms)] for i in range(3))]
        for form, writes in dict.fromkeys(chosen):
            yield Asked(form.format(**values), parameters), writes
    # What is stored: each spelling as the key of a new row.
    v = type.values[1]
    for n, value in enumerate([*(quoted(x) for x in type.values), *type.others]):
        yield Asked(f"INSERT INTO {a} (k, n, v) VALUES ({value}, {100 + n}, 'new') RETURNING k, n", ()), True
        yield Asked(f"INSERT INTO {a} SELECT {value}, {100 + n}", ()), True
        yield Asked(f"INSERT INTO {a} (n, k) VALUES ({100 + n}, {value}), ({200 + n}, {quoted(v)})", ()), True
        yield Asked(f"INSERT INTO {a} (k, n) VALUES ({quoted(v)}, 1) ON CONFLICT (k, n) DO UPDATE SET v = {quoted(str(n))} RETURNING v", ()), True
        yield Asked(f"UPDATE {a} SET k = {value} WHERE k = {quoted(v)}", ()), True
    for oid in (type.oid, 0):
        yield Asked(f"INSERT INTO {a} (k, n) VALUES ($1, $2) RETURNING k", ((oid, v.encode(), 0), (23, b"77", 0))), True
        yield Asked(f"INSERT INTO {a} (k, n) VALUES ($1, 78), ({quoted(type.values[-1])}, 78) RETURNING k", ((oid, v.encode(), 0),)), True
        yield Asked(f"INSERT INTO {a} (k, n) VALUES ($1::{type.sql}, 79) RETURNING k", ((oid, v.encode(), 0),)), True
        yield Asked(f"INSERT INTO {a} (k, n) SELECT $1, 80", ((oid, v.encode(), 0),)), True
        if type.pack:
            yield Asked(f"INSERT INTO {a} (k, n) VALUES ($1, 81) RETURNING k", ((oid, type.pack(v), 1),)), True
    if type.oid in (21, 23, 20, 1700, 25, 1043):
        for oid, value, binary in ((23, struct.pack("!i", 7), 1), (20, struct.pack("!q", 7), 1), (21, b"7", 0), (25, b"7", 0), (1043, b"7", 0), (1700, b"7.4", 0), (701, b"7.5", 0), (0, b"7", 0)):
            yield Asked(f"INSERT INTO {a} (k, n) VALUES ($1, 82) RETURNING k", ((oid, value, binary),)), True
            yield Asked(f"INSERT INTO {a} (k, n) VALUES ($1 + 1, 83) RETURNING k", ((oid, value, binary),)), True
            yield Asked(f"INSERT INTO {a} (k, n) VALUES ($1::text::{type.sql}, 84) RETURNING k", ((oid, value, binary),)), True
    yield Asked(f"INSERT INTO {a} (k, n) VALUES (NULL, 1)", ()), True
    yield Asked(f"INSERT INTO {a} (n) VALUES (1)", ()), True


# Types of which there are two maps: equal keys lie in different places.
ACROSS = [("int", "inth"), ("intl", "int"), ("num", "numh"), ("text", "texth"), ("textl", "textd"), ("uuid", "uuidh"), ("tz", "tzh")]


def across(one, other):
    """Each query with its two tables from two maps."""
    v = [quoted(value) for value in one.values]
    for form in QUERIES + WRITES:
        for first, second in ((one, other), (other, one)):
            for text in (f"@k = {v[1]}", f"@k <> {v[1]}", f"@k IN ({v[0]}, {v[-1]}) AND @n > 0", "@n < 5"):
                values = {"a": f"{first.name}_a", "b": f"{second.name}_b", "p": text.replace("@", ""), "px": text.replace("@", "x."), "py": text.replace("@", "y."),
                          "pk": "k IS NOT NULL"}
                yield Asked(form.format(**values), ()), form in WRITES
    for text in ("SELECT n FROM {a} WHERE k IN (SELECT k FROM {b})", "SELECT n FROM {a} WHERE k NOT IN (SELECT k FROM {b})", "SELECT count(*) FROM {a} WHERE (k, n) IN (SELECT k, n FROM {b})",
                 "SELECT n, (SELECT count(*) FROM {b} y WHERE y.k = x.k) FROM {a} x", "SELECT n FROM {a} x WHERE k = ANY (SELECT k FROM {b} y WHERE y.n = x.n)",
                 "DELETE FROM {a} WHERE k IN (SELECT k FROM {b})", "UPDATE {a} x SET v = 'u' WHERE EXISTS (SELECT 1 FROM {b} y WHERE y.k = x.k)"):
        for first, second in ((one, other), (other, one)):
            yield Asked(text.format(a=f"{first.name}_a", b=f"{second.name}_b"), ()), not text.startswith("SELECT")


def ask(connection, asked):
    text = asked.text.encode()
    if asked.parameters:
        oids, values, formats = zip(*asked.parameters)
        result = connection.exec_params(text, list(values), list(oids), list(formats))
    else:
        result = connection.exec_(text)
    if result.status in (pq.ExecStatus.FATAL_ERROR, pq.ExecStatus.BAD_RESPONSE):
        state = result.error_field(pq.DiagnosticField.SQLSTATE)
        message = result.error_field(pq.DiagnosticField.MESSAGE_PRIMARY)
        return "error", (state or b"").decode(), (message or b"").decode()
    columns = [(result.fname(i), result.ftype(i)) for i in range(result.nfields)]
    rows = [tuple(result.get_value(r, c) for c in range(result.nfields)) for r in range(result.ntuples)]
    rows.sort(key=lambda row: [(value is None, value or b"") for value in row])
    return "rows", (result.command_status, columns, rows), ""


class Trial:
    def __init__(self, cluster, program, root, shards, types):
        self.types, self.shards = types, shards
        databases = [f"k{shards}_s{i + 1}" for i in range(shards)]
        with cluster.admin("postgres") as admin:
            for database in [f"k{shards}_plain", *databases]:
                admin.execute(f"CREATE DATABASE {database} OWNER {USER}")
        self.router = Kintsugi(program, cluster, root, f"keys{shards}", sections={"map": {"store": f"sqlite:keys{shards}.db"}},
                               users=[{"name": USER, "password": PASSWORD, "admin": True}], store=True)
        self.plain = connect(cluster.port, f"k{shards}_plain")
        self.routed = connect(self.router.port, "app")
        for i, database in enumerate(databases):
            self.own(f"CREATE SHARD s{i + 1} DSN 'host=127.0.0.1 port={cluster.port} dbname={database} user={USER} password={PASSWORD}'")
        for type in types:
            self.make(type)

    def own(self, text):
        run_script(self.routed, text)

    def make(self, type):
        count = min(self.shards, len(type.values))
        if type.kind == "HASH":
            self.own(f"CREATE SHARD MAP {type.name} BY HASH ({type.sql}) SHARDLETS {2 * self.shards}")
        else:
            self.own(f"CREATE SHARD MAP {type.name} BY {type.kind} ({type.sql})")
        for i in range(count if type.kind == "RANGE" else 0):
            at = [type.values[len(type.values) * j // count] for j in (i, min(i + 1, count - 1))]
            low = "MINVALUE" if i == 0 else quoted(at[0])
            high = "MAXVALUE" if i == count - 1 else quoted(at[1])
            self.own(f"CREATE SHARDLET {type.name}_{i} OF {type.name} FOR VALUES FROM ({low}) TO ({high}) ON SHARD s{i + 1}")
        for i in range(count if type.kind == "LIST" else 0):
            # 'nothing' and the like have no shardlet: KG001, where PostgreSQL finds nothing. Not compared.
            values = ", ".join(quoted(value) for value in type.values[i::count])
            self.own(f"CREATE SHARDLET {type.name}_{i} OF {type.name} FOR VALUES IN ({values}) ON SHARD s{i + 1}")
        for name in ("a", "b"):
            ddl = f"CREATE TABLE {type.name}_{name} (k {type.column} NOT NULL, n int NOT NULL, v text DEFAULT 'd', PRIMARY KEY (k, n))"
            run_script(self.plain, ddl)
            self.own(f"{ddl} SHARD BY {type.name} (k)")
            every = type.values if name == "a" else type.values[::2]
            rows = ", ".join(f"({quoted(value)}, {n}, {quoted(name)})" for value in every for n in (1, 2))
            for connection in (self.plain, self.routed):
                run_script(connection, f"INSERT INTO {type.name}_{name} VALUES {rows}")
        for connection in (self.plain, self.routed):
            run_script(connection, f"CREATE VIEW {type.name}_a_view AS SELECT n, k, v FROM {type.name}_a")
            run_script(connection, f"CREATE VIEW {type.name}_a_over AS SELECT k, n FROM {type.name}_a_view WHERE n < 3")

    def run(self, type, all):
        trouble, refused, compared = [], collections.Counter(), 0
        for asked, writes in all:
            answers = []
            for connection in (self.plain, self.routed):
                if writes:
                    connection.exec_(b"BEGIN")
                answers.append(ask(connection, asked))
                if writes:
                    if answers[-1][0] == "rows":
                        for table in re.findall(r"\b[a-z0-9]+_[ab]\b", asked.text):
                            answers[-1] += (ask(connection, Asked(f"SELECT k, n, v FROM {table}", ())),)
                    connection.exec_(b"ROLLBACK")
            if self.routed.status != pq.ConnStatus.OK:
                raise RuntimeError(f"the connection is lost at {asked.text}\n{self.router.log_tail(30)}")
            plain, routed = answers
            compared += 1
            if routed[1] == "0A000" and plain[1] != "0A000":
                refused[routed[2]] += 1
                if os.environ.get("KINTSUGI_VERBOSE"):
                    print(f"  refused {asked.text} {asked.parameters}: {routed[2]}")
            elif routed[1] == "KG001" and type.kind == "LIST" or routed[1] == "KG003" and plain[1] in ("23502", "22P02"):
                continue
            elif not same(plain, routed) or plain[3:] != routed[3:]:
                trouble.append((asked, plain, routed))
        return trouble, refused, compared

    def close(self):
        self.plain.finish()
        self.routed.finish()
        self.router.stop()

    def taken(self):
        """Keys that would be something else than what is written: taken all the same."""
        if "num" not in [type.name for type in self.types]:
            return []
        return [text for text in ("CREATE TABLE odd (k numeric(10,2) PRIMARY KEY) SHARD BY num (k)", "CREATE TABLE odd (a int, k numeric GENERATED ALWAYS AS (a * 2) STORED) SHARD BY num (k)",
                                  "CREATE TABLE odd (k numeric, b int) INHERITS (num_a)", "CREATE DOMAIN odd AS numeric(5,1); CREATE TABLE odd2 (k odd) SHARD BY num (k)")
                if ask(self.routed, Asked(text, ()))[0] != "error"]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--type", action="append")
    parser.add_argument("--wide", action="store_true", help="each predicate in each statement")
    arguments = parser.parse_args()
    types = [type for type in TYPES if not arguments.type or type.name in arguments.type]
    root = scratch_directory("kintsugi-keys-")
    program = os.environ["KINTSUGI_PROGRAM"]
    cluster = Cluster(root, settings={"max_prepared_transactions": 100, "wal_level": "logical"})
    failed = 0
    try:
        for shards in map(int, os.environ.get("KINTSUGI_SHARDS", "3").split()):
            trial = Trial(cluster, program, root, shards, types)
            named = {type.name: type for type in types}
            work = [(type.name, type, statements(type, arguments.wide)) for type in types]
            work += [(f"{a} and {b}", named[a], across(named[a], named[b])) for a, b in ACROSS if a in named and b in named]
            for name, type, all in work:
                began = time.monotonic()
                trouble, refused, compared = trial.run(type, all)
                failed += len(trouble)
                print(f"{shards} shards, {name}: {compared} statements, {refused.total()} refused, {len(trouble)} differ ({time.monotonic() - began:.1f} s)",
                      flush=True)
                for asked, plain, routed in trouble:
                    print(f"  DIFFERS {asked.text} {asked.parameters or ''}\n    plain  {show(plain)}\n    routed {show(routed)}")
                for why, count in refused.most_common():
                    print(f"  refused {count}: {why}")
            for text in trial.taken():
                failed += 1
                print(f"  TAKEN {text}")
            trial.close()
    finally:
        cluster.stop()
        shutil.rmtree(root, ignore_errors=True)
    print("FAILED" if failed else "passed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
