#!/usr/bin/env python3
"""The program as a script meets it: exit codes, what goes to which stream, typos. argv[1] is the program."""
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import tomllib
import unittest

PROGRAM = sys.argv.pop(1)


class Cli(unittest.TestCase):
    def run_program(self, *arguments, **environment):
        run = subprocess.run([PROGRAM, *arguments], capture_output=True, text=True, timeout=20,
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

    def test_check_config_of_a_wrong_file(self):
        path = self.file("[pool]\nsiz = 7\nmode = 1\n")
        code, out, err = self.run_program("check-config", path)
        self.assertEqual((code, out), (1, ""))
        self.assertTrue(err.startswith(f"{path}:2: unknown key pool.siz (did you mean size?)"), err)
        self.assertEqual(len(err.splitlines()), 2)
        code, out, err = self.run_program("check-config", path, "--json")
        self.assertEqual((code, err), (1, ""))
        self.assertEqual(len(json.loads(out)["problems"]), 2)

    def test_check_config_of_no_file(self):
        code, _, err = self.run_program("check-config", "/none/kintsugi.toml")
        self.assertEqual(code, 1)
        self.assertIn("/none/kintsugi.toml", err)


if __name__ == "__main__":
    unittest.main()
