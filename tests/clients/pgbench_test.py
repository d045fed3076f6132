"""pgbench in its three protocols: TPC-B keeps its balances, every script runs without an error."""

import re
import subprocess

from harness import PATIENCE, main, scaled, scenario
from postgres import BIN

TABLES = "pgbench_accounts", "pgbench_branches", "pgbench_tellers"


def pgbench(run, *arguments):
    done = subprocess.run(
        [f"{BIN}/pgbench", *arguments], capture_output=True, text=True, timeout=100 * PATIENCE, env=run.environment()
    )
    run.note(" ".join(arguments[:-1] if arguments[-1].startswith("/") else arguments), done.returncode)
    if done.returncode or "aborted" in done.stderr:
        run.note(done.stderr[-2000:])
    for line in done.stdout.splitlines():
        if re.match(r"number of (transactions actually processed|failed transactions)|query mode", line):
            run.note(line)


def balances(run):
    with run.connect() as connection:
        sums = [connection.execute(f"SELECT sum({t[8]}balance) FROM {t}").fetchone()[0] for t in TABLES]
        history = connection.execute("SELECT sum(delta), count(*) FROM pgbench_history").fetchone()
        run.note("in balance", len({*sums, history[0] or 0}) == 1, history[1])


@scenario(wire=False, seconds=120)
def tpcb_in_three_protocols(run):
    pgbench(run, "-i", "-q", "-s", "1")
    for protocol in ("simple", "extended", "prepared"):
        pgbench(run, "-M", protocol, "-c", "8", "-j", "2", "-t", str(scaled(100, 5)))
        balances(run)
        pgbench(run, "-M", protocol, "-C", "-c", "4", "-t", "3")
        balances(run)


@scenario(wire=False, seconds=120)
def built_in_scripts(run):
    pgbench(run, "-i", "-I", "dtgvpf", "-q", "-s", "1")
    for protocol in ("simple", "extended", "prepared"):
        for script in ("select-only", "simple-update"):
            pgbench(run, "-n", "-b", script, "-M", protocol, "-c", "16", "-j", "2", "-t", str(scaled(100, 5)))
    balances_of_history(run)


def balances_of_history(run):
    with run.connect() as connection:
        run.note(
            connection.execute(
                "SELECT (SELECT sum(abalance) FROM pgbench_accounts) = (SELECT sum(delta) FROM "
                "pgbench_history), (SELECT count(*) FROM pgbench_history)"
            ).fetchone()
        )


PIPELINE = """
\\set a random(1, 1000)
\\startpipeline
BEGIN;
UPDATE pgbench_accounts SET abalance = abalance + 1 WHERE aid = :a;
SELECT abalance FROM pgbench_accounts WHERE aid = :a;
INSERT INTO pgbench_history (tid, bid, aid, delta, mtime) VALUES (1, 1, :a, 1, now());
COMMIT;
\\endpipeline
"""
RETRIED = """
\\set a random(1, 5)
\\set b :a + 1
BEGIN ISOLATION LEVEL REPEATABLE READ;
UPDATE pgbench_accounts SET abalance = abalance + 1 WHERE aid = :a;
UPDATE pgbench_accounts SET abalance = abalance - 1 WHERE aid = :b;
COMMIT;
"""


@scenario(wire=False, seconds=120)
def pipelines_and_retries(run):
    pgbench(run, "-i", "-q", "-s", "1")
    for name, text, arguments in (
        ("pipeline", PIPELINE, ("-M", "extended")),
        ("pipeline", PIPELINE, ("-M", "prepared")),
        ("retried", RETRIED, ("--max-tries=10000",)),
    ):
        path = f"{run.stage.root}/{name}.sql"
        with open(path, "w") as file:
            file.write(text)
        pgbench(run, "-n", *arguments, "-c", "8", "-j", "2", "-t", str(scaled(50, 5)), "-f", path)
    with run.connect() as connection:
        run.note(connection.execute("SELECT sum(abalance) FROM pgbench_accounts").fetchone())
        run.note(connection.execute("SELECT sum(delta) FROM pgbench_history").fetchone())


if __name__ == "__main__":
    main()
