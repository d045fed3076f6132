"""The protocol by hand: what drivers never send, or send once a year. PostgreSQL's own answer is the expectation."""

import random
import re
import socket
import struct

from harness import check, main, memory_kb, scaled, scenario
from postgres import DATABASE, OTHER, PASSWORD, USER, wait_until
from protocol import (
    CANCEL_REQUEST,
    FLUSH,
    GSS_REQUEST,
    SSL_REQUEST,
    SYNC,
    TERMINATE,
    Closed,
    RawClient,
    bind,
    close,
    describe,
    execute,
    logged_in,
    message,
    parse,
    query,
    startup,
)


def raw(function=None, **options):
    """A scenario over a raw socket: messages are compared by the notes."""
    return (
        scenario(function, wire=False, **options) if function else lambda f: scenario(f, wire=False, **options)
    )


@raw
def extended_query_by_hand(run):
    with logged_in(run) as c:
        for pieces in (
            [parse("", "SELECT $1::int + 1 AS n"), describe("S", ""), SYNC],
            [bind("", "", [b"41"]), describe("P", ""), execute(), SYNC],
            [
                parse("a", "SELECT generate_series(1, $1)", [23]),
                bind("p", "a", [struct.pack(">i", 10)], [1], [1]),
                execute("p", 3),
                execute("p", 3),
                execute("p", 0),
                execute("p", 0),
                close("P", "p"),
                SYNC,
            ],
            [bind("p", "a", [b"3"]), execute("p", 1), SYNC, execute("p", 1), SYNC],
            [query("BEGIN")],
            [bind("p", "a", [b"5"]), execute("p", 2), SYNC],
            [execute("p", 2), SYNC],
            [close("P", "p"), SYNC],
            [execute("p", 2), SYNC],
            [query("ROLLBACK")],
            [parse("a", "SELECT 2"), SYNC],
            [close("S", "a"), SYNC],
            [close("S", "a"), SYNC],
            [bind("", "a"), SYNC],
            [parse("a", "SELECT 2"), bind("", "a"), execute(), SYNC],
            [parse("e", ""), bind("", "e"), describe("P", ""), execute(), SYNC],
            [parse("i", "INSERT INTO nowhere VALUES (1)"), bind("", "i"), execute(), SYNC],
            [parse("two", "SELECT 1; SELECT 2"), SYNC],
            [parse("", "SELECT $1", [25]), bind("", "", [None]), execute(), SYNC],
            [bind("", "", [b"a", b"b"]), execute(), SYNC],
            [bind("", "", []), SYNC],
            [parse("", "SELECT 1/0"), bind("", ""), execute(), parse("never", "SELECT 1"), SYNC],
            [describe("S", "never"), SYNC],
            [describe("P", "absent"), SYNC],
            [describe("S", "absent"), SYNC],
            [execute("absent"), SYNC],
            [SYNC, SYNC],
            [query("")],
            [query(" ; ;")],
            [query("SELECT 1;;SELECT 2")],
        ):
            c.send(*pieces)
            lines = c.until_ready()
            if pieces == [SYNC, SYNC]:
                lines += c.until_ready()
            run.note(lines)


@raw
def flush_without_sync(run):
    with logged_in(run) as c:
        c.send(parse("f", "SELECT 7 AS seven"), FLUSH)
        run.note(c.read())
        c.send(describe("S", "f"), FLUSH)
        run.note(c.read(), c.read())
        c.send(bind("", "f"), execute(), FLUSH)
        run.note([c.read() for _ in range(3)])
        c.send(bind("", "missing"), FLUSH)
        kind, _ = c.read()
        run.note(kind)
        c.send(bind("", "f"), execute(), parse("g", "SELECT 1"))
        run.note(c.ask(SYNC), c.ask(bind("", "f"), execute(), SYNC))


