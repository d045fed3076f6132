"""Side by side on this machine: PostgreSQL alone, PgBouncer in front of it, Kintsugi in front of it.

Every round runs all systems of a cell one after the other before the next round begins, so that what the machine does
besides hits all of them alike.
"""

import argparse
import os
import signal
import sys
import time

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path[:0] = [os.path.join(ROOT, "tests", "clients"), os.path.dirname(os.path.abspath(__file__))]

import fanout
import idle
import instructions
import report
from measure import SCRIPTS, Cell, initialise, run_cell
from postgres import Cluster, scratch_directory
from systems import Direct, Kintsugi, PgBouncer

POOL = 20


class Bench:
    def __init__(self, options):
        self.options = options
        self.program = os.environ["KINTSUGI_PROGRAM"]
        self.root = scratch_directory("kintsugi-bench-")
        self.end = time.monotonic() + options.budget
        self.cluster = Cluster(
            self.root,
            settings={
                "shared_buffers": "512MB",
                "max_connections": 200,
                "max_wal_size": "4GB",
                "checkpoint_timeout": "1h",
            },
        )
        self.systems = []
        self.results, self.idle, self.instructions = {}, {}, {}

    def router(self, name, threads=1, **options):
        sections = {
            "server": {"threads": threads, "max_clients": 12000},
            "pool": {"size": POOL},
            "log": {"level": "warning"},
        }
        router = Kintsugi(self.program, self.cluster, self.root, name, sections=sections, **options)
        self.systems.append(router)
        return router

    def out_of_time(self, needed):
        return time.monotonic() + needed > self.end

    def relay(self):
        systems = {
            "direct": Direct(self.cluster),
            "PgBouncer": PgBouncer(self.cluster, self.root, "transaction", POOL),
        }
        self.systems.append(systems["PgBouncer"])
        systems["Kintsugi 1"] = self.router("kintsugi-1", 1)
        systems["Kintsugi 2"] = self.router("kintsugi-2", 2)
        print("loading pgbench's tables", flush=True)
        initialise(systems["direct"], self.options.scale)
        cells = [
            Cell(s, p, c) for s in SCRIPTS for p in ("simple", "extended", "prepared") for c in (1, 16, 64)
        ]
        cells = [cell for cell in cells if not self.options.cells or self.options.cells in str(cell)]
        for cell in cells:
            if self.out_of_time(len(systems) * self.options.seconds):
                print(f"no time left for: {cell}", flush=True)
                continue
            rounds = self.results[cell] = {name: [] for name in systems}
            for _ in range(self.options.rounds):
                for name, system in systems.items():
                    if name == "PgBouncer" and cell.protocol == "prepared":
                        continue  # 1.18 cannot: a statement prepared on one connection is unknown on the next
                    rounds[name].append(run_cell(system, cell, self.options.seconds, self.root))
            row = report.summarise({cell: rounds})[cell]
            print(
                f"{str(cell):42}"
                + "  ".join(
                    f"{name} {row[name]['tps'] or 0:8.0f} tps"
                    + (f" {row[name]['cpu_us']:6.1f} us" if row[name]["cpu_us"] else "")
                    + (f" ({row[name]['error'][:60]})" if "error" in row[name] else "")
                    for name in systems
                    if name in row
                ),
                flush=True,
            )

    def memory(self):
        for name, clients, make in (
            ("Kintsugi", self.options.idle_clients, lambda: self.router("kintsugi-idle", 1)),
            (
                "PgBouncer",
                min(2000, self.options.idle_clients),  # its logins are slow: it hashes the password each time
                lambda: PgBouncer(self.cluster, self.root, "transaction", POOL, "pgbouncer-idle"),
            ),
        ):
            system = make()
            self.systems.append(system)
            try:
                self.idle[name] = idle.measure(system, clients, 180)
            except Exception as error:
                self.idle[name] = {"error": str(error)[:200]}
            print(name, self.idle[name], flush=True)
            self.systems.remove(system)
            system.stop()

    def count(self):
        try:
            if not self.results:
                initialise(Direct(self.cluster), 1)
            self.instructions = instructions.measure(
                lambda name, wrapper: self.router(name, 1, wrapper=wrapper), self.root
            )
        except Exception as error:
            self.instructions = {"failed": str(error)[:300]}
        print("instructions a point select:", self.instructions, flush=True)

    def over_shards(self):
        try:
            rows, rounds = (2_000_000, 15) if self.options.full else (500_000, 7)
            result = fanout.measure(self.program, self.root, rows, rounds, 200, 10 if self.options.full else 5)
        except Exception as error:
            print("over shards:", str(error)[:500], flush=True)
            return
        os.makedirs(self.options.out, exist_ok=True)
        with open(os.path.join(self.options.out, "fanout.md"), "w") as file:
            file.write("# Over two shards\n\n" + "\n".join(fanout.table(result)) + "\n")

    def stop(self):
        for system in self.systems:
            try:
                system.stop()
            except RuntimeError as error:
                print(error)
        self.cluster.stop()


PARTS = ("relay", "idle", "instructions", "fanout")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--quick", action="store_true", help="three seconds a cell, one round (default)")
    parser.add_argument("--full", action="store_true", help="eight seconds a cell, five rounds")
    parser.add_argument("--seconds", type=int)
    parser.add_argument("--rounds", type=int)
    parser.add_argument("--scale", type=int, default=10)
    parser.add_argument("--cells", help="only cells whose name contains this, such as 'point select, simple'")
    parser.add_argument("--only", default=",".join(PARTS))
    parser.add_argument("--idle-clients", type=int, default=10000)
    parser.add_argument(
        "--budget", type=int, help="seconds in all; cells that do not fit are left out and said so"
    )
    parser.add_argument("--out", default=os.path.join(ROOT, "bench", "out"))
    options = parser.parse_args()
    unknown = set(options.only.split(",")) - set(PARTS)
    if unknown:
        parser.error(f"--only {', '.join(sorted(unknown))}: there are {', '.join(PARTS)}; bench/micro, bench/move and bench/tpch are run by themselves")
    options.seconds = options.seconds or (8 if options.full else 3)
    options.rounds = options.rounds or (5 if options.full else 1)
    options.budget = options.budget or (3 * 3600 if options.full else 1200)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    facts = report.machine(os.environ["KINTSUGI_PROGRAM"])
    facts["how"] = (
        f"{options.rounds} round{'s' if options.rounds > 1 else ''} of {options.seconds} s a cell, pool of {POOL} connections, "
        f"pgbench scale {options.scale}."
    )
    bench = Bench(options)
    try:
        works = dict(zip(PARTS, (bench.relay, bench.memory, bench.count, bench.over_shards)))
        for part in PARTS:
            if part in options.only.split(","):
                works[part]()
    finally:
        bench.stop()
        report.write(
            options.out, facts, report.summarise(bench.results), bench.idle, bench.instructions, bench.results
        )
        import shutil

        shutil.rmtree(bench.root, ignore_errors=True)
    print(f"written: {options.out}/results.md, results.json" + (", relay.png" if bench.results else ""))


if __name__ == "__main__":
    main()
