#!/usr/bin/env python3
"""Shows that scripts/run-tests fails when it must: the script runs in an empty folder with a cmake and a ctest that say
what a case tells them to."""
import os
import pathlib
import shutil
import subprocess
import tempfile
import unittest

SCRIPT = pathlib.Path(__file__).resolve().parents[2] / "scripts" / "run-tests"
ALL_GOOD = "1/3 Test #1: A.B .... Passed 0.01 sec\n100% tests passed, 0 tests failed out of 3\n"


class RunTests(unittest.TestCase):
    def run_tests(self, *stages, ctest=ALL_GOOD, ctest_code=0, cmake_code=0, fuzz=None, seconds="60"):
        with tempfile.TemporaryDirectory() as folder:
            root = pathlib.Path(folder)
            (root / "scripts").mkdir()
            (root / "bin").mkdir()
            shutil.copy(SCRIPT, root / "scripts" / "run-tests")
            (root / "said").write_text(ctest)
            programs = {"bin/ctest": f"#!/bin/sh\ncat {root}/said\nexit {ctest_code}\n",
                        "bin/cmake": f"#!/bin/sh\nexit {cmake_code}\n"}
            if fuzz is not None:
                programs["tests/fuzz/run"] = f"#!/bin/sh\nexit {fuzz}\n"
            for name, text in programs.items():
                (root / name).parent.mkdir(parents=True, exist_ok=True)
                (root / name).write_text(text)
                (root / name).chmod(0o755)
            run = subprocess.run([root / "scripts" / "run-tests", *stages], capture_output=True, text=True, timeout=50,
                                 env={**os.environ, "PATH": f"{root}/bin:{os.environ['PATH']}",
                                      "KINTSUGI_TEST_SECONDS": seconds})
        return run.returncode, run.stdout.rstrip().splitlines()

    def test_everything_passes_and_is_summed_over_the_stages(self):
        code, lines = self.run_tests("test", "debug", "tsan", "fuzz", fuzz=0)
        self.assertEqual((code, lines[-1]), (0, "10 passed, 0 failed"))

    def test_without_a_name_the_tests_run_as_released(self):
        code, lines = self.run_tests(fuzz=0)
        self.assertEqual((code, lines[-1]), (0, "3 passed, 0 failed"))

    def test_a_failing_test(self):
        said = "2/3 Test #2: A.C ...***Failed 0.1 sec\nexpected 1\n67% tests passed, 1 tests failed out of 3\n"
        code, lines = self.run_tests("test", ctest=said, ctest_code=8)
        self.assertEqual((code, lines[-1]), (1, "2 passed, 1 failed"))
        self.assertIn("expected 1", lines)

    def test_a_build_that_fails(self):
        code, lines = self.run_tests("test", cmake_code=1)
        self.assertEqual((code, lines[-1]), (1, "0 passed, 1 failed"))

    def test_nothing_ran(self):
        code, lines = self.run_tests("test", ctest="No tests were found!!!\n")
        self.assertEqual((code, lines[-1]), (1, "0 passed, 1 failed"))
        code, lines = self.run_tests("fuzz")
        self.assertEqual((code, lines[-1]), (1, "0 passed, 1 failed"))

    def test_ctest_dies_before_it_counts(self):
        code, lines = self.run_tests("test", ctest="1/3 Test #1: A.B .... Passed 0.01 sec\n", ctest_code=124)
        self.assertEqual((code, lines[-1]), (1, "0 passed, 1 failed"))

    def test_ctest_counts_well_but_ends_badly(self):
        code, lines = self.run_tests("test", ctest_code=1)
        self.assertEqual((code, lines[-1]), (1, "3 passed, 1 failed"))

    def test_a_skipped_test_is_not_a_passed_one(self):
        code, lines = self.run_tests("test", ctest="1/3 Test #1: A.B ...***Skipped 0.01 sec\n" + ALL_GOOD)
        self.assertEqual((code, lines[-1]), (0, "2 passed, 0 failed"))
        self.assertTrue(lines[-2].startswith("1 skipped"), lines)

    def test_a_fuzz_target_that_crashes(self):
        code, lines = self.run_tests("fuzz", fuzz=77)
        self.assertEqual((code, lines[-1]), (1, "0 passed, 1 failed"))

    def test_the_time_is_over(self):
        code, lines = self.run_tests("test", seconds="0")
        self.assertEqual((code, lines[-1]), (1, "0 passed, 1 failed"))

    def test_a_stage_that_does_not_exist(self):
        self.assertEqual(self.run_tests("tests")[0], 2)


if __name__ == "__main__":
    unittest.main()