@raw
def pipelines_of_many_transactions(run):
    with logged_in(run) as c:
        run.note(c.ask(query("CREATE TABLE t (i int PRIMARY KEY)")))
        c.send(parse("ins", "INSERT INTO t VALUES ($1)", [23]), SYNC)
        run.note(c.until_ready())
        burst = b""
        for i in range(scaled(300, 50)):
            burst += bind("", "ins", [b"%d" % (i if i % 50 else 1)]) + execute() + SYNC
        c.send(burst)
        for _ in range(scaled(300, 50)):
            run.note(c.until_ready())
        c.send(
            query("BEGIN"),
            bind("", "ins", [b"1000"]),
            execute(),
            SYNC,
            query("SELECT 1 / 0"),
            query("SELECT 1"),
            bind("", "ins", [b"1001"]),
            execute(),
            SYNC,
            query("ROLLBACK"),
            query("SELECT count(*) FROM t"),
        )
        for _ in range(7):
            run.note(c.until_ready())
        c.send(query("BEGIN"), query("INSERT INTO t VALUES (2000)"), query("COMMIT"), TERMINATE)
        for _ in range(3):
            run.note(c.until_ready())
        run.note(c.is_closed())


@raw
def simple_query_inside_an_extended_one(run):
    with logged_in(run) as c:
        c.send(parse("x", "SELECT 1"), query("SELECT 2"), bind("", "x"), execute(), SYNC)
        run.note(c.until_ready(), c.until_ready())
        c.send(parse("bad", "SELEC"), query("SELECT 3"), SYNC)
        run.note(c.until_ready())


@raw
def copy_by_hand(run):
    with logged_in(run) as c:
        run.note(c.ask(query("CREATE TABLE c (i int)")))
        c.send(query("COPY c FROM STDIN"))
        run.note(c.read())
        c.send(message("d", b"1\n2"), message("d", b"\n3"), FLUSH, SYNC, message("d", b"\n"), message("c"))
        run.note(c.until_ready())
        c.send(query("COPY c FROM STDIN"))
        run.note(c.read(), c.ask(message("f", b"not now\0")))
        c.send(parse("", "COPY c FROM STDIN"), bind("", ""), execute(), SYNC)
        run.note([c.read()[0] for _ in range(3)])
        c.send(message("d", b"7\n"), message("c"), SYNC)
        run.note(c.until_ready())
        c.send(query("COPY c FROM STDIN"))
        c.read()
        run.note(c.ask(message("c")))
        run.note(
            c.ask(message("d", b"stray"), message("c"), message("f", b"x\0"), query("SELECT count(*) FROM c"))
        )
        run.note(
            c.ask(query("COPY c TO STDOUT; SELECT 5; COPY c FROM STDIN"), message("d", b"9\n"), message("c"))
        )
        run.note(c.ask(query("SELECT sum(i) FROM c")))
        c.send(query("COPY c FROM STDIN"), message("d", b"oops\n"), message("d", b"8\n"), message("c"))
        run.note(c.until_ready(), c.ask(query("SELECT count(*) FROM c")))


@raw
def copy_interrupted_by_a_query(run):
    with logged_in(run) as c:
        c.ask(query("CREATE TABLE c (i int)"))
        c.send(query("COPY c FROM STDIN"))
        run.note(c.read())
        c.send(query("SELECT 1"))
        run.note(c.until_ready())


@raw
def copy_abandoned_by_the_client(run):
    c = logged_in(run)
    c.ask(query("CREATE TABLE c (i int)"))
    c.send(query("COPY c FROM STDIN"))
    c.read()
    c.send(message("d", b"1\n" * 1000))
    c.socket.close()
    with logged_in(run) as d:
        wait_until(
            "the copy to end",
            lambda: d.ask(
                query("SELECT count(*) FROM pg_stat_activity WHERE query LIKE 'COPY c%' AND state = 'active'")
            )[1]
            == "D b'\\x00\\x01\\x00\\x00\\x00\\x010'",
        )
        run.note(d.ask(query("SELECT count(*) FROM c")))


def malformed():
    yield "length below four", b"Q" + struct.pack(">I", 3) + b"x"
    yield "length zero", b"Q" + struct.pack(">I", 0)
    yield "length negative", b"Q\xff\xff\xff\xff"
    yield "length enormous", b"Q\x7f\xff\xff\xff"
    yield "unknown type", message("?", b"abc")
    yield "type zero", message("\0", b"abc")
    yield "query without its zero", message("Q", b"SELECT 1")
    yield "query with bytes after its zero", message("Q", b"SELECT 1\0 more\0")
    yield "empty query body", message("Q", b"")
    yield "parse without types", message("P", b"n\0SELECT 1\0")
    yield "parse with too many types", message("P", b"n\0SELECT 1\0\x00\x05\x00\x00\x00\x17")
    yield "parse with negative types", message("P", b"n\0SELECT 1\0\xff\xff")
    yield "bind cut short", message("B", b"\0\0\0\0\0\x01\0\0\0\x09abc")
    yield "bind with trailing bytes", bind("", "")[:-2] + b""
    yield "bind with negative length", message("B", b"\0\0\0\0\0\x01\xff\xff\xff\xfe\0\0")
    yield "execute without a limit", message("E", b"\0")
    yield "describe of what", message("D", b"Xname\0")
    yield "close of what", message("C", b"Xname\0")
    yield "describe empty", message("D", b"")
    yield "sync with a body", message("S", b"x")
    yield "password out of place", message("p", b"secret\0")
    yield "server's message", message("Z", b"I")


