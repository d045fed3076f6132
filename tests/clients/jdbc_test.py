"""The JDBC driver: jdbc/Scenarios.java, compiled here, one run of the virtual machine a scenario."""

import os
import re
import subprocess
import tempfile

from harness import LOAD, PATIENCE, main, scenario
from postgres import DATABASE, PASSWORD, USER

DRIVER = "/usr/share/java/postgresql.jar"
SOURCE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "jdbc", "Scenarios.java")
classes = None


def compiled():
    global classes
    if not classes:
        classes = os.path.join(
            os.environ.get("KINTSUGI_BUILD") or tempfile.gettempdir(), "kintsugi-jdbc-classes"
        )
        os.makedirs(classes, exist_ok=True)
        done = subprocess.run(
            ["javac", "-nowarn", "-cp", DRIVER, "-d", classes, SOURCE], capture_output=True, text=True
        )
        if done.returncode:
            raise RuntimeError(f"javac: {done.stderr}")
    return classes


def java(run, name):
    done = subprocess.run(
        [
            "java",
            "-XX:TieredStopAtLevel=1",
            "-XX:+UseSerialGC",
            "-cp",
            f"{DRIVER}:{compiled()}",
            "Scenarios",
            run.host,
            str(run.port),
            DATABASE,
            USER,
            PASSWORD,
            name,
            str(LOAD),
        ],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=85 * PATIENCE,
    )
    run.note(f"status {done.returncode}")
    for line in done.stdout.splitlines():
        run.note(re.sub(r"\.java:\d+", ".java", line))
    if done.returncode and run.system.name == "direct":
        raise RuntimeError(f"the scenario fails on PostgreSQL itself:\n{done.stdout}")


def add(name, **options):
    def body(run):
        java(run, name)

    body.__name__ = name
    scenario(body, seconds=100, **options)


for name in (
    "typesAndMetadata",
    "serverPreparedAfterFiveRuns",
    "cachedPlanAfterDdl",
    "fetchSize",
    "batches",
    "autosave",
    "copyManager",
    "transactionsAndIsolation",
    "errorsAndNotices",
    "connectionProperties",
    "largeParameters",
):
    add(name)
add("databaseMetaData", wire=False)
add("cancelAndTimeout", wire=False)
add("listening", pool=4)

if __name__ == "__main__":
    main()
