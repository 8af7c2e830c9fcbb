"""What the results say, as text: the table, means by group against the targets, the worst rows, what changed."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any

from bench.case import COMPILED, OURS, TORCH
from bench.measure import share
from bench.targets import target

WIDTH = 50  #: of the column of names


def geometric_mean(values: Iterable[float]) -> float:
    logs = [math.log(v) for v in values]
    return math.exp(sum(logs) / len(logs)) if logs else math.nan


def duration(seconds: float) -> str:
    """In µs, with three digits that count."""
    us = seconds * 1e6
    return f"{us:,.0f}" if us >= 100 else f"{us:.1f}" if us >= 10 else f"{us:.2f}" if us >= 0.1 else f"{us:.3f}"


class Table:
    """Rows as they are measured; ratios to each peer, and the share of the limit."""

    def __init__(self, peers: Sequence[str], limit: dict[str, float]):
        self.peers, self.limit, self.group = peers, limit, ""

    def cells(self, row: dict[str, Any], subject: str) -> tuple[str, list[str], str]:
        """(time, ratios by peer, share of the limit); what misses its bound is marked with a !"""
        ratios = row["ratios"].get(subject, {})
        if subject == OURS:
            worst = target(row["suite"], row["group"])[1] or target(row["suite"], "")[1]
            bounds = {TORCH: worst} if worst else {}
        else:
            bounds = {OURS: 1.0, **row["bounds"]}
        found = [
            f"{ratios[p]:.2f}{'!' if p in bounds and ratios[p] > bounds[p] else ''}" if p in ratios else "" for p in (OURS, *self.peers)
        ]
        part = share(row, self.limit) if subject == OURS else None
        return duration(row["seconds"][subject]), found, f"{part:.0%}" if part is not None else ""

    def line(self, name: str, time: str, ratios: Sequence[str], part: str) -> str:
        return f"{name:<{WIDTH}} {time:>12} " + " ".join(f"{r:>13}" for r in ratios) + f" {part:>6}"

    def head(self) -> None:
        print(self.line("case", "µs", ["/ eager", *(f"/ {p}" for p in self.peers)], "limit"), flush=True)

    def row(self, row: dict[str, Any]) -> None:
        if (group := f"{row['suite']} / {row['group']}") != self.group:
            self.group = group
            print(f"-- {group}")
        for subject in (OURS, COMPILED):
            if subject in row["seconds"]:
                name = row["name"] if subject == OURS else "    compiled"
                print(self.line(name[:WIDTH], *self.cells(row, subject)))
        for problem in row["problems"]:
            print(f"    PROBLEM {problem}")
        for peer, reason in row["skipped"].items():
            if "not installed" not in reason:
                print(f"    {peer} left out: {reason}")
        print(end="", flush=True)


def heading(result: dict[str, Any], absent: dict[str, str]) -> str:
    m, limit = result["machine"], result["limits"]
    versions = ", ".join(f"{n} {v}" for n, v in m["versions"].items())
    text = f"{m['processor']}, {result['threads']} of {m['processors']} processors; Python {m['python']}, {versions}\n"
    if limit["bytes"] > 1:  # measured
        text += f"limits: copy {limit['bytes'] / 1e9:.1f} GB/s, sgemm {limit['flops'] / 1e9:.0f} GFLOP/s\n"
    return text + "".join(f"left out: {peer} ({reason})\n" for peer, reason in absent.items())


def by_group(rows: Sequence[dict], subject: str, peer: str = TORCH) -> dict[tuple[str, str], list[tuple[float, str]]]:
    """(ratio, name) of the rows of each group, and of each suite as the group ""."""
    found: dict[tuple[str, str], list[tuple[float, str]]] = {}
    for suite in ("overhead", "kernels", "models"):
        for row in rows:
            value = row["ratios"].get(subject, {}).get(peer)
            if row["suite"] == suite and value:
                found.setdefault((suite, row["group"]), []).append((value, row["name"]))
        if whole := [v for (s, _), some in found.items() if s == suite for v in some]:
            found[suite, ""] = whole
    return found


def against(value: float, bound: float | None) -> str:
    return "" if bound is None else f"  (target {bound:g}{'' if value <= bound else ', MISSED'})"


def group_lines(rows: Sequence[dict]) -> list[str]:
    lines = []
    for subject, title in ((OURS, "eager"), (COMPILED, "compiled")):
        groups = by_group(rows, subject)
        if groups:
            lines.append(f"\n{title} / PyTorch: geometric means by group, and the worst row")
        for (suite, group), values in groups.items():
            mean, (worst, name) = geometric_mean(v for v, _ in values), max(values)
            wanted = target(suite, group) if subject == OURS else (None, None)
            label = f"{suite} / {group}" if group else f"{suite}, all"
            lines.append(
                f"  {label:<34} {len(values):>4} rows  mean {mean:.2f}{against(mean, wanted[0]):<24}"
                f"  worst {worst:.2f}{against(worst, wanted[1])}: {name}"
            )
    return lines


def growth_lines(rows: Sequence[dict]) -> list[str]:
    """Whether time per node and per element stays the same as sizes grow."""
    lines = []
    nodes = {r["size"]: r["seconds"][OURS] for r in rows if r["name"].startswith("chain of") and OURS in r["seconds"]}
    if len(nodes) > 1:
        factor = max(nodes.values()) / min(nodes.values())
        lines.append(f"time per node, {min(nodes):,} to {max(nodes):,}: largest / smallest {factor:.2f}{against(factor, 1.5)}")
    per: dict[str, dict[int, float]] = {}
    for r in rows:
        if r["group"].startswith("pointwise") and r["size"] in (1 << 20, 1 << 24) and OURS in r["seconds"]:
            per.setdefault(r["name"].replace(" 16M", "").replace(" 1M", ""), {})[r["size"]] = r["seconds"][OURS] / r["size"]
    factors = {n: v[1 << 24] / v[1 << 20] for n, v in per.items() if len(v) == 2}
    if factors:
        name = max(factors, key=factors.__getitem__)
        mean = geometric_mean(factors.values())
        lines.append(f"time per element, 1M to 16M: mean {mean:.2f}, worst {factors[name]:.2f}{against(factors[name], 1.3)}: {name}")
    return lines


def summary(result: dict[str, Any]) -> str:
    rows = result["rows"]
    lines = group_lines(rows)
    ranked = sorted(((r["ratios"][OURS][TORCH], r["name"]) for r in rows if TORCH in r["ratios"].get(OURS, {})), reverse=True)
    if ranked:
        lines += ["\nworst rows / PyTorch", *(f"  {value:>7.2f}  {name}" for value, name in ranked[:15])]
    missed = [
        f"  {r['name']}: {r['ratios'][COMPILED][p]:.2f} of {p} (target {bound:g})"
        for r in rows for p, bound in r["bounds"].items() if r["ratios"].get(COMPILED, {}).get(p, 0) > bound
    ]  # fmt: skip
    if missed:
        lines += ["\ncompiled steps that miss their target", *missed]
    slower = [f"  {r['name']}: {v:.2f}" for r in rows if (v := r["ratios"].get(COMPILED, {}).get(OURS, 0)) > 1]
    if slower:
        lines += ["\ncompiled slower than eager", *slower]
    if growth := growth_lines(rows):
        lines += ["", *growth]
    if result["startup"]:
        lines.append(f"\n{'start-up, seconds':<52} {'here':>8} {'PyTorch':>8}")
        for s in result["startup"]:
            here, theirs = (f"{v:.2f}" if v is not None else "" for v in (s["ours"], s[TORCH]))
            lines.append(f"  {s['name']:<50} {here:>8} {theirs:>8}{against(s['ours'] or 0, s['bound'])}{s.get('problem', '')}")
    if result["memory"]:
        lines.append(f"\n{'peak resident MB of a step (beyond import)':<52} {'here':>14} {'compiled':>14} {'PyTorch':>14}")
        for m in result["memory"]:
            cells = [f"{m['peak'][p]:.0f} ({m['beyond'][p]:.0f})" if p in m["peak"] else "" for p in (OURS, COMPILED, TORCH)]
            lines.append(f"  {m['name'][:50]:<50} " + " ".join(f"{c:>14}" for c in cells))
    if two := result.get("two threads"):
        one = {r["name"]: r["seconds"].get(OURS) for r in rows}
        lines.append(f"\n{'two threads':<52} {'µs':>12} {'/ PyTorch':>10} {'speed-up':>9}")
        for r in two:
            if OURS in r["seconds"]:
                ratio, before = r["ratios"].get(OURS, {}).get(TORCH), one.get(r["name"])
                gain = f"{before / r['seconds'][OURS]:.2f}" if before else ""
                lines.append(
                    f"  {r['name'][:50]:<50} {duration(r['seconds'][OURS]):>12} {f'{ratio:.2f}' if ratio else '':>10} {gain:>9}"
                )
    problems = [p for r in rows for p in r["problems"]]
    if problems:
        lines += ["\nproblems", *(f"  {p}" for p in problems)]
    return "\n".join(lines)


def changes(before: dict[str, Any], after: dict[str, Any]) -> str:
    """Rows whose time moved by more than noise: the quartiles' distances of both, three times, and at least a tenth.

    Where both runs have PyTorch, it is the ratio to it that is compared: the machine's mood then cancels.
    """
    old = {r["name"]: r for r in before["rows"]}
    moved, common = [], 0
    for row in after["rows"]:
        then = old.get(row["name"])
        for subject in (OURS, COMPILED):
            if then is None or subject not in row["seconds"] or subject not in then["seconds"]:
                continue
            common += 1
            pair = [r["ratios"].get(subject, {}).get(TORCH) for r in (then, row)]
            spread = sum(r["spread"].get(subject, {}).get(TORCH, 0.05) for r in (then, row))
            a, b = pair if all(pair) else (r["seconds"][subject] for r in (then, row))
            if abs(math.log(b / a)) > max(0.1, 3 * spread):
                label = row["name"] + (", compiled" if subject == COMPILED else "")
                moved.append((b / a, f"  {b / a:>6.2f}×  {label}: {a:.3g} → {b:.3g}" + ("" if all(pair) else " s")))
    lines = [f"\nchanges: {len(moved)} of {common} rows beyond noise (below 1: faster now)"]
    lines += [text for _, text in sorted(moved, reverse=True)]
    gone = [n for n in old if n not in {r["name"] for r in after["rows"]}]
    return "\n".join(lines + ([f"  only before: {', '.join(gone)}"] if gone else []))
