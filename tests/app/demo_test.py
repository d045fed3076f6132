#!/usr/bin/env python3
"""`kintsugi demo` from nothing, from its data, and after being killed: with real PostgreSQL. argv[1] is the program."""
import contextlib
import os
import pathlib
import re
import shutil
import signal
import socket
import stat
import subprocess
import sys
import tempfile
import threading
import time
import unittest

PROGRAM = sys.argv.pop(1)
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "clients"))
from ports import free_port  # noqa: E402

PATIENCE_S = float(os.environ.get("KINTSUGI_DEMO_TEST_PATIENCE_S", "90"))


def processes_in(folder):
    """Whoever works anywhere below the folder."""
    found = []
    for entry in pathlib.Path("/proc").iterdir():
        try:
            if entry.name.isdigit() and os.readlink(entry / "cwd").startswith(str(folder) + "/"):
                found.append(int(entry.name))
        except OSError:
            pass
    return found


class Demo:
    """A running demo, with what it has printed so far."""

    def __init__(self, data, *arguments, shards=2, port=None, environment=None):
        self.data, self.output = data, ""
        self.port = port or free_port()
        line = [PROGRAM, "demo", "--data", str(data), "--port", str(self.port), "--admin-port", str(free_port()), *arguments]
        if shards:
            line += ["--shards", str(shards)]
        self.process = subprocess.Popen(line, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                                        env={**os.environ, **(environment or {})}, start_new_session=True)
        self.reader = threading.Thread(target=self.read)
        self.reader.start()

    def read(self):
        for line in self.process.stdout:
            self.output += line

    def wait_for(self, words):
        until = time.monotonic() + PATIENCE_S
        while words not in self.output:
            assert self.process.poll() is None, f"ended with {self.process.returncode}:\n{self.output}"
            assert time.monotonic() < until, f"no '{words}' within {PATIENCE_S} s:\n{self.output}"
            time.sleep(0.05)
        return self

    def ready(self):
        return self.wait_for("Ctrl-C stops")

    def psql_line(self):
        return re.search(r"^ +(psql .*)$", self.output, re.M).group(1)

    def psql(self, sql):
        """Runs the line as it was printed, as a reader would paste it."""
        run = subprocess.run(["bash", "-c", f'{self.psql_line()} -X -A -t -c "$1"', "bash", sql], capture_output=True,
                             text=True, timeout=120, cwd="/")
        assert run.returncode == 0, run.stderr + self.output
        return run.stdout.strip()

    def ports(self):
        return [int(port) for port in re.findall(r"on port (\d+)$", self.output, re.M)]

    def end(self, how=signal.SIGINT):
        if self.process.poll() is None:
            self.process.send_signal(how)
        code = self.process.wait(PATIENCE_S)
        self.reader.join()
        self.process.stdout.close()
        return code


class DemoTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.mkdtemp(prefix="kintsugi-demo-")
        os.chmod(folder, 0o755)
        self.folder = pathlib.Path(folder)
        self.data = self.folder / "it's demo data"
        self.running = []

    def tearDown(self):
        for demo in self.running:
            demo.end(signal.SIGKILL)
        # As servers that are wanted no longer: killed harder, each would leave a segment of shared memory in the kernel.
        for pid in processes_in(self.folder):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGQUIT)
        deadline = time.monotonic() + PATIENCE_S
        while processes_in(self.folder) and time.monotonic() < deadline:
            time.sleep(0.05)
        shutil.rmtree(self.folder, ignore_errors=True)

    def demo(self, *arguments, **options):
        self.running.append(Demo(options.pop("data", self.data), *arguments, **options))
        return self.running[-1]

    def refused(self, *arguments, **options):
        demo = self.demo(*arguments, **options)
        code = demo.process.wait(PATIENCE_S)
        demo.reader.join()
        return code, demo.output

    def postmasters(self):
        return [int(path.read_text().splitlines()[0]) for path in (self.data / "shards").glob("*/postmaster.pid")]

    def kill_everything(self, demo):
        pids = [demo.process.pid, *self.postmasters()]
        self.assertEqual(len(pids), 3)
        for pid in pids:
            os.kill(pid, signal.SIGKILL)
        demo.process.wait()

    def test_first_start_kill_everything_start_again_end(self):
        demo = self.demo().ready()
        self.assertIn("Loaded the sample: 20 tenants, 400 users, ", demo.output)
        self.assertEqual(demo.psql("SELECT count(*) FROM tenants"), "20")
        self.assertEqual(demo.psql("SELECT current_user || ' ' || current_database()"), "app app")
        self.assertEqual(demo.psql("SHOW wal_level"), "logical")
        self.assertGreater(int(demo.psql("SHOW max_prepared_transactions")), 0)
        self.assertEqual(demo.psql("SHOW SHARDLETS OF tenants"),
                         "t1|tenants|MINVALUE|11||s1|online\nt2|tenants|11|MAXVALUE||s2|online")
        self.assertEqual(demo.psql("SELECT count(DISTINCT tenant_id), count(*) FROM users"), "20|400")
        demo.psql("INSERT INTO tenants VALUES (21, 'Umber Paints', 'team', now())")
        self.assertNotIn(next(line for line in (self.data / "passfile").read_text().split(":")[4:]).strip(), demo.output)
        for name in ("kintsugi.toml", "passfile", "demo.json"):
            self.assertEqual(stat.S_IMODE((self.data / name).stat().st_mode), 0o600, name)

        self.kill_everything(demo)
        again = self.demo().ready()
        self.assertNotIn("Loaded the sample", again.output)
        self.assertEqual(again.psql("SELECT count(*) FROM tenants"), "21")
        self.assertEqual(again.ports(), demo.ports())

        self.assertEqual(again.end(signal.SIGINT), 0)
        self.assertEqual(processes_in(self.folder), [])
        with socket.socket() as s:
            self.assertNotEqual(s.connect_ex(("127.0.0.1", again.port)), 0)

    def test_only_the_router_killed_leaves_shards_that_the_next_start_takes_over(self):
        demo = self.demo().ready()
        demo.end(signal.SIGKILL)
        self.assertEqual(len(self.postmasters()), 2)
        again = self.demo(shards=None).ready()
        self.assertEqual(again.ports(), demo.ports())
        self.assertEqual(again.psql("SELECT count(*) FROM tenants"), "20")
        self.assertEqual(again.end(signal.SIGTERM), 0)
        self.assertEqual(processes_in(self.folder), [])

    def test_a_pid_file_whose_number_belongs_to_somebody_else_by_now(self):
        demo = self.demo().ready()
        self.kill_everything(demo)
        as_server = ["runuser", "-u", "postgres", "--"] if os.geteuid() == 0 else []
        stranger = subprocess.Popen([*as_server, "sleep", "300"], cwd="/")
        try:
            time.sleep(0.3)
            children = pathlib.Path(f"/proc/{stranger.pid}/task/{stranger.pid}/children").read_text().split()
            pid = int(children[0]) if children else stranger.pid
            for path in (self.data / "shards").glob("*/postmaster.pid"):
                lines = path.read_text().splitlines()
                path.write_text("\n".join([str(pid), *lines[1:]]) + "\n")
            again = self.demo().ready()
            self.assertEqual(again.psql("SELECT count(*) FROM tenants"), "20")
            self.assertEqual(again.end(), 0)
            self.assertIsNone(stranger.poll())
        finally:
            os.kill(pid, signal.SIGKILL)
            stranger.wait()

    def test_a_second_demo_a_taken_port_and_fewer_or_more_shards(self):
        demo = self.demo().ready()
        code, output = self.refused()
        self.assertEqual(code, 1)
        self.assertRegex(output, rf"another kintsugi demo \(pid {demo.process.pid}\) is running in ")
        code, output = self.refused(port=demo.port)
        self.assertEqual(code, 1)
        self.assertIn(f"port {demo.port} on 127.0.0.1 is taken", output)
        self.assertIn("--port", output)
        self.assertEqual(demo.end(), 0)

        code, output = self.refused(shards=1)
        self.assertEqual(code, 1)
        self.assertIn("2 shards already", output)
        with socket.socket() as s:  # s2's port is taken by somebody: it moves
            s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            s.bind(("127.0.0.1", demo.ports()[1]))
            s.listen()
            more = self.demo(shards=3).ready()
            self.assertEqual(len(set(more.ports())), 3)
            self.assertEqual(more.ports()[0], demo.ports()[0])
            self.assertNotIn(demo.ports()[1], more.ports())
            self.assertEqual(more.end(), 0)

    def test_ended_while_it_starts(self):
        for moment_s in (0.05, 0.6, 1.5, 2.5):
            demo = self.demo()
            time.sleep(moment_s)
            code = demo.end(signal.SIGTERM)
            if demo.output:  # else it had not begun
                self.assertEqual(code, 0, demo.output)
            self.assertEqual(processes_in(self.folder), [], demo.output)
        demo = self.demo().ready()
        self.assertEqual(demo.psql("SELECT count(*) FROM tenants"), "20")

    def test_killed_while_it_starts(self):
        for moment_s in (0.1, 0.7, 1.2, 1.8, 2.5):
            demo = self.demo()
            time.sleep(moment_s)
            demo.end(signal.SIGKILL)
        demo = self.demo().ready()
        self.assertEqual(demo.psql("SELECT count(*) FROM tenants"), "20")
        self.assertEqual(demo.end(), 0)
        self.assertEqual(processes_in(self.folder), [])

    def test_a_second_signal_ends_at_once_and_still_leaves_nothing(self):
        demo = self.demo().ready()
        sleeper = subprocess.Popen(["bash", "-c", f"{demo.psql_line()} -c 'SELECT pg_sleep(60)'"],
                                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            time.sleep(1)
            demo.process.send_signal(signal.SIGTERM)
            demo.wait_for("shutting down")
            time.sleep(1)
            self.assertIsNone(demo.process.poll(), "the running statement has its time")
            begin = time.monotonic()
            self.assertEqual(demo.end(signal.SIGTERM), 1)
            self.assertLess(time.monotonic() - begin, 25)
            self.assertEqual(processes_in(self.folder), [])
        finally:
            sleeper.kill()
            sleeper.wait()

    def test_the_two_minutes_of_the_readme(self):
        text = (pathlib.Path(__file__).parents[2] / "README.md").read_text()
        steps = re.findall(r"```sql\n(.*?)```\n\n```text\n(.*?)```", text, re.S)
        self.assertGreaterEqual(len(steps), 3)
        self.assertEqual(len(steps), text.count("```sql"), "every statement of the tour says what comes back")
        demo = self.demo(shards=4).ready()
        # The line for the command line is as good as that for psql.
        line = re.search(r"^ +(\S+ shard list .*)$", demo.output, re.M).group(1)
        said = subprocess.run(["bash", "-c", line], capture_output=True, text=True, timeout=120, cwd="/")
        self.assertEqual((said.returncode, said.stdout.count("online")), (0, 4), said.stderr)
        said = subprocess.run(["bash", "-c", demo.psql_line() + " -X -v ON_ERROR_STOP=1"], capture_output=True, text=True,
                              input="".join(sql + "\\echo =====\n" for sql, _ in steps), timeout=180, cwd="/")
        self.assertEqual(said.returncode, 0, said.stderr)
        answers = re.sub(r" +$", "", said.stdout, flags=re.M).split("=====\n")
        for (sql, expected), answer in zip(steps, answers):
            self.assertEqual(answer.strip("\n"), expected.strip("\n"), sql)

    def test_what_cannot_work_says_what_to_do(self):
        code, output = self.refused(data="/proc/demo")
        self.assertEqual(code, 1)
        self.assertIn("cannot write in /proc/demo", output)
        self.assertIn("--data", output)

        code, output = self.refused(environment={"KINTSUGI_PG_BIN": "/none"})
        self.assertEqual(code, 1)
        self.assertIn("KINTSUGI_PG_BIN=/none does not hold initdb", output)

        (self.folder / "photos").mkdir()
        (self.folder / "photos" / "cat.jpg").write_text("")
        code, output = self.refused(data=self.folder / "photos")
        self.assertEqual(code, 1)
        self.assertIn("holds something else than a demo", output)

        if os.geteuid() == 0:
            closed = self.folder / "closed"
            closed.mkdir(mode=0o700)
            code, output = self.refused(data=closed / "demo")
            self.assertEqual(code, 1)
            self.assertIn("user postgres, who cannot enter", output)
            self.assertIn("--data", output)


if __name__ == "__main__":
    unittest.main()
