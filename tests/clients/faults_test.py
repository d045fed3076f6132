"""Unlucky days: servers that restart, backends that are killed, pools that run dry, clients that stop reading.

On the system under test only: what a client must see is said here, statement by statement.
"""
import signal
import socket
import threading
import time

import psycopg

from harness import Run, check, main, scaled
from postgres import OTHER, OTHER_PASSWORD, PASSWORD, USER, wait_until
from protocol import RawClient, logged_in, message, query, startup
from systems import Direct

UNREACHABLE = {"KG005", "08006", "08001", "08003", "57P01", "57P03", "08004"}


class Router:
    """A router of this check alone, stopped at its end."""

    def __init__(self, stage, name, **options):
        self.stage, self.name, self.options = stage, name, options

    def __enter__(self):
        stage_fresh(self.stage)
        self.system = self.stage.router(f"extra-{self.name}", **self.options)
        return self.system

    def __exit__(self, kind, *_):
        if kind:
            print(f"---- the router's log\n{self.system.log_tail(30)}")
            self.system.kill()
        else:
            self.system.stop()


def stage_fresh(stage):
    if not stage.cluster.process:
        stage.cluster.start()
    stage.cluster.fresh_schema()


def connect(stage, system, **options):
    return Run(stage, system, None).connect(**options)


def state_of(action):
    try:
        action()
        return None
    except psycopg.Error as error:
        return error.sqlstate or f"closed: {error}"


def active(stage, mark):
    with stage.cluster.admin() as admin:
        return admin.execute("SELECT pid FROM pg_stat_activity WHERE state = 'active' AND query LIKE %s AND pid <> pg_backend_pid()",
                             [f"%{mark}%"]).fetchall()


def in_background(action):
    result = []
    thread = threading.Thread(target=lambda: result.append(state_of(action)), daemon=True)
    thread.start()

    def finish(seconds=30):
        thread.join(seconds)
        assert not thread.is_alive(), "the statement hangs"
        return result[0]
    return finish


@check
def backend_killed_while_idle(stage):
    """A client never meets a backend that died between its statements: what has not started is tried elsewhere."""
    with Router(stage, "idle-kill") as router, connect(stage, router) as c, stage.cluster.admin() as admin:
        c.execute("SET work_mem = '3MB'")
        c.prepare_threshold = 0
        for turn in range(scaled(20, 5)):
            assert c.execute("SELECT %s::int", [turn]).fetchone() == (turn,)
            admin.execute("SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity WHERE usename = 'app'")
            assert c.execute("SELECT %s::int", [turn]).fetchone() == (turn,), "after the kill"
            assert c.execute("SHOW work_mem").fetchone() == ("3MB",)


@check
def backend_killed_while_running(stage):
    """What may have run is not repeated: the client is told, its connection goes on (or is closed with an error)."""
    with Router(stage, "running-kill") as router, stage.cluster.admin() as admin:
        for turn in range(3):
            c = connect(stage, router)
            c.execute("CREATE TABLE IF NOT EXISTS done (i int)")
            finish = in_background(lambda: c.execute(f"INSERT INTO done SELECT 1 FROM pg_sleep(30) /* victim {turn} */"))
            pid = wait_until("the victim to run", lambda: active(stage, f"victim {turn}"))[0][0]
            admin.execute("SELECT pg_terminate_backend(%s, 5000)", [pid])
            assert finish() in UNREACHABLE, finish()
            with connect(stage, router) as d:
                assert d.execute("SELECT count(*) FROM done").fetchone() == (0,), "the statement ran, or ran again"
            c.close()


@check
def backend_killed_inside_a_transaction(stage):
    """The transaction is lost, and the client is told at once: no later statement may run outside it."""
    with Router(stage, "transaction-kill") as router, stage.cluster.admin() as admin:
        admin.execute("CREATE TABLE public.t (i int); GRANT ALL ON public.t TO app")
        for _ in range(5):
            c = connect(stage, router)
            c.execute("BEGIN")
            c.execute("INSERT INTO t VALUES (1)")
            pid = c.execute("SELECT pg_backend_pid()").fetchone()[0]
            admin.execute("SELECT pg_terminate_backend(%s, 5000)", [pid])
            states = [state_of(lambda: c.execute("INSERT INTO t VALUES (2)")), state_of(lambda: c.execute("COMMIT"))]
            assert states[0] is not None, "a statement of a lost transaction went through"
            c.close()
            assert admin.execute("SELECT count(*) FROM t").fetchone() == (0,)


