"""node-postgres: node/scenarios.js with `pg` at the version of the lock file, installed into the build directory."""

import filecmp
import os
import re
import shutil
import subprocess
import tempfile

from harness import LOAD, PATIENCE, main, scenario
from postgres import DATABASE, PASSWORD, USER

SOURCE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "node")
installed_in = None


def installed():
    """`npm ci` once a build directory and lock file."""
    global installed_in
    if installed_in:
        return installed_in
    target = os.path.join(os.environ.get("KINTSUGI_BUILD") or tempfile.gettempdir(), "kintsugi-node")
    os.makedirs(target, exist_ok=True)
    stamp = os.path.join(target, "installed-lock.json")
    lock = os.path.join(SOURCE, "package-lock.json")
    if not (os.path.exists(stamp) and filecmp.cmp(stamp, lock, shallow=False)):
        for name in ("package.json", "package-lock.json"):
            shutil.copy(os.path.join(SOURCE, name), target)
        done = subprocess.run(
            ["npm", "ci", "--no-audit", "--no-fund", "--ignore-scripts"],
            cwd=target,
            text=True,
            capture_output=True,
            timeout=200,
        )
        if done.returncode:
            raise RuntimeError(f"npm ci: {done.stdout}{done.stderr}")
        shutil.copy(lock, stamp)
    shutil.copy(os.path.join(SOURCE, "scenarios.js"), target)
    installed_in = target
    return target


def node(run, name):
    done = subprocess.run(
        ["node", "scenarios.js", run.host, str(run.port), DATABASE, USER, PASSWORD, name, str(LOAD)],
        cwd=installed(),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=55 * PATIENCE,
    )
    run.note(f"status {done.returncode}")
    for line in done.stdout.splitlines():
        run.note(re.sub(r"\(node:\d+\)", "(node)", line))
    if done.returncode and run.system.name == "direct":
        raise RuntimeError(f"the scenario fails on PostgreSQL itself:\n{done.stdout}")


def add(name, **options):
    def body(run):
        node(run, name)

    body.__name__ = name
    scenario(body, **options)


for name in (
    "queries_and_types",
    "named_statements",
    "errors_and_transactions",
    "queued_queries",
    "cursors",
    "copying",
    "large_values",
):
    add(name)
add("notifications_and_notices", pool=4)
add("pool_of_clients", wire=False)
add("settings_of_the_connection", wire=False)

if __name__ == "__main__":
    main()
