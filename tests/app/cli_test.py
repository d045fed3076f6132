#!/usr/bin/env python3
"""The program as a script meets it: exit codes, what goes to which stream, typos. argv[1] is the program."""
import contextlib
import json
import os
import pathlib
import re
import shlex
import signal
import socket
import subprocess
import sys
import tempfile
import tomllib
import unittest

PROGRAM = os.path.abspath(sys.argv.pop(1))


class Cli(unittest.TestCase):
    def folder(self):
        """Where a program of these tests runs and may leave its files."""
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        return folder.name

    def run_program(self, *arguments, **environment):
        run = subprocess.run([PROGRAM, *arguments], capture_output=True, text=True, timeout=120, cwd=self.folder(),
                             env={**os.environ, **environment})
        return run.returncode, run.stdout, run.stderr

    def file(self, text):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        path = pathlib.Path(folder.name) / "kintsugi.toml"
        path.write_text(text)
        return str(path)

    def test_version(self):
        code, out, _ = self.run_program("version")
        self.assertEqual(code, 0)
        self.assertRegex(out, r"^kintsugi \d+\.\d+\.\d+\n$")
        code, out, _ = self.run_program("version", "--json")
        self.assertRegex(json.loads(out)["version"], r"^\d+\.\d+\.\d+$")

    def test_help_goes_to_standard_output_and_is_no_error(self):
        for arguments in (["--help"], ["-h"]):
            code, out, err = self.run_program(*arguments)
            self.assertEqual((code, err), (0, ""))
            for command in ("serve", "demo", "check-config", "version"):
                self.assertIn(command, out)
        code, out, _ = self.run_program("check-config", "--help")
        self.assertEqual(code, 0)
        self.assertIn("Usage: kintsugi check-config", out)

    def test_help_shows_examples_and_they_are_no_wrong_usage(self):
        code, out, _ = self.run_program("help")
        self.assertEqual(code, 0)
        words = re.findall(r"^  ([a-z-]+) {2,}", out.split("Subcommands:")[1], re.M)
        paths = []
        for word in words:
            code, out, _ = self.run_program("help", word)
            self.assertEqual(code, 0)
            inner = re.findall(r"^  ([a-z-]+) {2,}", out.split("Subcommands:")[1], re.M) if "Subcommands:" in out else []
            paths += [(word, each) for each in inner] or [(word,)]
        shown = 0
        for path in paths:
            _, out, _ = self.run_program("help", *path)
            for line in re.findall(r"^  kintsugi (.*)$", out, re.M):
                shown += 1
                if path[0] in ("serve", "demo", "check-config"):
                    continue
                code, _, err = self.run_program(*shlex.split(line), KINTSUGI_ADMIN="http://127.0.0.1:1", KINTSUGI_TOKEN="x")
                self.assertNotEqual(code, 2, f"{line}: {err}")
        self.assertGreater(shown, 30)

    def test_wrong_usage_is_2_and_says_what_was_meant(self):
        for arguments, words in {
            (): "Usage",
            ("verison",): "'verison' is not a command (did you mean version?)",
            ("serv",): "'serv' is not a command (did you mean serve?)",
            ("serve", "--lisen", "x"): "no option --lisen (did you mean --listen?)",
            ("serve", "--set", "pool.size"): "--set SECTION.KEY=VALUE",
            ("demo", "--shards", "0"): "--shards",
            ("demo", "--port", "here"): "--port",
            ("banana",): "'banana' is not a command",
            ("--hlp",): "no option --hlp (did you mean --help?)",
            ("version", "--jsn"): "no option --jsn (did you mean --json?)",
            ("version", "now"): "'now' is one word too many",
            ("shard",): "kintsugi shard: which? list, add, set, remove",
            ("shard", "--json"): "kintsugi shard: which? list, add, set, remove",
            ("--admin", "http://127.0.0.1:1", "job"): "kintsugi job: which? list, show",
            ("help", "moev"): "'moev' is not a command (did you mean move?)",
            ("help", "shard", "lsit"): "'lsit' is not a command (did you mean list?)",
            ("moev", "--help"): "'moev' is not a command (did you mean move?)",
            ("shard", "lsit", "-h"): "'lsit' is not a command (did you mean list?)",
            ("map", "create", "x", "--by", "hash", "--key", "int", "--shardlets", "-1"): "--shardlets",
            ("check-config",): "FILE is required",
            ("check-config", "a", "b"): "'b' is one word too many",
        }.items():
            with self.subTest(arguments=arguments):
                code, out, err = self.run_program(*arguments)
                self.assertEqual((code, out), (2, ""))
                self.assertIn(words, err)

    def test_check_config_of_a_sound_file(self):
        path = self.file('[pool]\nsize = 7\n[[user]]\nname = "a"\npassword = "geheim"\n')
        code, out, err = self.run_program("check-config", path, KINTSUGI_LOG_LEVEL="error")
        self.assertEqual((code, err), (0, ""))
        self.assertNotIn("geheim", out)
        read = tomllib.loads(out)
        self.assertEqual((read["pool"]["size"], read["log"]["level"]), (7, "error"))
        code, out, err = self.run_program("check-config", path, "--json")
        read = json.loads(out)
        self.assertEqual(read["config"]["pool"]["size"], 7)
        self.assertEqual(read["config"]["user"][0]["name"], "a")
        self.assertEqual(read["origins"], {"pool.size": f"{path}:2"})

    def test_the_version_as_an_option(self):
        self.assertEqual(self.run_program("--version"), self.run_program("version"))

    def test_an_address_that_is_none(self):
        code, _, err = self.run_program("shard", "list", KINTSUGI_ADMIN="ftp://here", KINTSUGI_TOKEN="x")
        self.assertEqual(code, 1)
        self.assertIn('"ftp://here" is no address of a router', err)

    def test_that_no_router_answers_is_4_whatever_else_is_missing(self):
        for environment in ({"KINTSUGI_TOKEN": ""}, {"KINTSUGI_TOKEN": "x"}):
            for words in (("shard", "list"), ("move", "a", "--to", "b"), ("recover", "check"), ("map", "export")):
                code, out, err = self.run_program(*words, KINTSUGI_ADMIN="http://127.0.0.1:1", **environment)
                self.assertEqual((code, out), (4, ""), words)
                self.assertIn("no router answers at http://127.0.0.1:1", err)

    def test_check_config_reads_connection_strings_and_does_not_show_wrong_ones(self):
        path = self.file('[[shard]]\nname = "a"\ndsn = "dbname=x password=two words"\n')
        code, _, err = self.run_program("check-config", path)
        self.assertEqual(code, 1)
        self.assertTrue(err.startswith(f"{path}:3: shard.dsn is (not shown); allowed: a libpq connection string"), err)
        self.assertNotIn("words", err)

    def test_check_config_of_a_wrong_file(self):
        path = self.file("[pool]\nsiz = 7\nmode = 1\n")
        code, out, err = self.run_program("check-config", path)
        self.assertEqual((code, out), (1, ""))
        self.assertTrue(err.startswith(f"{path}:2: unknown key pool.siz (did you mean size?)"), err)
        self.assertEqual(len(err.splitlines()), 2)
        code, out, err = self.run_program("check-config", path, "--json")
        self.assertEqual((code, err), (1, ""))
        self.assertEqual(len(json.loads(out)["problems"]), 2)

    def test_check_config_looks_at_the_certificates_of_both_listeners(self):
        for section in ("server", "admin"):
            path = self.file(f'[{section}]\ntls_cert = "/nowhere.pem"\n')
            code, _, err = self.run_program("check-config", path)
            self.assertEqual(code, 1)
            self.assertIn(f"{path}:2: {section}.tls_cert stands alone", err)
            self.assertIn(f'{section}.tls_cert: cannot read "/nowhere.pem"', err)

    def test_a_folder_is_no_configuration(self):
        folder = self.folder()
        for command in (("check-config", folder), ("serve", "--config", folder)):
            code, out, err = self.run_program(*command)
            self.assertEqual((code, out), (1, ""))
            self.assertIn(f"{folder}: is a folder, and no file", err)

    def test_check_config_of_no_file(self):
        code, _, err = self.run_program("check-config", "/none/kintsugi.toml")
        self.assertEqual(code, 1)
        self.assertIn("/none/kintsugi.toml", err)

    # The shard of these does not exist: a router starts all the same, and serve is what is looked at here.
    SERVE = '[server]\nlisten = "127.0.0.1:0"\nmax_clients = 3000\n[admin]\nlisten = "127.0.0.1:0"\n[[user]]\nname = "app"\npassword = "geheim"\n' \
            '[[shard]]\nname = "s1"\ndsn = "host=127.0.0.1 port=1 dbname=app"\n'

    @contextlib.contextmanager
    def serving(self, *arguments, **environment):
        process = subprocess.Popen(["bash", "-c", 'ulimit -S -n 256; exec "$0" "$@"', PROGRAM, "serve", *arguments], cwd=self.folder(),
                                   stderr=subprocess.PIPE, text=True, env={**os.environ, **environment})
        try:
            process.first_line = process.stderr.readline()
            yield process
        finally:
            process.kill()
            process.wait()
            process.stderr.close()

    def test_serve_says_in_one_line_where_it_listens_and_ends_with_0(self):
        with self.serving("--config", self.file(self.SERVE)) as process:
            self.assertRegex(process.first_line, r" info listening address=127\.0\.0\.1:\d+ database=app shards=1 epoch=1 version=\S+ "
                                                 rf"pid={process.pid}\n$")
            port = int(re.search(r":(\d+) database", process.first_line).group(1))
            socket.create_connection(("127.0.0.1", port)).close()
            limits = pathlib.Path(f"/proc/{process.pid}/limits").read_text()
            self.assertGreater(int(re.search(r"Max open files +(\d+)", limits).group(1)), 3000)
            process.send_signal(signal.SIGHUP)
            process.send_signal(signal.SIGINT)
            self.assertEqual(process.wait(20), 0)
            self.assertNotIn("geheim", process.stderr.read())

    def test_serve_without_shards_starts_with_an_empty_map_in_its_store(self):
        data = str(pathlib.Path(self.file("")).parent)
        with self.serving("--data", data, "--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0") as process:
            self.assertRegex(process.first_line, r"listening address=\S+ database=app shards=0 epoch=0 ")
            self.assertTrue((pathlib.Path(data) / "map.db").exists())
            self.assertTrue((pathlib.Path(data) / "replica.db").exists())
            process.send_signal(signal.SIGINT)
            self.assertEqual(process.wait(20), 0)

    def test_serve_makes_the_folder_of_its_files(self):
        data = os.path.join(self.folder(), "of a router", "new")
        with self.serving("--data", data, "--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0") as process:
            self.assertIn(" listening ", process.first_line)
            process.send_signal(signal.SIGTERM)
            self.assertEqual(process.wait(20), 0)
        self.assertLessEqual({"admin.token", "map.db", "replica.db"}, set(os.listdir(data)))
        code, _, err = self.run_program("serve", "--data", os.path.join(data, "map.db", "x"))
        self.assertEqual(code, 1)
        self.assertIn("cannot make the folder", err)

    def test_a_second_router_on_the_same_files_is_refused(self):
        """Of a SQLite store a router takes itself to be the only one; and each has a replica of its own."""
        data, other = str(pathlib.Path(self.file("")).parent), str(pathlib.Path(self.file("")).parent)
        ports = ("--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0")
        with self.serving("--data", data, *ports) as process:
            for arguments, file in ((("--data", data), "replica.db"), (("--data", other, "--set", f"map.store=sqlite:{data}/map.db"), "map.db")):
                code, out, err = self.run_program("serve", *arguments, *ports)
                self.assertEqual((code, out), (1, ""))
                self.assertIn(f"{data}/{file} is used by another router (process {process.pid})", err)
        with self.serving("--data", data, *ports) as process:  # killed, it has left nothing behind that is in the way
            self.assertIn("listening", process.first_line)

    def test_two_signals_at_once_end_it_and_do_not_crash_it(self):
        for _ in range(5):
            with self.serving("--config", self.file(self.SERVE)) as process:
                process.send_signal(signal.SIGTERM)
                process.send_signal(signal.SIGINT)
                self.assertIn(process.wait(20), (0, 1))

    def test_serve_takes_the_file_under_data_the_environment_and_flags_above_both(self):
        data = str(pathlib.Path(self.file(self.SERVE)).parent)
        with self.serving("--data", data, KINTSUGI_DATABASE_NAME="shop") as process:
            self.assertIn(" database=shop ", process.first_line)
        with self.serving("--set", "database.name=store", KINTSUGI_DATABASE_NAME="shop", KINTSUGI_DATA=data) as process:
            self.assertIn(" database=store ", process.first_line)
        with self.serving("--data", data, "--listen", "[::1]:0") as process:
            self.assertIn(" address=[::1]:", process.first_line)

    def test_serve_that_cannot_begin(self):
        path = self.file(self.SERVE + "[pool]\nsiz = 1\n")
        code, out, err = self.run_program("serve", "--config", path)
        self.assertEqual((code, out), (1, ""))
        self.assertIn(f"{path}:13: unknown key pool.siz (did you mean size?)", err)
        code, _, err = self.run_program("serve", "--listen", "0.0.0.0:0")
        self.assertEqual(code, 1)
        self.assertIn("needs users with passwords", err)
        with socket.socket() as taken:
            taken.bind(("127.0.0.1", 0))
            taken.listen()
            port = taken.getsockname()[1]
            code, _, err = self.run_program("serve", "--config", self.file(self.SERVE), "--listen", f"127.0.0.1:{port}")
        self.assertEqual(code, 1)
        self.assertIn(str(port), err)
        self.assertNotIn("geheim", err)


if __name__ == "__main__":
    unittest.main()
