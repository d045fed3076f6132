"""Instructions of the router a point select, counted by callgrind: repeatable on a machine that others use too."""

import glob
import os
import re
import subprocess

from measure import environment
from postgres import BIN


def pgbench(port, protocol, transactions):
    done = subprocess.run(
        [f"{BIN}/pgbench", "-n", "-b", "select-only", "-M", protocol, "-c", "1", "-t", str(transactions)],
        env=environment(port),
        capture_output=True,
        text=True,
        timeout=300,
    )
    if done.returncode:
        raise RuntimeError(done.stderr[-500:])


def total(router, directory, name):
    """Stops the router and reads what callgrind wrote: all its threads together."""
    router.stop()
    count = 0
    for path in glob.glob(os.path.join(directory, f"callgrind.{name}.*")):
        with open(path) as file:
            found = re.findall(r"^(?:summary|totals): (\d+)", file.read(), re.M)
            count += int(found[-1]) if found else 0
    return count


def measure(start_router, directory, few=500, many=3500):
    """{protocol: instructions a transaction}: the difference of two runs, so that starting and logging in cancel out."""
    results = {}
    for protocol in ("simple", "extended", "prepared"):
        counts = []
        for transactions in (few, many):
            name = f"{protocol}-{transactions}"
            router = start_router(
                f"callgrind-{name}",
                wrapper=[
                    "valgrind",
                    "-q",
                    "--tool=callgrind",
                    f"--callgrind-out-file={directory}/callgrind.{name}.%p",
                ],
            )
            pgbench(router.port, protocol, transactions)
            counts.append(total(router, directory, name))
        results[protocol] = (counts[1] - counts[0]) / (many - few)
    return results
