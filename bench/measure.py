"""One cell of the comparison: pgbench against one address, and the CPU that the process behind it used meanwhile."""

import dataclasses
import os
import re
import subprocess
import time

from postgres import BIN, DATABASE, PASSWORD, USER

SCRIPTS = {
    "point select": ("-b", "select-only"),
    "simple update": ("-b", "simple-update"),
    "1000 rows": ("-f", "thousand.sql"),
}
THOUSAND = "\\set a random(1, 99000 * :scale)\nSELECT aid, bid, abalance FROM pgbench_accounts WHERE aid BETWEEN :a AND :a + 999;\n"


@dataclasses.dataclass(frozen=True)
class Cell:
    script: str
    protocol: str
    clients: int

    def __str__(self):
        return f"{self.script}, {self.protocol}, {self.clients} client{'s' if self.clients > 1 else ''}"


def environment(port):
    return {
        **os.environ,
        "PGHOST": "127.0.0.1",
        "PGPORT": str(port),
        "PGDATABASE": DATABASE,
        "PGUSER": USER,
        "PGPASSWORD": PASSWORD,
        "PGSSLMODE": "disable",
        "PGGSSENCMODE": "disable",
        "PGCONNECT_TIMEOUT": "20",
    }


def initialise(system, scale):
    subprocess.run(
        [f"{BIN}/pgbench", "-i", "-q", "-s", str(scale)],
        env=environment(system.port),
        check=True,
        capture_output=True,
        timeout=600,
    )


def run_cell(system, cell, seconds, directory):
    """{"tps", "cpu_us", "user_us", "system_us"} or {"error"}. The CPU is counted between pgbench's progress lines, so
    that logging in is not part of a transaction's price."""
    arguments = list(SCRIPTS[cell.script])
    if arguments[0] == "-f":
        arguments[1] = os.path.join(directory, arguments[1])
        with open(arguments[1], "w") as file:
            file.write(THOUSAND)
    command = [
        f"{BIN}/pgbench",
        "-n",
        "-M",
        cell.protocol,
        "-c",
        str(cell.clients),
        "-j",
        str(min(2, cell.clients)),
        "-T",
        str(seconds),
        "-P",
        "1",
        *arguments,
    ]
    process = subprocess.Popen(
        command, env=environment(system.port), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    deadline = time.monotonic() + seconds + 60
    marks, errors = [], []
    for line in process.stderr:
        progress = re.match(r"progress: ([\d.]+) s, ([\d.]+) tps", line)
        if progress:
            marks.append(
                (
                    float(progress.group(1)),
                    float(progress.group(2)),
                    system.cpu_seconds() if system.process else None,
                )
            )
        elif "error" in line.lower() or "aborted" in line:
            errors.append(line.strip())
        if time.monotonic() > deadline:
            process.kill()
            return {"error": "did not end in time"}
    out = process.stdout.read()
    process.wait()
    tps = re.search(r"tps = ([\d.]+)", out)
    if process.returncode or errors or not tps:
        return {"error": (errors or [f"pgbench ended with {process.returncode}"])[0][:300]}
    result = {"tps": float(tps.group(1))}
    if system.process and len(marks) >= 2:
        transactions = sum(rate * (at - before[0]) for before, (at, rate, _) in zip(marks, marks[1:]))
        if transactions > 0:
            user, kernel = (marks[-1][2][i] - marks[0][2][i] for i in (0, 1))
            result.update(
                user_us=user / transactions * 1e6,
                system_us=kernel / transactions * 1e6,
                cpu_us=(user + kernel) / transactions * 1e6,
            )
    return result
