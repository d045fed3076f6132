"""The tables and the picture under bench/out/: JSON with everything, Markdown to read, PNG to show."""

import json
import os
import platform
import re
import statistics
import subprocess


def first_line(*command):
    try:
        return subprocess.run(command, capture_output=True, text=True).stdout.strip().splitlines()[0]
    except (OSError, IndexError):
        return "?"


def machine(program):
    with open("/proc/cpuinfo") as file:
        text = file.read()
    with open("/proc/meminfo") as file:
        memory = int(re.search(r"MemTotal:\s+(\d+)", file.read()).group(1)) >> 20
    name = re.search(r"model name\s*: (.*)", text)
    return {
        "cpu": name.group(1) if name else platform.machine(),
        "cores": os.cpu_count(),
        "memory_gb": memory,
        "kernel": platform.release(),
        "load_before": os.getloadavg()[0],
        "postgresql": first_line("/usr/lib/postgresql/15/bin/postgres", "--version"),
        "pgbouncer": first_line("/usr/sbin/pgbouncer", "--version"),
        "kintsugi": first_line(program, "version"),
        "commit": first_line("git", "rev-parse", "--short", "HEAD"),
    }


def middle(rounds, key):
    values = [r[key] for r in rounds if key in r]
    return statistics.median(values) if values else None


def number(value, form="{:.1f}"):
    return form.format(value) if value is not None else "-"


def ratio(a, b):
    return f"{a / b:.2f}" if a and b else "-"


def summarise(results):
    """{cell: {system: {"tps", "cpu_us", ...} of the medians}}; TPS ratios are medians of each round's own ratio."""
    summary = {}
    for cell, systems in results.items():
        row = summary[cell] = {}
        for name, rounds in systems.items():
            row[name] = {key: middle(rounds, key) for key in ("tps", "cpu_us", "user_us", "system_us")}
            errors = [r["error"] for r in rounds if "error" in r]
            if errors:
                row[name]["error"] = errors[0]
            for other in ("direct", "PgBouncer", "Kintsugi 1"):
                pairs = [
                    a["tps"] / b["tps"]
                    for a, b in zip(rounds, systems.get(other, []))
                    if "tps" in a and "tps" in b
                ]
                row[name][f"over {other}"] = statistics.median(pairs) if pairs else None
    return summary


def write(out, facts, summary, idle, instructions, raw):
    os.makedirs(out, exist_ok=True)
    with open(os.path.join(out, "results.json"), "w") as file:
        json.dump(
            {
                "machine": facts,
                "summary": {str(c): s for c, s in summary.items()},
                "idle": idle,
                "instructions": instructions,
                "rounds": {str(c): s for c, s in raw.items()},
            },
            file,
            indent=1,
        )
    with open(os.path.join(out, "results.md"), "w") as file:
        file.write("\n".join(markdown(facts, summary, idle, instructions)) + "\n")
    if summary:
        picture(os.path.join(out, "relay.png"), summary, facts)


