"""docs/benchmarks.md and its plots, from a result."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from bench.case import COMPILED, OURS, PEERS, TORCH
from bench.measure import share
from bench.report import by_group, duration, geometric_mean, growth_lines, target

INK, PALE, ACCENT, LINE = "#1f4e79", "#9dc3e6", "#c55a11", "#888888"


def write(result: dict[str, Any], folder: Path) -> list[str]:
    """The names of the files written."""
    import matplotlib

    matplotlib.use("Agg")
    matplotlib.rcParams.update({"svg.hashsalt": "bench", "font.size": 9, "axes.spines.top": False, "axes.spines.right": False})
    plots = {
        "benchmarks_groups.svg": (groups, "Geometric mean of the ratios to PyTorch, by group, with each row as a dot"),
        "benchmarks_models.svg": (models, "Training steps: time relative to PyTorch, eager and compiled"),
        "benchmarks_sizes.svg": (sizes, "Pointwise ops: share of the copy bandwidth by size"),
        "benchmarks_chain.svg": (chains, "Time per node of a chain, forward and backward"),
    }
    pictures, names = [], []
    for name, (draw, text) in plots.items():
        figure = draw(result)
        if figure is not None:
            figure.savefig(folder / name, bbox_inches="tight", metadata={"Date": None})
            pictures.append(f"![{text}]({name})\n\n{text}.\n")
            names.append(name)
    (folder / "benchmarks.md").write_text(page(result, pictures))
    return ["benchmarks.md", *names]


def page(result: dict[str, Any], pictures: list[str]) -> str:
    m, limit = result["machine"], result["limits"]
    peers = [p for p in PEERS if any(p in r["seconds"] for r in result["rows"])]
    versions = ", ".join(f"{n} {v}" for n, v in m["versions"].items())
    about = (
        "`make bench ARGS=--write` writes this page. A ratio is this library's time divided by the peer's: below 1 this library is "
        "faster. Every figure is a median over blocks that alternate between the libraries in one process; results, gradients "
        'included, were compared before anything was timed. "limit" is the share of what the machine can do: bytes that must move '
        "against the bandwidth of a compiled copy, FLOPs against BLAS in float32."
    )
    ran_on = (
        f"Machine: {m['processor']}, {result['threads']} of {m['processors']} processors. Python {m['python']}, {versions}. "
        f"Copy {limit['bytes'] / 1e9:.1f} GB/s, sgemm {limit['flops'] / 1e9:.0f} GFLOP/s."
    )
    parts = [
        "# Benchmarks",
        about,
        ran_on,
        *pictures,
        "## By group",
        "\n".join(["| group | rows | mean / PyTorch | target | worst | |", "|---|---|---|---|---|---|", *group_rows(result)]),
    ]
    if growth := growth_lines(result["rows"]):
        parts.append("\n".join(f"- {line}" for line in growth))
    if result["startup"]:
        lines = [
            f"| {s['name']} | {number(s['ours'])} | {number(s[TORCH])} | {s['bound'] or ''} |"
            for s in result["startup"]
        ]
        parts += ["## Start-up", "\n".join(["| seconds | here | PyTorch | bound |", "|---|---|---|---|", *lines])]
    if result["memory"]:
        lines = [
            f"| {x['name']} | " + " | ".join(f"{x['peak'][p]:.0f} ({x['beyond'][p]:.0f})" if p in x["peak"] else "" for p in (OURS, COMPILED, TORCH))
            + " |"
            for x in result["memory"]
        ]
        head = ["| peak resident MB (beyond import) | eager | compiled | PyTorch |", "|---|---|---|---|"]
        parts += ["## Memory", "\n".join(head + lines)]
    if two := result.get("two threads"):
        one = {r["name"]: r["seconds"].get(OURS) for r in result["rows"]}
        lines = [
            f"| {r['name'].replace('|', '·')} | {duration(r['seconds'][OURS])} | {number(r['ratios'].get(OURS, {}).get(TORCH))} | "
            f"{number(one[r['name']] / r['seconds'][OURS] if one.get(r['name']) else None)} |"
            for r in two if OURS in r["seconds"]
        ]  # fmt: skip
        head = ["| case | µs | / PyTorch | speed-up |", "|---|---|---|---|"]
        parts += ["## Two threads", "\n".join(head + lines)]
    for suite in ("models", "overhead", "kernels"):
        rows = [line for r in result["rows"] if r["suite"] == suite for line in case_rows(r, peers, limit)]
        if rows:
            head = f"| case | µs | / eager | {' | '.join(f'/ {p}' for p in peers)} | limit |"
            parts += [f"## {suite.capitalize()}", "\n".join([head, "|---" * (len(peers) + 4) + "|", *rows])]
    if absent := [p for p in PEERS if p not in peers]:
        parts.append(f"Not measured, as they were not installed or could run nothing: {', '.join(absent)}.")
    return "\n\n".join(parts) + "\n"


def number(value: float | None) -> str:
    return "" if value is None else f"{value:.2f}"


def group_rows(result: dict[str, Any]) -> list[str]:
    rows = []
    for subject, title in ((OURS, ""), (COMPILED, ", compiled")):
        for (suite, group), values in by_group(result["rows"], subject).items():
            bounds = target(suite, group) if subject == OURS else (None, None)
            mean, (worst, name) = geometric_mean(v for v, _ in values), max(values)
            label = f"{suite} / {group}" if group else f"**{suite}**"
            wanted = "" if bounds[0] is None else f"{bounds[0]:g}" + ("" if mean <= bounds[0] else " missed")
            rows.append(f"| {label}{title} | {len(values)} | {mean:.2f} | {wanted} | {worst:.2f} | {name.replace('|', '·')} |")
    return rows


def case_rows(row: dict[str, Any], peers: list[str], limit: dict[str, float]) -> list[str]:
    rows = []
    for subject in (OURS, COMPILED):
        if subject in row["seconds"]:
            name = row["name"].replace("|", "·") + (", compiled" if subject == COMPILED else "")
            ratios = [number(row["ratios"].get(subject, {}).get(p)) for p in (OURS, *peers)]
            part = share(row, limit) if subject == OURS else None
            rows.append(f"| {name} | {duration(row['seconds'][subject])} | {' | '.join(ratios)} | {'' if part is None else f'{part:.0%}'} |")
    return rows


# -------------------------------------------------------------------------------------------------------- plots


def groups(result: dict[str, Any]) -> Any:
    from matplotlib import pyplot as plt

    found = {k: v for k, v in by_group(result["rows"], OURS).items() if k[1]}
    if not found:
        return None
    figure, axes = plt.subplots(figsize=(7.5, 0.26 * len(found) + 1))
    for i, ((suite, group), values) in enumerate(reversed(found.items())):
        axes.barh(i, geometric_mean(v for v, _ in values) - 1, left=1, color=PALE)  # from equality, as the axis is logarithmic
        axes.plot([v for v, _ in values], [i] * len(values), ".", color=INK, alpha=0.5, markersize=4)
        wanted = target(suite, group)[0] or target(suite, "")[0]
        if wanted:
            axes.plot([wanted, wanted], [i - 0.4, i + 0.4], color=ACCENT)
    axes.set_yticks(range(len(found)), [f"{s} / {g}" for s, g in reversed(found)])
    axes.axvline(1, color=LINE, linewidth=0.8)
    axes.set_xscale("log")
    axes.set_xlabel("time relative to PyTorch (orange: target of the mean)")
    return figure


def models(result: dict[str, Any]) -> Any:
    from matplotlib import pyplot as plt

    rows = [r for r in result["rows"] if r["suite"] == "models" and TORCH in r["ratios"].get(OURS, {})]
    if not rows:
        return None
    figure, axes = plt.subplots(figsize=(7.5, 0.4 * len(rows) + 1))
    for i, row in enumerate(reversed(rows)):
        axes.barh(i + 0.2, row["ratios"][OURS][TORCH], 0.4, color=PALE, label="eager" if i == 0 else None)
        if TORCH in row["ratios"].get(COMPILED, {}):
            axes.barh(i - 0.2, row["ratios"][COMPILED][TORCH], 0.4, color=INK, label="compiled" if i == 0 else None)
    axes.set_yticks(range(len(rows)), [r["name"] for r in reversed(rows)])
    axes.axvline(1, color=LINE, linewidth=0.8)
    axes.set_xlabel("time relative to PyTorch eager")
    axes.legend(frameon=False)
    return figure


def sizes(result: dict[str, Any]) -> Any:
    from matplotlib import pyplot as plt

    lines: dict[str, list[tuple[int, float]]] = {}
    for row in result["rows"]:
        part = share(row, result["limits"])
        if row["group"].startswith("pointwise") and row["name"].endswith("forward") and row["size"] and part is not None and "64 " not in row["name"]:
            lines.setdefault(row["name"].rpartition(" | ")[0].rpartition(" ")[0], []).append((row["size"], part))
    lines = {name: sorted(points) for name, points in lines.items() if len(points) > 1}
    if not lines:
        return None
    figure, axes = plt.subplots(figsize=(7.5, 3.5))
    for name, points in lines.items():
        axes.plot(*zip(*points, strict=True), marker="o", markersize=3, linewidth=1, label=name)
    axes.set_xscale("log", base=2)
    axes.axhline(1, color=LINE, linewidth=0.8)
    axes.set_xlabel("elements")
    axes.set_ylabel("share of the copy bandwidth")
    axes.legend(frameon=False, ncols=2)
    return figure


def chains(result: dict[str, Any]) -> Any:
    from matplotlib import pyplot as plt

    rows = sorted((r["size"], r) for r in result["rows"] if r["name"].startswith("chain of") and OURS in r["seconds"])
    if len(rows) < 2:
        return None
    figure, axes = plt.subplots(figsize=(7.5, 2.8))
    for peer, colour in ((OURS, INK), (TORCH, ACCENT)):
        points = [(size, r["seconds"][peer] * 1e6) for size, r in rows if peer in r["seconds"]]
        if points:
            axes.plot(*zip(*points, strict=True), marker="o", color=colour, label="here" if peer == OURS else peer)
    axes.set_xscale("log")
    axes.set_ylim(bottom=0)
    axes.set_xlabel("nodes")
    axes.set_ylabel("µs per node")
    axes.legend(frameon=False)
    return figure