@check(seconds=120)
def server_restarted_between_statements(stage):
    with Router(stage, "restart") as router, connect(stage, router) as c:
        c.execute("SET work_mem = '3MB'; CREATE TABLE t (i int)")
        c.prepare_threshold = 0
        c.execute("INSERT INTO t VALUES (%s)", [1])
        for mode in ("fast", "immediate"):
            stage.cluster.restart(mode)
            assert c.execute("INSERT INTO t VALUES (%s) RETURNING i", [2]).fetchone() == (2,)
            assert c.execute("SHOW work_mem").fetchone() == ("3MB",)


@check(seconds=120)
def server_restarted_during_statements(stage):
    """Every insert that was confirmed is there, none twice, and everybody goes on afterwards."""
    with Router(stage, "storm", sections={"pool": {"size": 4}}) as router:
        with connect(stage, router) as c:
            c.execute("CREATE TABLE t (worker int, turn int)")
        stop, confirmed, errors = threading.Event(), {}, []

        def work(worker):
            turn = 0
            while not stop.is_set():
                try:
                    with connect(stage, router, connect_timeout=30) as c:
                        while not stop.is_set():
                            turn += 1
                            c.execute(f"INSERT INTO t VALUES ({worker}, {turn})", prepare=bool(turn % 2))
                            confirmed.setdefault(worker, set()).add(turn)
                except psycopg.Error as error:
                    if isinstance(error, psycopg.OperationalError) or error.sqlstate in UNREACHABLE:
                        continue
                    errors.append(f"{error.sqlstate} {error}")
                    return
        threads = [threading.Thread(target=work, args=(w,), daemon=True) for w in range(6)]
        for t in threads:
            t.start()
        for mode in ("fast", "immediate", "fast"):
            before = sum(len(turns) for turns in list(confirmed.values()))
            wait_until("the workers to be at work", lambda: sum(len(t) for t in list(confirmed.values())) > before + 60 or errors, 60)
            stage.cluster.restart(mode)
        before = sum(len(turns) for turns in list(confirmed.values()))
        wait_until("the workers to go on", lambda: sum(len(t) for t in list(confirmed.values())) > before + 60 or errors, 60)
        stop.set()
        for t in threads:
            t.join(40)
            assert not t.is_alive(), "a worker hangs"
        assert not errors, errors
        with stage.cluster.admin() as admin:
            rows = admin.execute("SELECT worker, turn, count(*) FROM t GROUP BY 1, 2").fetchall()
        twice = [row for row in rows if row[2] > 1]
        there = {(row[0], row[1]) for row in rows}
        lost = [(w, t) for w, turns in confirmed.items() for t in turns if (w, t) not in there]
        assert not twice, f"ran twice: {twice[:5]}"
        assert not lost, f"confirmed and lost: {lost[:5]}"  # fsync is off, but the machine does not crash here


@check(seconds=90)
def shard_down_at_login_and_later(stage):
    """The router answers while its shard is away, says so in a bounded time, and recovers by itself."""
    with Router(stage, "down", sections={"pool": {"connect_timeout": "2s", "wait_timeout": "3s"}}) as router:
        with connect(stage, router) as c:
            assert c.execute("SELECT 1").fetchone() == (1,)
            stage.cluster.stop("fast")
            start = time.monotonic()
            state = state_of(lambda: c.execute("SELECT 2"))
            assert state in UNREACHABLE or state.startswith("closed"), state
            assert time.monotonic() - start < 15, "it took too long to say so"
            try:
                psycopg.connect(Run(stage, router, None).conninfo()).execute("SELECT 1")
                raise AssertionError("a statement ran without a server")
            except psycopg.OperationalError as error:
                assert time.monotonic() - start < 30
                assert PASSWORD not in str(error), "a password in an error"
            stage.cluster.start()

            def back():
                try:
                    with connect(stage, router) as d:
                        return d.execute("SELECT 3").fetchone() == (3,)
                except psycopg.OperationalError:
                    return False
            wait_until("the router to find its shard again", back, 30)


