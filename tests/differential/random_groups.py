"""Aggregates, groups and windows, at random."""

from random_from import Sources
from random_kinds import KINDS


class Groups(Sources):
    def aggregate(self, items):
        """(text, kind)."""
        r = self.random
        number = self.expression(self.pick("int", "bigint", "int"), items, self.pick(0, 0, 1))
        any_text, any_kind = self.any_expression(items, 0)
        orderable = any_kind
        if not KINDS[any_kind].extremes:
            any_text, orderable = f"{any_text}::text", "text"
        more_text, more_kind = self.any_expression(items, 0)
        if more_kind == "json":
            more_text = f"{more_text}::text"
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
            (f"array_agg({more_text} ORDER BY {more_text}{self.pick('', ' DESC NULLS LAST', ' NULLS FIRST')})::text", "text"),
            (f"array_agg(DISTINCT {more_text})::text", "text"),
            (f"jsonb_agg({more_text} ORDER BY {more_text})", "jsonb"),
            (f"json_agg({more_text} ORDER BY {more_text})::text", "text"),
            (f"string_agg(DISTINCT {text_value}, '-' ORDER BY {text_value} DESC)", "text"),
            (f"mode() WITHIN GROUP (ORDER BY {text_value} COLLATE \"C\") IS NULL", "boolean"),
            (f"percentile_cont(0.25) WITHIN GROUP (ORDER BY {number}::int)", "float8"),
            (f"percentile_disc(ARRAY[0, 0.5, 1]) WITHIN GROUP (ORDER BY {number}::int DESC)", "ints"),
            (f"rank({self.random.randint(0, 9)}) WITHIN GROUP (ORDER BY {number}::int)", "bigint"),
            (f"dense_rank({self.literal('text')}) WITHIN GROUP (ORDER BY {text_value})", "bigint"),
            (f"count(DISTINCT ({more_text}, {number}))", "bigint"),
            (f"{self.pick('bit_and', 'bit_or', 'bit_xor')}({number}::int)", "int"),
            (f"variance({number}::int)::numeric(12,2)", "numeric"),
            (f"sum({number}::int) / nullif(count({more_text}), 0)", "bigint"),
            (f"max({any_text})::text || min({any_text})::text", "text"),
            (f"coalesce(max({any_text})::text, {self.literal('text')})", "text"),
            (f"sum({self.expression('interval', items, 0)})", "interval"),
            (f"avg({self.expression('interval', items, 0)}) > interval '1 day'", "boolean"),
            (f"sum({self.expression('decimal', items, 0)}) > 3", "boolean"),
            (f"sum({self.expression('real', items, 0)})", "real"),
            (f"sum({self.expression('smallint', items, 0)}::smallint)", "bigint"),
            (f"min({self.expression('textc', items, 1)})", "textc"),
            (f"max({self.expression('varchar', items, 1)})", "text"),
            (f"min({self.expression('bpchar', items, 1)})", "bpchar"),
            (f"{self.pick('min', 'max')}({self.expression('timestamptz', items, 1)})", "timestamptz"),
            (f"{self.pick('min', 'max')}({self.expression('ints', items, 1)})", "ints"),
            (f"{self.pick('min', 'max')}({self.expression('mood', items, 1)})", "mood"),
            (f"{self.pick('min', 'max')}({self.expression('inet', items, 1)})", "inet"),
            (f"regr_count({number}, {number})", "bigint"),
            (f"range_agg(int4range(0, abs({number}::int)))::text", "text"),
            (f"jsonb_object_agg(coalesce({text_value}, '-'), 1)", "jsonb"),
        ]
        text, kind = r.choice(choices)
        simple = text.endswith(")") and "::numeric" not in text[-16:] and text.split("(")[0] in ("count", "sum", "min", "max", "bool_and", "bool_or")
        closed = text.endswith(")") and text.count("(") == text.count(")") and "::" not in text[-16:]
        if (simple or closed and "(count" not in text and "coalesce" not in text[:9] and not text.startswith("round")
                and "nullif" not in text[-40:] and "||" not in text) and self.chance(0.15):
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
            clause = f" GROUP BY {self.pick('', '', '', 'DISTINCT ') if style < 0.3 else ''}{', '.join(names)}"
            if style < 0.18 and not positions:
                whole = ", ".join(groups)
                clause = " GROUP BY " + self.pick(f"ROLLUP ({whole})", f"GROUPING SETS (({whole}), ())", f"CUBE ({whole})",
                                                  f"GROUPING SETS (({whole}), ({groups[0]}), ({groups[-1]}))",
                                                  f"GROUPING SETS (ROLLUP ({whole}), CUBE ({groups[0]}))", f"{groups[0]}, ROLLUP ({groups[-1]})")
                if self.chance(0.5):
                    targets.append(f"grouping({whole}) AS gr")
                    columns.append(("gr", "int"))
        if self.chance(0.25):
            clause += " HAVING " + self.pick("count(*) > 1", "count(*) > 0", "count(*) BETWEEN 1 AND 3",
                                             f"max({self.expression('int', items, 0)}) > {self.literal('int')}",
                                             f"min({self.expression('text', items, 0)}) IS NOT NULL",
                                             f"count(*) > (SELECT count(*) / 20 FROM {self.random.choice(self.world.tables).name})",
                                             f"count(DISTINCT {self.expression('text', items, 0)}) = 1 OR bool_or({self.condition(items, 0)})")
        if groups and self.chance(0.15):
            target, kind = self.over_groups(groups)
            targets.append(f"{target} AS ow")
            columns.append(("ow", kind))
        text = f"SELECT {', '.join(targets)} FROM {from_text}{self.where(items)}{clause}"
        return self.finish(text, columns, top)

    def over_groups(self, groups):
        """A window over the groups: what it says does not depend on how equal rows are ordered."""
        group = self.random.choice(groups)
        return self.pick(("sum(count(*)) OVER ()::numeric(12,2)", "numeric"), (f"rank() OVER (ORDER BY {group})", "bigint"),
                         (f"sum(count(*)) OVER (PARTITION BY {group})::numeric(12,2)", "numeric"), ("dense_rank() OVER (ORDER BY count(*) DESC)", "bigint"),
                         ("count(*) OVER ()", "bigint"), (f"max(max({group}::text)) OVER (ORDER BY {group} ROWS UNBOUNDED PRECEDING) IS NULL", "boolean"))

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
            (f"count(*) OVER ({over}ORDER BY {order} RANGE BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING)", "bigint"),
            (f"sum({number}) OVER ({over}ORDER BY {order} GROUPS BETWEEN 1 PRECEDING AND 1 FOLLOWING EXCLUDE GROUP)", "bigint"),
            (f"count(*) OVER ({over}ORDER BY {number}::int RANGE BETWEEN 2 PRECEDING AND 3 FOLLOWING)", "bigint"),
            (f"max({number}) OVER ({over}ORDER BY {unique} ROWS BETWEEN UNBOUNDED PRECEDING AND 1 FOLLOWING EXCLUDE CURRENT ROW)", "int"),
            (f"ntile(3) OVER ({over}ORDER BY {order}, {unique})", "int"),
            (f"cume_dist() OVER ({over}ORDER BY {order})", "float8"),
            (f"percent_rank() OVER ({over}ORDER BY {order})", "float8"),
            (f"nth_value({first}, 2) OVER ({over}ORDER BY {unique} ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING)", kind),
            (f"lead({number}, 2, 77) OVER ({over}ORDER BY {order}, {unique})", "int"),
            (f"count(*) FILTER (WHERE {self.condition([item], 0)}) OVER ({over.strip()})", "bigint"),
            (f"string_agg({first}::text, ',') OVER ({over}ORDER BY {unique})", "text"),
            (f"avg({number}) OVER ({over.strip()})::numeric(12,2)", "numeric"),
            ("row_number() OVER named", "bigint"), ("sum(id) OVER (named ROWS 2 PRECEDING)", "bigint"),
        ]
        targets = [f"{item.alias}.{name} AS u{i}" for i, name in enumerate(item.unique)]
        columns = [(f"u{i}", dict(item.columns)[name]) for i, name in enumerate(item.unique)]
        for i in range(self.random.randint(1, 2)):
            call, call_kind = self.random.choice(calls)
            targets.append(f"{call} AS w{i}")
            columns.append((f"w{i}", call_kind))
        named = f" WINDOW named AS ({over}ORDER BY {unique})" if any("named" in target for target in targets) else ""
        return self.finish(f"SELECT {', '.join(targets)} FROM {text}{where}{named}", columns, top)
