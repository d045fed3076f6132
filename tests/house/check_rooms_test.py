#!/usr/bin/env python3
"""Shows that scripts/check_rooms can fail: small houses in a temporary folder, each with one thing wrong."""
import pathlib
import subprocess
import sys
import tempfile
import unittest
from importlib.machinery import SourceFileLoader

ROOT = pathlib.Path(__file__).resolve().parents[2]
SCRIPT = ROOT / "scripts" / "check_rooms"
check_rooms = SourceFileLoader("check_rooms", str(SCRIPT)).load_module()

HOUSE = {
    "base/CMakeLists.txt": "kintsugi_room(base SOURCES log.cc THIRD_PARTY spdlog::spdlog)  # kintsugi_room(no)\n",
    "base/log.cc": '#include "base/log.h"\n#include <spdlog/spdlog.h>\n#include <sys/socket.h>\n',
    "base/log.h": "#include <string>\n#include <tl/expected.hpp>\n",
    "base/io/CMakeLists.txt": "kintsugi_room(base/io DEPENDS base\n  SOURCES loop.cc)\n",
    "base/io/loop.cc": '#include <openssl/ssl.h>\n#include "base/log.h"\n',
    "base/io/loop.h": "\n",
    "wire/CMakeLists.txt": "kintsugi_room(wire DEPENDS base SOURCES frame.cc)\n",
    "wire/frame.h": '#include "base/log.h"\n',
    "wire/frame.cc": '#include "wire/frame.h"\n#include <openssl/evp.h>\n',
    "shardmap/CMakeLists.txt": "kintsugi_room(shardmap DEPENDS base SOURCES map.cc)\n",
    "shardmap/map.cc": "#include <sqlite3.h>\n#include <pqxx/pqxx>\n",
    "parser/CMakeLists.txt": "kintsugi_room(parser DEPENDS base SOURCES parse.cc)\n",
    "parser/parse.cc": '#include <antlr4-runtime.h>\n#include "KintsugiLexer.h"\n',
    "parser/ast.h": "\n",
    "planner/CMakeLists.txt": "kintsugi_room(planner DEPENDS base parser shardmap SOURCES plan.cc)\n",
    "planner/plan.cc": '#include "parser/ast.h"\n',
    "executor/CMakeLists.txt": "kintsugi_room(executor DEPENDS base base/io planner wire shardmap SOURCES pool.cc)\n",
    "executor/pool.cc": '#include "base/io/loop.h"\n#include "wire/frame.h"\n',
    "executor/catalog_reader.cc": "#include <pqxx/connection>\n",
    "app/CMakeLists.txt": "kintsugi_room(app DEPENDS executor base SOURCES main.cc)\nadd_executable(kintsugi main.cc)\n"
                          "target_link_libraries(kintsugi PRIVATE kg_app)\n",
    "app/main.cc": "#include <CLI/CLI.hpp>\n#include <toml++/toml.h>\n",
    "tests/wire/frame_test.cc": '#include "executor/pool.h"\n#include <gtest/gtest.h>\n#include <sqlite3.h>\n',
}