def markdown(facts, summary, idle, instructions):
    yield "# Side by side"
    yield ""
    yield (
        f"{facts['cpu']}, {facts['cores']} cores, {facts['memory_gb']} GB, Linux {facts['kernel']}; {facts['postgresql']}; "
        f"{facts['pgbouncer']}; {facts['kintsugi']} at {facts['commit']}. Load before: {facts['load_before']:.1f}. "
        f"{facts['how']}"
    )
    yield ""
    yield (
        "Client, proxy and PostgreSQL share the cores. TPS ratios are medians over interleaved rounds. CPU is that of the proxy's "
        "process, user and system, a transaction (a `simple update` is five statements), without logging in. PgBouncer 1.18 has no "
        "protocol-level prepared statements in transaction pooling: those cells are empty because it cannot run them."
    )
    if summary:
        yield ""
        yield (
            "| cell | direct TPS | PgBouncer / direct | Kintsugi 1 / direct | Kintsugi 2 / direct | Kintsugi 1 / PgBouncer | "
            "Kintsugi 2 / Kintsugi 1 | CPU us: PgBouncer | Kintsugi 1 (user + system) | Kintsugi 2 | CPU Kintsugi 1 / PgBouncer |"
        )
        yield "|---|---|---|---|---|---|---|---|---|---|---|"
    for cell, row in summary.items():
        d, p, k1, k2 = (row.get(name, {}) for name in ("direct", "PgBouncer", "Kintsugi 1", "Kintsugi 2"))
        yield (
            f"| {cell} | {number(d.get('tps'), '{:.0f}')} | {number(p.get('over direct'), '{:.2f}')} | "
            f"{number(k1.get('over direct'), '{:.2f}')} | {number(k2.get('over direct'), '{:.2f}')} | "
            f"{number(k1.get('over PgBouncer'), '{:.2f}')} | {number(k2.get('over Kintsugi 1'), '{:.2f}')} | "
            f"{number(p.get('cpu_us'))} | {number(k1.get('cpu_us'))} ({number(k1.get('user_us'))} + {number(k1.get('system_us'))}) | "
            f"{number(k2.get('cpu_us'))} | {ratio(k1.get('cpu_us'), p.get('cpu_us'))} |"
        )
    errors = [
        (cell, name, s["error"]) for cell, row in summary.items() for name, s in row.items() if "error" in s
    ]
    if errors:
        yield ""
        yield "Not run to the end:"
        yield ""
        for cell, name, text in errors:
            yield f"- {name}, {cell}: {text}"
    if idle:
        yield ""
        yield "## Idle clients"
        yield ""
        yield "| | clients held | all answered | KB a client, logged in | KB a client, after a statement | CPU while idle |"
        yield "|---|---|---|---|---|---|"
        for name, i in idle.items():
            if "error" in i:
                yield f"| {name} | {i['error']} | | | | |"
                continue
            yield (
                f"| {name} | {i['clients']} | {'yes' if i['answered'] == i['clients'] else i['answered']} | {i['kb_a_client']:.1f} | "
                f"{i['kb_a_client_after_a_statement']:.1f} | {i['idle_cpu_percent']:.1f} % |"
            )
    if instructions:
        yield ""
        yield "## Instructions of the router, a point select (callgrind, user space)"
        yield ""
        yield "| protocol | instructions |"
        yield "|---|---|"
        for protocol, count in instructions.items():
            yield (
                f"| {protocol} | {count:,.0f} |" if not isinstance(count, str) else f"| {protocol} | {count} |"
            )


def picture(path, summary, facts):
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plot

    colors = {"direct": "#9aa0a6", "PgBouncer": "#4c72b0", "Kintsugi 1": "#d4a017", "Kintsugi 2": "#8c6d1f"}
    scripts = list(dict.fromkeys(cell.script for cell in summary))
    figure, axes = plot.subplots(len(scripts), 2, figsize=(13, 3.6 * len(scripts)), squeeze=False)
    for line, script in enumerate(scripts):
        cells = [cell for cell in summary if cell.script == script]
        for column, (key, title) in enumerate(
            (("tps", "transactions a second"), ("cpu_us", "proxy CPU, us a transaction"))
        ):
            axis = axes[line][column]
            names = [name for name in colors if column == 0 or name != "direct"]
            width = 0.8 / len(names)
            for i, name in enumerate(names):
                values = [summary[cell].get(name, {}).get(key) or 0 for cell in cells]
                axis.bar(
                    [x + i * width for x in range(len(cells))],
                    values,
                    width,
                    label=name.replace(" 1", ", 1 thread").replace(" 2", ", 2 threads"),
                    color=colors[name],
                )
            axis.set_xticks([x + 0.4 - width / 2 for x in range(len(cells))])
            axis.set_xticklabels([f"{cell.protocol}\n{cell.clients}" for cell in cells], fontsize=8)
            axis.set_title(f"{script}: {title}", fontsize=10)
            axis.grid(axis="y", alpha=0.3)
            axis.spines[["top", "right"]].set_visible(False)
    axes[0][0].legend(fontsize=8)
    figure.text(
        0.01,
        0.005,
        f"{facts['cpu']}, {facts['cores']} cores; {facts['postgresql']}; {facts['pgbouncer']}; "
        f"{facts['kintsugi']} {facts['commit']}; protocol and clients below each group",
        fontsize=7,
    )
    figure.tight_layout(rect=(0, 0.02, 1, 1))
    figure.savefig(path, dpi=130)