@check(seconds=120)
def malformed_is_fatal(stage):
    """FATAL 08P01 and a closed connection. What is wrong inside Bind's values may be left to PostgreSQL to refuse."""
    system = stage.system()
    with logged_in(system) as witness:
        for name, data in malformed():
            with logged_in(system) as c:
                c.send(data)
                if name.startswith("bind"):
                    try:
                        c.send(SYNC)
                    except Closed:
                        pass
                c.socket.shutdown(socket.SHUT_WR)
                lines = c.until_ready()
                if name == "length enormous" and lines == ["closed"]:
                    continue  # it waited for the rest, and the end came
                fatal = any(line.startswith("E FATAL 08P01") for line in lines) and lines[-1] == "closed"
                left = name.startswith("bind") and any(line.startswith("E ERROR") for line in lines)
                assert fatal or left, (name, lines)
            assert witness.ask(query("SELECT 1"))[-1] == "Z b'I'"


@raw
def half_messages_and_vanishing_clients(run):
    whole = parse("", "SELECT 1") + bind("", "") + execute() + SYNC
    for cut in range(1, len(whole), 3):
        c = logged_in(run)
        c.send(whole[:cut])
        c.socket.close()
    first = startup(user=USER, database=DATABASE)
    for cut in range(0, len(first), 5):
        c = RawClient("127.0.0.1", run.port)
        c.send(first[:cut])
        c.socket.close()
    with logged_in(run) as c:
        for i in range(len(whole)):  # byte by byte
            c.send(whole[i : i + 1])
        run.note(c.until_ready())


@raw
def initial_packets(run):
    cases = [
        ("length too small", [struct.pack(">I", 4)]),
        ("length zero", [struct.pack(">I", 0)]),
        ("length too large", [struct.pack(">II", 100000, 196608)]),
        ("version 2", [startup((2, 0), user="x")]),
        ("version 4", [startup((4, 0), user="x")]),
        ("version 1234.1", [struct.pack(">II", 8, (1234 << 16) + 1)]),
        ("no user", [startup(database="app")]),
        ("garbage", [b"GET / HTTP/1.0\r\n\r\n"]),
        ("no terminator", [struct.pack(">IHH", 8 + 6, 3, 0) + b"user\0x"]),
    ]
    for name, pieces in cases:
        with RawClient("127.0.0.1", run.port) as c:
            c.send(*pieces)
            c.socket.shutdown(socket.SHUT_WR)
            lines = c.until_ready()
            # PostgreSQL closes without a word where it doubts that the other side speaks its protocol at all; the
            # router says FATAL 08P01 (or 0A000 for a version) and closes.
            mute = name.startswith(("length", "garbage", "version 2"))
            answers = [line.split()[:3] for line in lines[:-1]]
            if mute:
                assert answers in ([], [["E", "FATAL", "08P01"]], [["E", "FATAL", "0A000"]]), (name, lines)
            run.note(name, lines[-1], [] if mute else answers)


@raw
def version_negotiation(run):
    for version, extra in (
        ((3, 2), {}),
        ((3, 1), {}),
        ((3, 99), {}),
        ((3, 0), {"_pq_.unknown": "1"}),
        ((3, 2), {"_pq_.one": "1", "_pq_.two": "2"}),
    ):
        with RawClient("127.0.0.1", run.port) as c:
            refused = c.login(version=version, **extra)
            run.note(version, refused, c.said, c.ask(query("SELECT 1")))


@raw
def tls_refused_where_there_is_none(run):
    with RawClient("127.0.0.1", run.port) as c:
        c.send(struct.pack(">II", 8, SSL_REQUEST))
        run.note(c.exactly(1), c.login(), c.ask(query("SELECT 1")))