class CheckRooms(unittest.TestCase):
    def check(self, changes=None, exceptions=None):
        with tempfile.TemporaryDirectory() as folder:
            root = pathlib.Path(folder)
            for name, text in {**HOUSE, **(changes or {})}.items():
                (root / name).parent.mkdir(parents=True, exist_ok=True)
                (root / name).write_text(text)
            return check_rooms.House(root, exceptions or {}).check()

    def assertFinding(self, changes, *words, exceptions=None):
        findings = self.check(changes, exceptions).findings
        self.assertEqual(len(findings), 1, findings)
        for word in words:
            self.assertIn(word, findings[0])

    def test_the_sound_house_has_no_findings(self):
        self.assertEqual(self.check().findings, [])

    def test_an_include_against_the_arrows(self):
        self.assertFinding({"wire/frame.cc": '\n#include "executor/pool.h"\n'}, "wire/frame.cc:2", "executor")

    def test_an_include_that_is_only_reached_through_another_room(self):
        self.assertFinding({"executor/pool.cc": '#include "parser/ast.h"\n'}, "executor/pool.cc:1", "no arrow to parser")

    def test_the_event_loop_is_not_base(self):
        self.assertFinding({"wire/frame.cc": '#include "base/io/loop.h"\n'}, "no arrow to base/io")

    def test_a_declared_arrow_that_the_design_does_not_have(self):
        self.assertFinding({"wire/CMakeLists.txt": "kintsugi_room(wire DEPENDS base shardmap SOURCES frame.cc)\n"},
                           "declares an arrow to shardmap")

    def test_a_declared_circle(self):
        changes = {"base/CMakeLists.txt": "kintsugi_room(base DEPENDS wire SOURCES log.cc)\n"}
        findings = self.check(changes).findings
        self.assertTrue(any("circle" in finding for finding in findings), findings)

    def test_an_arrow_that_is_hidden_from_kintsugi_room(self):
        text = HOUSE["wire/CMakeLists.txt"] + "target_link_libraries(kg_wire PRIVATE kg_shardmap)\n"
        self.assertFinding({"wire/CMakeLists.txt": text}, "kg_shardmap", "past kintsugi_room")

    def test_an_arrow_to_nowhere(self):
        self.assertFinding({"wire/CMakeLists.txt": "kintsugi_room(wire DEPENDS bass SOURCES frame.cc)\n"}, "bass")

    def test_a_room_that_the_design_does_not_know(self):
        self.assertFinding({"attic/CMakeLists.txt": "kintsugi_room(attic SOURCES a.cc)\n"}, "attic")

    def test_third_party_headers_stay_with_their_owner(self):
        for name, header in {
            "planner/plan.cc": "antlr4-runtime.h",
            "base/log.h": "atn/ParserATNSimulator.h",
            "executor/pool.cc": "pqxx/pqxx",
            "wire/frame.cc": "sqlite3.h",
            "base/io/loop.cc": "spdlog/spdlog.h",
            "executor/catalog_reader.cc": "httplib.h",
            "shardmap/map.cc": "toml++/toml.h",
            "app/main.cc": "openssl/ssl.h",
            "parser/parse.cc": "gtest/gtest.h",
        }.items():
            with self.subTest(header=header):
                self.assertFinding({name: f"#include <{header}>\n"}, f"{name}:1", header, "belongs to")

    def test_a_library_that_nobody_owns(self):
        self.assertFinding({"wire/frame.cc": "#include <boost/asio.hpp>\n"}, "boost/asio.hpp", "nobody wrote down")

    def test_an_include_that_does_not_start_at_the_root(self):
        self.assertFinding({"wire/frame.cc": '#include "frame.h"\n'}, "start at the root")

    def test_the_program_must_not_include_tests(self):
        self.assertFinding({"wire/frame.cc": '#include "tests/wire/bytes.h"\n', "tests/wire/bytes.h": "\n"}, "tests only")

    def test_a_file_that_is_too_long(self):
        self.assertFinding({"wire/frame.cc": "int x;\n" * (check_rooms.FILE_MAX + 1)}, "wire/frame.cc", "file of")

    def test_a_file_that_comes_near_is_a_warning(self):
        house = self.check({"wire/frame.cc": "int x;\n" * (check_rooms.FILE_WARN + 1)})
        self.assertEqual(house.findings, [])
        self.assertEqual(len(house.warnings), 1)

    def function(self, lines):
        body = '  if (c == \'{\' || s == "{" || r == R"x(}{)x") return; // {\n' + "  f();\n" * (lines - 5)
        return f"namespace a {{\nclass B {{\n  int x = 1;\n}};\n\nvoid B::run(int a,\n            int b) {{\n{body}  /* }} */\n}}\n}}\n"

    def test_a_function_that_is_too_long(self):
        self.assertFinding({"wire/frame.cc": self.function(check_rooms.FUNCTION_MAX + 1)}, "wire/frame.cc:B::run",
                           f"function of {check_rooms.FUNCTION_MAX + 1} lines")

    def test_a_function_of_the_allowed_length(self):
        self.assertEqual(self.check({"wire/frame.cc": self.function(check_rooms.FUNCTION_MAX)}).findings, [])

    def test_a_lambda_counts_to_its_function(self):
        found = check_rooms.functions("int f() {\n  auto g = [](int a) {\n    return a;\n  };\n  return g(1);\n}\n")
        self.assertEqual(found, [("f", 1, 6)])

    def test_an_exception_must_not_grow(self):
        long = {"wire/frame.cc": "int x;\n" * 801}
        self.assertFinding(long, "grew from 800", exceptions={"wire/frame.cc": 800})
        house = self.check({"wire/frame.cc": "int x;\n" * 790}, {"wire/frame.cc": 800})
        self.assertEqual((house.findings, len(house.warnings)), ([], 1))

    def test_an_exception_that_is_no_longer_needed(self):
        self.assertFinding({}, "take it off", exceptions={"wire/frame.cc": 800})
        self.assertFinding({}, "no longer exists", exceptions={"wire/gone.cc": 800})

    def test_the_program_ends_with_one_when_something_is_found(self):
        with tempfile.TemporaryDirectory() as folder:
            run = subprocess.run([sys.executable, SCRIPT, "--root", folder], capture_output=True, text=True)
        self.assertEqual(run.returncode, 1)
        self.assertIn("nothing was checked", run.stdout)

    def test_the_house_itself(self):
        run = subprocess.run([sys.executable, SCRIPT], capture_output=True, text=True)
        self.assertEqual(run.returncode, 0, run.stdout)


if __name__ == "__main__":
    unittest.main()
