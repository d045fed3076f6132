"""Unlucky days: servers that restart, backends that are killed, clients that vanish, SIGTERM at work.

On the system under test only: what a client must see is said here, statement by statement.
"""

import signal
import threading
import time

import psycopg

from harness import Run, check, main, scaled
from postgres import PASSWORD, wait_until
from protocol import logged_in, query
from routers import UNREACHABLE, Router, active, connect, in_background, stage_fresh, state_of


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
            finish = in_background(
                lambda: c.execute(f"INSERT INTO done SELECT 1 FROM pg_sleep(30) /* victim {turn} */")
            )
            pid = wait_until("the victim to run", lambda: active(stage, f"victim {turn}"))[0][0]
            admin.execute("SELECT pg_terminate_backend(%s, 5000)", [pid])
            assert finish() in UNREACHABLE, finish()
            with connect(stage, router) as d:
                assert d.execute("SELECT count(*) FROM done").fetchone() == (
                    0,
                ), "the statement ran, or ran again"
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
            states = [
                state_of(lambda: c.execute("INSERT INTO t VALUES (2)")),
                state_of(lambda: c.execute("COMMIT")),
            ]
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
            wait_until(
                "the workers to be at work",
                lambda: sum(len(t) for t in list(confirmed.values())) > before + 60 or errors,
                60,
            )
            stage.cluster.restart(mode)
        before = sum(len(turns) for turns in list(confirmed.values()))
        wait_until(
            "the workers to go on",
            lambda: sum(len(t) for t in list(confirmed.values())) > before + 60 or errors,
            60,
        )
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
            except psycopg.Error as error:
                assert time.monotonic() - start < 30
                assert PASSWORD not in str(error), "a password in an error"
            stage.cluster.start()

            def back():
                try:
                    with connect(stage, router) as d:
                        return d.execute("SELECT 3").fetchone() == (3,)
                except psycopg.Error:
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
            except psycopg.Error:
                return False

        wait_until("the router to find its shard", works, 30)
    finally:
        router.stop()


@check
def client_gone_while_its_statement_runs(stage):
    """As PostgreSQL does it: what was sent is finished, whoever is there to hear; then the connection serves others."""
    with Router(stage, "gone", sections={"pool": {"size": 1}}) as router, stage.cluster.admin() as admin:
        admin.execute("CREATE TABLE public.left_alone (i int); ALTER TABLE public.left_alone OWNER TO app")
        for turn in range(3):
            c = logged_in(router)
            c.send(query(f"INSERT INTO left_alone SELECT {turn} FROM pg_sleep(0.5) /* left alone {turn} */"))
            wait_until("it to run", lambda: active(stage, f"left alone {turn}"))
            c.socket.close()
            with logged_in(router, seconds=30) as d:
                assert d.ask(query("SELECT 1"))[-1] == "Z b'I'"
            assert not active(stage, f"left alone {turn}")
            assert admin.execute("SELECT count(*) FROM left_alone").fetchone() == (turn + 1,)


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


if __name__ == "__main__":
    main()
