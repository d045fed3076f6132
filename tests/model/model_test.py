#!/usr/bin/env python3
"""Checks tests/model/move.pml with SPIN: the protocol holds in every state, and without any one of its rules it does not.

Usage: model_test.py [--full]. Ends with 77 (skipped) when SPIN is not installed. --full: two writers, any lease runs out,
twice; fifty million states, minutes, 3 GB. It was run with no other result.
"""
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

MODEL = pathlib.Path(__file__).resolve().parent / "move.pml"
# The comparison finds what the drain would have missed: that one is looked for without it.
ALSO = {"DRAIN": ["-DWITHOUT_VERIFY", "-DUNSPOILED"]}
RULES = ["SEEN", "TAKEN", "DRAIN", "VERIFY", "LEASES", "SENDING_AWAY", "CAREFUL_WRITES", "WAITING_FOR_WRITERS"]
DEPTH = 2000000
FULL = ["-DFULL"] if "--full" in sys.argv else []


def run(command, directory):
    done = subprocess.run(command, cwd=directory, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=600)
    if done.returncode != 0:
        raise SystemExit(f"{' '.join(command)} ended with {done.returncode}\n{done.stdout}")
    return done.stdout


def check(without):
    """(errors, states) of the model, without this rule."""
    with tempfile.TemporaryDirectory() as directory:
        flags = FULL + ([f"-DWITHOUT_{without}"] + ALSO.get(without, []) if without else [])
        run(["spin", *flags, "-a", str(MODEL)], directory)
        run(["gcc", "-O2", "-w", "-DSAFETY", "-DCOLLAPSE", "-DMEMLIM=3000", "-o", "pan", "pan.c"], directory)
        text = run(["./pan", f"-m{DEPTH}"], directory)
        if without is None and "max search depth too small" in text or "out of memory" in text:
            raise SystemExit("not all states were seen:\n" + text)
        errors = int(re.search(r"errors: (\d+)", text).group(1))
        states = int(float(re.search(r"([\d.e+]+) states, stored", text).group(1)))
        if errors and without is None:
            shutil.copy(MODEL, directory)
            trail = next(pathlib.Path(directory).glob("*.trail"))
            shutil.copy(trail, pathlib.Path(directory) / "move.pml.trail")
            text += subprocess.run(["spin", "-t", "-p", "-g", "move.pml"], cwd=directory, text=True,
                                   capture_output=True).stdout[-12000:]
        return errors, states, text


def main():
    if not shutil.which("spin"):
        print("spin is not installed (scripts/install-deps test)")
        return 77
    wrong = 0
    errors, states, text = check(None)
    print(f"the protocol: {states} states, {errors} errors")
    if errors:
        print(text)
        wrong += 1
    for rule in RULES:
        errors, states, _ = check(rule)
        print(f"without {rule.lower()}: {'fails, as it must' if errors else 'DOES NOT FAIL: the model does not see this rule'}")
        wrong += errors == 0
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