@check
def gss_encryption_is_declined(stage):
    with RawClient("127.0.0.1", stage.system().port) as c:
        c.send(struct.pack(">II", 8, GSS_REQUEST))
        assert c.exactly(1) == b"N"
        c.send(struct.pack(">II", 8, SSL_REQUEST))
        assert c.exactly(1) == b"N"
        assert c.login() is None and c.ask(query("SELECT 1"))[-1] == "Z b'I'"
    with RawClient("127.0.0.1", stage.system().port) as c:
        c.send(struct.pack(">II", 8, GSS_REQUEST), struct.pack(">II", 8, GSS_REQUEST))
        c.socket.shutdown(socket.SHUT_WR)
        c.is_closed()


@raw(noise=False)
def logins_refused(run):
    for options in (
        dict(password="wrong"),
        dict(user="nobody", password="x"),
        dict(user="nobody", password=PASSWORD),
        dict(user=OTHER, password=PASSWORD),
        dict(user=""),
        dict(user="x" * 500, password="x"),
    ):
        with RawClient("127.0.0.1", run.port) as c:
            lines = c.login(**options)
            # PostgreSQL cuts a name at 63 bytes.
            said = [
                re.sub(f"{options['user']}|x{{63,}}", "USER", line) if options.get("user") else line
                for line in lines
            ]
            run.note(options.get("user", "wrong password")[:10], said)
    with RawClient("127.0.0.1", run.port) as c:
        run.note([line[:80] for line in c.login(database="nowhere")])


@check
def an_unknown_user_looks_like_a_wrong_password(stage):
    system = stage.system()
    seen = []
    for options in (dict(password="wrong"), dict(user="nobody", password="wrong")):
        with RawClient("127.0.0.1", system.port) as c:
            seen.append(
                [line.replace("nobody", "USER").replace(f'"{USER}"', '"USER"') for line in c.login(**options)]
            )
    assert seen[0] == seen[1] and "28P01" in seen[0][0], seen
    salts = set()
    for _ in range(3):  # the same salt for the same unknown name, as for a real one
        with RawClient("127.0.0.1", system.port) as c:
            c.send(startup(user="nobody", database=DATABASE))
            assert c.read()[0] == "R"
            first = b"n,,n=,r=abcdefgh"
            c.send(message("p", b"SCRAM-SHA-256\0" + struct.pack(">I", len(first)) + first))
            kind, body = c.read()
            fields = dict(part.split(b"=", 1) for part in body[4:].split(b","))
            salts.add((fields[b"s"], fields[b"i"]))
    assert len(salts) == 1, "an unknown user's salt changes from try to try: that tells it from a real one"


@check
def scram_sent_wrongly(stage):
    system = stage.system()
    for payload in (
        b"",
        b"SCRAM-SHA-256\0",
        b"SCRAM-SHA-1\0\0\0\0\x05n,,n=",
        b"SCRAM-SHA-256\0\0\0\0\x03y,,",
        b"SCRAM-SHA-256\0\x7f\xff\xff\xffn,,n=,r=x",
        b"SCRAM-SHA-256-PLUS\0\0\0\0\x0ap=x,,n=,r=a",
        b"SCRAM-SHA-256\0\xff\xff\xff\xff",
        b"SCRAM-SHA-256\0\0\0\0\x0bn,,n=,r=\xff\xfe\xfd",
    ):
        with RawClient("127.0.0.1", system.port) as c:
            c.send(startup(user=USER, database=DATABASE))
            c.read()
            c.send(message("p", payload))
            try:
                kind, body = c.read()
                if kind == "R":  # an acceptable first message: spoil the last one
                    c.send(message("p", b"c=biws,r=wrong,p=AAAA"))
                    kind, body = c.read()
                assert kind == "E" and (b"C28" in body or b"C08P01" in body), (payload, kind, body)
            except Closed:
                pass
            assert c.is_closed()
    for early in (
        query("SELECT 1"),
        parse("", "SELECT 1") + SYNC,
        message("p", b"x" * 100000),
        b"p\x7f\xff\xff\xff",
    ):
        with RawClient("127.0.0.1", system.port) as c:
            c.send(startup(user=USER, database=DATABASE))
            c.read()
            c.send(early)
            c.socket.shutdown(socket.SHUT_WR)
            lines = c.until_ready()
            assert lines[-1] == "closed" and not any(line.startswith(("T", "D", "Z")) for line in lines), (
                early[:20],
                lines,
            )


