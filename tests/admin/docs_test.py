#!/usr/bin/python3
"""Runs the commands of docs/operations.md, in its order, a block in one shell, against a router that begins empty, and
compares what they print. A block that begins with ```console is run: lines with "$ " are commands (a backslash goes on
with the next line), the lines behind them what they print; "..." stands for anything. KINTSUGI_ACCEPT=1 writes what
they really print. ($S1 to $S3 are the DSNs of three empty databases. README.md is run by tests/app/demo_test.py.)
argv[1] is the program."""
import contextlib
import os
import pathlib
import re
import signal
import subprocess
import sys
import unittest

PROGRAM = os.path.abspath(sys.argv.pop(1))
sys.path.insert(0, str(pathlib.Path(__file__).parent))
from house import House, PASSWORD, USER, free_port  # noqa: E402
from postgres import BIN  # noqa: E402

ROOT = pathlib.Path(__file__).parents[2]
PAGE = ROOT / "docs/operations.md"
BLOCK = re.compile(r"^```console\n(.*?)^```\n", re.M | re.S)


def commands_of(block):
    """(command, what is printed) of a block."""
    found = []
    going_on = False
    for line in block.splitlines():
        if going_on or line.startswith("$ "):
            if going_on:
                found[-1][0] += "\n" + line
            else:
                found.append([line[2:], ""])
            going_on = line.endswith("\\")
        else:
            found[-1][1] += line + "\n"
    return found


def left_running(root):
    """Routers work in the folder itself, the map stores' servers in map1 and map2. By where they work and not by the numbers that
    they have written down: those may be somebody else's by now."""
    for entry in pathlib.Path("/proc").iterdir():
        with contextlib.suppress(OSError):
            place = os.path.relpath(os.readlink(entry / "cwd"), root) if entry.name.isdigit() else ".."
            if place == "." or place.startswith("map"):
                yield int(entry.name), place


class Docs(unittest.TestCase):
    maxDiff = None

    def test_what_operations_md_says_is_what_happens(self):
        house = House(PROGRAM, shards=3)
        folder = pathlib.Path(house.root, "bin")
        folder.mkdir()
        (folder / "kintsugi").symlink_to(pathlib.Path(PROGRAM).resolve())
        environment = {key: value for key, value in os.environ.items() if not key.startswith("KINTSUGI_")}
        environment.update(PATH=f"{folder}:{environment['PATH']}", KINTSUGI_ADMIN=f"http://127.0.0.1:{house.admin_port}",
                           KINTSUGI_TOKEN=house.token, PGHOST="127.0.0.1", PGPORT=str(house.port), PGDATABASE="app", PGUSER=USER,
                           PGPASSWORD=PASSWORD, **{f"S{n}": house.dsn(n) for n in (1, 2, 3)})
        # PostgreSQL's programs; those that make and run a cluster do not work for root.
        for name in ("initdb", "pg_ctl", "pg_basebackup"):
            program = folder / name
            as_whom = "runuser -u postgres -- " if os.geteuid() == 0 else ""
            program.write_text(f'#!/bin/sh\nexec {as_whom}{BIN}/{name} "$@"\n')
            program.chmod(0o755)
        environment["PATH"] = f"{folder}:{BIN}:{environment['PATH']}"
        with house.cluster.admin("postgres") as admin:
            for database in ("d4", "d5", "d6", "store"):
                admin.execute(f"CREATE DATABASE {database} OWNER {USER}")
        environment.update(D1=house.dsn(4), D2=house.dsn(5), D3=house.dsn(6), RESTORED=house.dsn(4).replace("dbname=d4", "dbname=restored"), STORE=f"postgresql://{USER}:{PASSWORD}@127.0.0.1:{house.cluster.port}/store",
                           **{name: str(free_port()) for name in ("P1", "P2", "P3", "A1", "A2", "A3", "M1", "M2")})
        accept = os.environ.get("KINTSUGI_ACCEPT")
        text = PAGE.read_text()
        count = 0

        def run(block):
            nonlocal count
            made = ""
            commands = commands_of(block[1])
            script = "".join(f"{command}\nprintf '\\001\\n'\n" for command, _ in commands)
            done = subprocess.run(["/bin/bash", "-c", script], env=environment, cwd=house.root, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                  text=True, timeout=500, stdin=subprocess.DEVNULL)
            for (command, expected), said in zip(commands, done.stdout.split("\001\n")):
                count += 1
                printed = "".join(line.rstrip() + "\n" for line in said.splitlines())
                made += "$ " + command + "\n" + (expected if accept and "..." in expected else printed)
                if not accept:
                    pattern = re.escape(expected).replace(re.escape("..."), ".*?")
                    self.assertRegex(printed, re.compile(r"\A" + pattern + r"\Z", re.S), f"$ {command}\n{printed}")
            return "```console\n" + made + "```\n"

        try:
            made = BLOCK.sub(run, text)
        finally:
            for pid, place in left_running(house.root):
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGQUIT if place.startswith("map") else signal.SIGKILL)
            house.close()
        if accept:
            PAGE.write_text(made)
        self.assertGreater(count, 20)

    def test_every_error_code_is_in_the_page(self):
        codes = set(re.findall(r'"(KG\d\d\d)"', "".join(path.read_text() for room in ("base", "admin", "frontend", "planner", "shardmap", "splitmerge")
                                                        for path in (ROOT / room).rglob("*.[ch]*"))))
        page = PAGE.read_text()
        table = page[page.index("### Errors of Kintsugi's own"):]
        self.assertGreaterEqual(len(codes), 7)
        for code in codes:
            self.assertRegex(table, rf"(?m)^\| {code} \|", code)

    def test_every_metric_is_in_the_page(self):
        source = (ROOT / "admin/metrics.cc").read_text()
        names = set(re.findall(r'(?:family|gauge|counter)\("([a-z_]+)"', source)) | set(re.findall(r'\{"(pool_[a-z_]+)"', source))
        self.assertGreater(len(names), 20)
        for name in names:
            self.assertIn(f"`kintsugi_{name}`", PAGE.read_text())


if __name__ == "__main__":
    unittest.main(verbosity=1)