@check(seconds=90)
def started_before_its_shard(stage):
    stage_fresh(stage)
    stage.cluster.stop()
    try:
        router = stage.router("extra-early", sections={"pool": {"connect_timeout": "2s", "wait_timeout": "3s"}})
    finally:
        stage.cluster.start()
    try:
        def works():
            try:
                with connect(stage, router) as c:
                    return c.execute("SELECT 1").fetchone() == (1,)
            except psycopg.OperationalError:
                return False
        wait_until("the router to find its shard", works, 30)
    finally:
        router.stop()


@check
def pool_exhausted(stage):
    """A client that waits for a connection waits a bounded time, is told why, and gets one as soon as one is free."""
    with Router(stage, "exhausted", sections={"pool": {"size": 2, "wait_timeout": "1s"}}) as router:
        holders = [connect(stage, router) for _ in range(2)]
        for h in holders:
            h.execute("BEGIN")
            h.execute("SELECT 1")
        late = connect(stage, router)
        start = time.monotonic()
        state = state_of(lambda: late.execute("SELECT 1"))
        assert state in ("57014", "53300", "53400"), state
        assert 0.5 < time.monotonic() - start < 10
        finish = in_background(lambda: late.execute("SELECT 2"))
        holders[0].execute("COMMIT")
        assert finish() is None
        assert late.execute("SELECT 3").fetchone() == (3,)
        for h in holders:
            h.close()
        late.close()


@check
def waiting_clients_are_served_in_turn(stage):
    """Many clients on two connections: everybody gets through, nobody starves."""
    with Router(stage, "fair", sections={"pool": {"size": 2}}) as router:
        longest, errors = [], []

        def work():
            try:
                with connect(stage, router) as c:
                    for _ in range(scaled(30, 5)):
                        start = time.monotonic()
                        c.execute("SELECT pg_sleep(0.002)")
                        longest.append(time.monotonic() - start)
            except Exception as error:
                errors.append(error)
        threads = [threading.Thread(target=work, daemon=True) for _ in range(24)]
        for t in threads:
            t.start()
        for t in threads:
            t.join(50)
        assert not errors, errors[:3]
        assert len(longest) == 24 * scaled(30, 5)
        assert max(longest) < 5, f"one waited {max(longest):.1f} s"


@check
def too_many_clients(stage):
    with Router(stage, "crowded", sections={"server": {"max_clients": 5}}) as router:
        held = [logged_in(router) for _ in range(5)]
        with RawClient("127.0.0.1", router.port) as c:
            lines = c.login()
            assert lines[0].startswith("E FATAL 53300") and lines[-1] == "closed", lines
        held.pop().socket.close()

        def free_again():
            with RawClient("127.0.0.1", router.port) as c:
                return c.login() is None
        wait_until("room for one more", free_again)
        for c in held:
            assert c.ask(query("SELECT 1"))[-1] == "Z b'I'"
            c.socket.close()


@check(seconds=90)
def slow_logins_and_silent_clients(stage):
    """Who does not get on with logging in is shown the door, and holds up nobody meanwhile."""
    with Router(stage, "slow-login", sections={"server": {"login_timeout": "1s", "threads": 1}}) as router:
        start = time.monotonic()
        first = startup(user=USER, database="app")
        silent, half, unfinished = (RawClient("127.0.0.1", router.port) for _ in range(3))
        half.send(first[:10])
        unfinished.send(first)
        assert unfinished.read()[0] == "R"
        with logged_in(router) as c:
            assert c.ask(query("SELECT 1"))[-1] == "Z b'I'"
        for c in (silent, half, unfinished):
            assert c.is_closed(), "a client that never logged in is still there"
            c.socket.close()
        assert time.monotonic() - start < 15