@check
def function_call_is_refused(stage):
    with logged_in(stage.system()) as c:
        lines = c.ask(message("F", struct.pack(">IHHH", 2026, 0, 0, 0)))  # pg_backend_pid()
        assert any(line.startswith("E ERROR 0A000") for line in lines) and lines[-1] == "Z b'I'", lines
        assert c.ask(query("SELECT 1"))[-1] == "Z b'I'"


@raw
def cancel_with_a_wrong_key(run):
    with logged_in(run) as c:
        c.send(query("SELECT pg_sleep(0.5), 'went through'"))
        for pid, secret in ((c.pid, c.secret ^ 1), (c.pid + 100000, c.secret), (0, 0), (2**32 - 1, 2**32 - 1)):
            with RawClient("127.0.0.1", run.port) as d:
                d.send(struct.pack(">IIII", 16, CANCEL_REQUEST, pid & 0xFFFFFFFF, secret))
                run.note(d.is_closed())
        run.note(c.until_ready())
        for bad in (
            struct.pack(">III", 12, CANCEL_REQUEST, 1),
            struct.pack(">IIIII", 20, CANCEL_REQUEST, 1, 2, 3),
        ):
            with RawClient("127.0.0.1", run.port) as d:
                d.send(bad)
                d.socket.shutdown(socket.SHUT_WR)
                run.note(d.is_closed())
        with RawClient("127.0.0.1", run.port) as d:
            d.send(struct.pack(">IIII", 16, CANCEL_REQUEST, c.pid, c.secret))
            run.note(d.is_closed())
        run.note(c.ask(query("SELECT 'alive'")))


@check
def cancel_hits_only_its_own_client(stage):
    """A key that has been idle since must not cancel who has the backend now."""
    system = stage.system()
    with logged_in(system) as a, logged_in(system) as b:
        for turn in range(scaled(40, 10)):
            a.ask(query("SELECT 1"))
            b.send(query(f"SELECT pg_sleep(0.02), {turn}"))
            with RawClient("127.0.0.1", system.port) as d:
                d.send(struct.pack(">IIII", 16, CANCEL_REQUEST, a.pid, a.secret))
            lines = b.until_ready()
            assert not any(line.startswith("E") for line in lines), (turn, lines)


@check(seconds=120)
def random_bytes(stage):
    """Noise instead of a protocol, before and after login; the router lives and answers others."""
    system, dice = stage.system(), random.Random(20260101)
    with logged_in(system) as witness:
        for turn in range(scaled(300, 60)):
            data = bytes(dice.randrange(256) for _ in range(dice.randrange(1, 200)))
            if turn % 3:
                c = logged_in(system)
                if turn % 3 == 2:  # well-formed frames, bodies of noise
                    data = b"".join(
                        message(
                            dice.choice("QPBDECSHdcfFpX"),
                            bytes(dice.randrange(256) for _ in range(dice.randrange(30))),
                        )
                        for _ in range(5)
                    )
            else:
                c = RawClient("127.0.0.1", system.port)
            try:
                c.send(data)
                c.socket.shutdown(socket.SHUT_WR)
                c.is_closed()
            except (Closed, OSError):
                pass
            c.socket.close()
            if turn % 20 == 0:
                assert witness.ask(query("SELECT 1"))[-1] == "Z b'I'"


@check
def a_message_above_the_limit(stage):
    router = stage.router("extra-limit", sections={"limits": {"max_message": "1MB"}})
    try:
        with logged_in(router) as c:
            before = router.status_kb()
            try:
                c.send(query("SELECT '" + "x" * (8 << 20) + "'"))
            except (Closed, OSError):
                pass
            lines = c.until_ready()
            assert any(
                line.split()[2] in ("53400", "54000", "08P01") for line in lines if line.startswith("E")
            ), lines
            assert lines[-1] == "closed" or lines[-1].startswith("Z"), lines
            assert router.status_kb() - before < memory_kb(6000), "the oversized message was kept"
        with logged_in(router) as c:
            assert c.ask(query("SELECT '" + "x" * 500000 + "'"))[-1] == "Z b'I'"
    finally:
        router.stop()


if __name__ == "__main__":
    main()
