#!/usr/bin/env python3
"""Draws each write's wait over time with the states of the move. Usage: move_picture.py DIRECTORY"""
import csv
import pathlib
import sys

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt

directory = pathlib.Path(sys.argv[1])
with open(directory / "move_waits.csv", newline="") as file:
    waits = [(float(row["at_s"]), float(row["wait_ms"])) for row in csv.DictReader(file)]
with open(directory / "move_states.csv", newline="") as file:
    states = [(float(row["at_s"]), row["state"]) for row in csv.DictReader(file)]
figure, (over, close) = plt.subplots(2, 1, figsize=(12, 8))
online = next((at for at, state in states if state == "online"), states[-1][0])
for axes, begin, end in ((over, 0, waits[-1][0]), (close, online - 0.1, online + 0.1)):
    some = [(at, wait) for at, wait in waits if begin <= at <= end]
    # As pixels also within the SVG: there are a hundred thousand of them.
    axes.plot([at for at, _ in some], [wait for _, wait in some], ".", markersize=2, rasterized=True)
    for at, state in states:
        if begin <= at <= end:
            axes.axvline(at, color="goldenrod", linewidth=0.8)
            axes.text(at, axes.get_ylim()[1], state, rotation=90, va="top", ha="right", fontsize=7)
    axes.set_xlabel("seconds")
    axes.set_ylabel("wait of a write, ms")
    axes.set_yscale("symlog", linthresh=1)
    axes.set_ylim(bottom=0)
figure.suptitle("Four clients update as fast as they can while their million rows move")
figure.savefig(directory / "move.svg", dpi=120, bbox_inches="tight")
print(f"picture: {directory / 'move.svg'}")