@check(seconds=90)
def idle_clients_are_closed(stage):
    sections = {"server": {"idle_timeout": "1s", "transaction_idle_timeout": "1s"}}
    with Router(stage, "idle", sections=sections) as router:
        idle, inside = logged_in(router), logged_in(router)
        inside.ask(query("BEGIN"))
        inside.ask(query("SELECT 1"))
        busy = logged_in(router)
        busy.send(query("SELECT pg_sleep(3)"))
        lines = idle.until_ready()
        assert any(" 57P05 " in line for line in lines) and lines[-1] == "closed", lines
        lines = inside.until_ready()
        assert any(" 25P03 " in line or " 57P05 " in line for line in lines) and lines[-1] == "closed", lines
        assert busy.until_ready()[-1] == "Z b'I'", "a running statement is not idle"
        with logged_in(router) as c:
            assert c.ask(query("SELECT 1"))[-1] == "Z b'I'"
            with stage.cluster.admin() as admin:
                wait_until("the idle transaction to be rolled back", lambda: admin.execute(
                    "SELECT count(*) FROM pg_stat_activity WHERE state LIKE 'idle in%'").fetchone() == (0,))


@check(seconds=240)
def a_client_that_stops_reading(stage):
    """A result of 1 GB for a client that does not read: the router's memory stays where it is, others go on."""
    megabytes = scaled(1000, 100)
    with Router(stage, "stalled", sections={"pool": {"size": 4}, "server": {"slow_client_timeout": "0"}}) as router:
        with logged_in(router) as witness:
            witness.ask(query("SELECT 1"))
            before = router.status_kb()
            with logged_in(router, seconds=120) as stalled:
                stalled.send(query(f"SELECT repeat('x', 100000) FROM generate_series(1, {megabytes * 10})"))
                assert stalled.read()[0] == "T"
                for _ in range(50):
                    assert witness.ask(query("SELECT pg_sleep(0.01)"))[-1] == "Z b'I'"
                held = router.status_kb() - before
                assert held < 8000, f"{held} KB for one client that does not read"
                received = 0
                while True:  # and now it reads everything
                    kind, body = stalled.read()
                    received += len(body)
                    if kind == "Z":
                        break
                assert received > megabytes * 1000 * 1000
                grown = router.status_kb("VmHWM") - before
                assert grown < 16000, f"{grown} KB more at the highest"


@check(seconds=120)
def a_client_that_sends_without_reading(stage):
    """A pipeline whose answers nobody takes: bounded memory here as well; a client that then reads loses nothing."""
    with Router(stage, "sender") as router:
        with logged_in(router, seconds=60) as c:
            c.ask(query("SELECT 1"))
            before = router.status_kb()
            one = query("SELECT repeat('y', 10000)")
            count = scaled(4000, 800)
            sender = threading.Thread(target=lambda: c.send(one * count), daemon=True)
            sender.start()
            sender.join(2)  # it gets stuck when everything is full, or is done when all fits: both are fine
            grown = router.status_kb() - before
            assert grown < 16000, f"{grown} KB"
            for i in range(count):
                assert c.until_ready()[-1] == "Z b'I'", i
            sender.join(20)
            assert not sender.is_alive()


@check(seconds=90)
def a_stalled_client_is_closed(stage):
    with Router(stage, "slow", sections={"server": {"slow_client_timeout": "1s"}}) as router:
        stalled = logged_in(router)
        stalled.send(query("SELECT repeat('x', 1000000) FROM generate_series(1, 200) /* stalled */"))
        wait_until("its statement to be over", lambda: active(stage, "/* stalled */"), 10)
        wait_until("its statement to be ended", lambda: not active(stage, "/* stalled */"), 20)
        with logged_in(router) as c:
            assert c.ask(query("SELECT 1"))[-1] == "Z b'I'"
        stalled.socket.close()


@check(seconds=90)
def large_copy_in_is_bounded(stage):
    """COPY FROM into a table that is locked: the client is held back, the router does not collect the data."""
    with Router(stage, "copy-in") as router, stage.cluster.admin() as admin:
        admin.execute("CREATE TABLE public.c (t text); ALTER TABLE public.c OWNER TO app; CREATE FUNCTION public.slow() "
                      "RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN PERFORM pg_advisory_xact_lock_shared(5); RETURN NEW; END $$; "
                      "CREATE TRIGGER slow BEFORE INSERT ON public.c FOR EACH ROW EXECUTE FUNCTION public.slow()")
        admin.execute("SELECT pg_advisory_lock(5)")
        with logged_in(router, seconds=60) as c:
            c.ask(query("SELECT 1"))
            before = router.status_kb()
            c.send(query("COPY c FROM STDIN"))
            assert c.read()[0] == "G"
            block = message("d", b"z" * 9999 + b"\n")
            count = scaled(10000, 2000)
            sender = threading.Thread(target=lambda: c.send(*([block] * count), message("c")), daemon=True)
            sender.start()
            sender.join(2)
            assert sender.is_alive(), "the router took it all"
            grown = router.status_kb() - before
            assert grown < 16000, f"{grown} KB"
            admin.execute("SELECT pg_advisory_unlock(5)")
            assert c.until_ready()[-2] == f"C {b'COPY %d' % count + bytes(1)!r}"
            sender.join(20)


@check
def client_gone_while_its_statement_runs(stage):
    """A backend that works for nobody is cancelled and its connection is used again."""
    with Router(stage, "gone", sections={"pool": {"size": 1}}) as router:
        for turn in range(3):
            c = logged_in(router)
            c.send(query(f"SELECT pg_sleep(60) /* left alone {turn} */"))
            wait_until("it to run", lambda: active(stage, f"left alone {turn}"))
            c.socket.close()
            with logged_in(router, seconds=30) as d:
                assert d.ask(query("SELECT 1"))[-1] == "Z b'I'"
            assert not active(stage, f"left alone {turn}")


@check(seconds=90)
def terminated_with_running_statements(stage):
    """SIGTERM: what runs may finish, who is idle is told 57P01, nobody new comes in, and the program ends with 0."""
    with Router(stage, "sigterm", sections={"server": {"shutdown_timeout": "20s"}}) as router:
        busy, idle, inside = logged_in(router), logged_in(router), logged_in(router)
        idle.ask(query("SELECT 1"))
        busy.send(query("SELECT pg_sleep(2), 'finished' /* at SIGTERM */"))
        wait_until("it to run", lambda: active(stage, "at SIGTERM"))
        router.process.send_signal(signal.SIGTERM)
        lines = idle.until_ready()
        assert lines[-1] == "closed" and (len(lines) == 1 or "57P01" in lines[0]), lines
        lines = busy.until_ready()
        assert any("finished" in line for line in lines), lines
        assert busy.is_closed() and inside.is_closed()
        assert router.process.wait(30) == 0


@check(seconds=90)
def terminated_with_a_statement_that_does_not_end(stage):
    with Router(stage, "sigterm-hard", sections={"server": {"shutdown_timeout": "1s"}}) as router:
        busy = logged_in(router)
        busy.send(query("SELECT pg_sleep(120) /* stubborn */"))
        wait_until("it to run", lambda: active(stage, "stubborn"))
        start = time.monotonic()
        router.process.send_signal(signal.SIGTERM)
        assert router.process.wait(20) == 0
        assert time.monotonic() - start < 15
        lines = busy.until_ready()
        assert lines[-1] == "closed", lines
        wait_until("the statement to be ended on the shard", lambda: not active(stage, "stubborn"), 20)


@check
def roles_have_their_own_connections(stage):
    """Two users through one router: each is itself on the shard, or both are the DSN's; never mixed up."""
    with Router(stage, "roles") as router:
        seen = {}
        for turn in range(10):
            for user, password in ((USER, PASSWORD), (OTHER, OTHER_PASSWORD)):
                with connect(stage, router, user=user, password=password) as c:
                    seen.setdefault(user, set()).add(c.execute("SELECT current_user::text, session_user::text").fetchone())
        assert all(len(names) == 1 for names in seen.values()), seen
        print("      users on the shard:", seen)


@check(seconds=120)
def thousands_of_short_connections(stage):
    with Router(stage, "churn") as router:
        logged_in(router).socket.close()
        before, files = router.status_kb(), open_files(router)
        for i in range(scaled(1500, 200)):
            with logged_in(router) as c:
                if i % 3:
                    c.ask(query("SELECT 1"))
        wait_until("the connections to be gone", lambda: open_files(router) <= files + 4)
        grown = router.status_kb() - before
        assert grown < 8000, f"{grown} KB more after {scaled(1500, 200)} connections"


def open_files(router):
    import os
    return len(os.listdir(f"/proc/{router.process.pid}/fd"))


if __name__ == "__main__":
    main()
