"""Tables of time and memory: of attention, its growth, whole models, the models of the papers, and LANET."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from statistics import median
from typing import Any

import pandas as pd
from matplotlib.figure import Figure

from benchmarks.accuracy.papers import reported, title
from benchmarks.accuracy.runs import Row
from benchmarks.files import Result, names, read, read_all
from benchmarks.report.writing import listed, machine, table

#: Channels of a model that go without saying.
WIDE = 512
#: Candidates of results that the package has no longer.
REMOVED = ("ours (sddmm)",)
#: Candidates in the picture, with their colours.
DRAWN = {"literal": "#d55e00", "SDPA": "#e69f00", "ours": "#0072b2"}
REGIMES = ("R1", "R2", "R3", "R4", "R5", "HUB")
#: Models of the family as the papers call them.
IN_PAPERS = {
    "lamp": ("lamp2019", "LaMP"),
    "mped": ("mped2019", "MPED"),
    "mped-ar": ("mped2019", "MPED Autoregressive"),
    "mp-br": ("mped2019", "MP BR"),
    "seq2seq": ("mped2019", "RNN Seq2Seq"),
}
#: Descriptions of the rounds of tools/endurance.py.
ROUNDS = {
    "operator": "shapes of the operator, backends beside each other in float64",
    "files": "files with wrong bytes, read or refused with a reason",
    "kills": "predictions killed at any time, and resumed",
}


def attention(result: Result) -> list[str]:
    """One line for each regime and candidate, and what they were measured on."""
    heads = "regime | candidate | fwd ms | fwd + bwd ms | quartiles | CPU ms | times faster | of limit | peak MB"
    lines, left_out = [], []
    for regime, row in result["regimes"].items():
        for name, found in row["candidates"].items():
            if found["state"] in ("disagrees", "failed"):
                left_out.append(f"{name} on {regime}: {found['state']}")
            if "forward_backward" not in found or name in REMOVED:
                continue
            both, peaks = found["forward_backward"], found.get("peak_bytes")
            median, quartiles = _times(both["wall_ms"], ".3g")
            line = [regime, name, f"{found['forward']['wall_ms']['median']:.3g}", median, quartiles]
            line += [
                f"{both['cpu_ms']['median']:.3g}",
                f"{both['wall_ratio']:.2g}" if "wall_ratio" in both else "-",
            ]
            megabytes = (
                " / ".join(f"{1e-6 * size:.0f}" for size in peaks.values())
                if isinstance(peaks, dict)
                else "-"
            )
            lines.append([*line, f"{both['wall_share_of_limit']:.0%}", megabytes])
    auto = (
        f"{row['auto'].partition(':')[0]} on {regime}" for regime, row in result["regimes"].items()
    )
    notes = [f"`auto` takes: {', '.join(auto)}."]
    notes += [f"Left out: {'; '.join(left_out)}."] if left_out else []
    return [*table(heads.split(" | "), lines), "", *listed([*notes, _machine(result)])]


def growth(result: Result) -> list[str]:
    """The fitted exponents of one line for each sweep."""
    lines = (
        [
            *(name, ", ".join(map(str, row["sizes"])), f"{row['wall_fit']['exponent']:.2f}"),
            *(f"{row['wall_fit']['r2']:.3f}", f"{row['cpu_fit']['exponent']:.2f}"),
            ", ".join(dict.fromkeys(row["backends"])),
        ]
        for name, row in result["scaling"].items()
    )
    return table(
        ("sweep", "sizes", "exponent of time", "r²", "exponent of CPU time", "backend"), lines
    )


def numbers(result: Result) -> dict[str, Any]:
    """Times of attention by regime and by size, for :func:`draw`."""
    found = {name: result["regimes"][name]["candidates"] for name in REGIMES}
    return {
        "regimes": {
            name: {which: each[which]["forward_backward"]["wall_ms"]["median"] for which in DRAWN}
            for name, each in found.items()
        },
        "growth": {name: [row["sizes"], row["wall_ms"]] for name, row in result["scaling"].items()},
    }


def draw(numbers: dict[str, Any]) -> Figure:
    """Times by regime, and how they grow."""
    figure = Figure(figsize=(10, 3.8), layout="constrained")
    left, right = figure.subplots(1, 2)
    for name, colour in DRAWN.items():
        times = [row[name] for row in numbers["regimes"].values()]
        left.plot(times, range(len(times)), "o", color=colour, label=name)
    left.grid(axis="y", alpha=0.3)
    left.set(
        xscale="log",
        xlabel="forward and backward, ms",
        yticks=range(len(REGIMES)),
        yticklabels=REGIMES,
    )
    left.invert_yaxis()
    left.legend(fontsize="small")
    for name, (sizes, times) in numbers["growth"].items():
        right.loglog(sizes, times, "o-", markersize=4, label=name)
    right.set(xlabel="size", ylabel="forward and backward, ms")
    right.legend(fontsize="x-small")
    return figure


def models(result: Result) -> list[str]:
    """One line for each model, layout and mode."""
    lines, left_out = [], []
    for row in result["models"]:
        sizes = row["sizes"]
        narrow = "" if sizes["channels"] == WIDE else f", d={sizes['channels']}"
        labels, where = f"{sizes['num_labels']}{narrow}", f"{sizes['num_labels']} labels{narrow}"
        for name, found in row["layouts"].items():
            if found["state"] == "disagrees" or found.get("why"):
                left_out.append(
                    f"{name} on {where} along {sizes['graph']}: {found.get('why') or 'disagrees'}"
                )
            for mode in (mode for mode in ("inference", "training") if mode in found):
                times, peaks = found[mode], found.get("peak_bytes")
                ratio = f"{times['ours_is_faster']:.2f}" if "ours_is_faster" in times else "-"
                peak = (
                    f"{1e-6 * peaks[mode]:.0f}"
                    if isinstance(peaks, dict) and mode in peaks
                    else "-"
                )
                line = [labels, sizes["graph"], name, mode, *_times(times["wall_ms"], ".0f")]
                lines.append(
                    [
                        *line,
                        f"{times['samples_per_second']:.3g}",
                        ratio,
                        f"{times['floor_share']:.0%}",
                        peak,
                    ]
                )
    heads = (
        "labels",
        "graph",
        "layout",
        "mode",
        "ms",
        "quartiles",
        "samples/s",
        "x ours",
        "of the floor",
        "peak MB",
    )
    precision, setting = (
        result["settings"]["precision"],
        result["settings"].get("matmul_precision", "highest"),
    )
    under = (
        "" if setting == "highest" else f', under `torch.set_float32_matmul_precision("{setting}")`'
    )
    notes = [
        f"Precision: {precision}{under}.",
        *([f"Left out: {'; '.join(left_out)}."] if left_out else []),
    ]
    return [*table(heads, lines), "", *listed([*notes, _machine(result)])]


def ratios(result: Result) -> list[str]:
    """One line for each model: ours, and how many times as long the others take and as much memory they need."""
    lines = []
    for row in result["models"]:
        found = {name: each for name, each in row["layouts"].items() if each["state"] == "agrees"}
        line = [str(row["sizes"]["num_labels"]), row["sizes"]["graph"]]
        for mode in ("inference", "training"):
            others = (
                found[name].get(mode) if name in found else None
                for name in ("released layout", "literal path")
            )
            line += [f"{found['ours'][mode]['samples_per_second']:,.0f}"]
            line += ["-" if each is None else f"{each['ours_is_faster']:.2f}" for each in others]
        peaks = [found[name]["peak_bytes"]["training"] for name in ("ours", "released layout")]
        lines.append([*line, f"{1e-6 * peaks[0]:.0f}", f"{peaks[1] / peaks[0]:.2f}"])
    heads = (
        "inference: ours",
        "released",
        "literal",
        "training: ours",
        "released",
        "literal",
        "MB: ours",
        "released",
    )
    notes = [f"Precision: {result['settings']['precision']}.", _machine(result)]
    return [*table(("labels", "graph", *heads), lines), "", *listed(notes)]


def exported(result: Result) -> list[str]:
    """One line for each kind of input and size of a batch: the model, and its programs."""
    lines = []
    for row in result["exported"]:
        ours = row["forms"]["tg_mlc"]["wall_ms"]["median"]
        line = [row["kind"], str(row["batch_size"])]
        for name, found in row["forms"].items():
            line.append("{} [{}]".format(*_times(found["wall_ms"], ".3g")))
            line += [] if name == "tg_mlc" else [f"{found['wall_ms']['median'] / ours:.2f}"]
        lines.append([*line, f"{max(found['apart'] for found in row['forms'].values()):.0e}"])
    names_of = [name for name in result["exported"][0]["forms"] if name != "tg_mlc"]
    heads = [
        "input",
        "batch",
        "tg_mlc, ms",
        *(head for name in names_of for head in (f"{name}, ms", "x")),
    ]
    settings = result["settings"]
    notes = [
        f"Medians [quartiles] of {settings['repeats']} rounds in which all take turns; x: as a multiple of the time of "
        f"tg_mlc; {settings['num_labels']} labels, {settings['channels']} channels, {settings['threads']} threads, "
        f"seed {settings['seed']}; probabilities are apart by at most what the last column says.",
        machine(result),
    ]
    return [*table([*heads, "apart"], lines), "", *listed(notes)]


def served() -> list[str]:
    """One line for each model behind a server: what the server answers, beside the model alone."""
    results = list(read_all("serving-").values())
    if not results:
        return ["Not measured."]
    lines = []
    for result in results:
        found, about = result["serving"], result["model"]
        alone, served_, cost, served_cost = (
            median(found[f"{who}_{what}"])
            for what in ("per_second", "processor_ms")
            for who in ("alone", "served")
        )
        memory = " to ".join(f"{1e-6 * found['resident_bytes'][place]:.0f}" for place in (1, -1))
        malformed = ", ".join(
            f"{count:,} times {status}" for status, count in sorted(found["malformed"].items())
        )
        line = [f"{about['kind']}, {about['labels']} labels", f"{alone:,.0f}", f"{served_:,.0f}"]
        line += [f"{cost:.2f}", f"{served_cost:.2f}", f"{cost / served_cost:.0%}"]
        line += [f"{found['milliseconds'][q]:.0f}" for q in ("p50", "p99")]
        lines.append([*line, malformed, memory, f"{found['requests']:,}"])
    heads = "model | alone, inputs/s | server, requests/s | alone, CPU ms | server, CPU ms | share | median ms | 99 % ms"
    settings = results[0]["settings"]
    notes = [
        f"{settings['clients']} clients on the same machine, which send one input each; medians of "
        f"{settings['rounds']} rounds of {settings['seconds']:g} s in which the server and the model alone, "
        f"{settings['clients']} inputs at a time, take turns; {settings['threads']} threads. Share: of the "
        f"processor time of an input, what the model alone takes of it. MB: resident memory of the "
        f"server over so many requests.",
        machine(results[0]),
    ]
    return [*table([*heads.split(" | "), "malformed", "MB", "requests"], lines), "", *listed(notes)]


def scored() -> list[str]:
    """One line for each way and number of rows: time, and the peak of resident memory."""
    lines, notes = [], []
    for result in read_all("scoring-").values():
        for row in result["scored"]:
            peaks = ", ".join(
                f"{kind} {1e-6 * size:,.0f}" for kind, size in row["peak_bytes"].items()
            )
            times = [f"{row['seconds']:,.0f}", f"{row['rows'] / row['seconds']:,.0f}"]
            lines.append([row["what"], f"{row['rows']:,}", f"{row['refused']:,}", *times, peaks])
        notes.append(machine(result))
    heads = ("how", "rows", "that cannot be read", "s", "rows/s", "peak MB of a process")
    return [*table(heads, lines), "", *listed(dict.fromkeys(notes))] if lines else ["Not measured."]


def endured() -> list[str]:
    """The rounds of the last long run of tools/endurance.py."""
    if "endurance" not in names("endurance"):
        return ["Not measured."]
    result = read("endurance")
    lines = [[ROUNDS[kind], f"{count:,}"] for kind, count in result["rounds"].items()]
    failed = "; ".join(f"`{command}`" for command in result["failed"]) or "none"
    notes = [
        f"{result['minutes']:.0f} minutes, seeds from {result['first_seed']}; failed: {failed}",
        machine(result),
    ]
    return [*table(("what", "rounds"), lines), "", *listed(notes)]


def registers(result: Result) -> list[str]:
    """One line for each kernel, type and number of channels: registers and warps by architecture, without and with
    dropout.
    """
    variants, lines = pd.DataFrame(result["variants"]), []
    keys, archs = ["walk", "kernel", "type", "channels"], sorted(variants["arch"].unique())
    for key, rows in variants.groupby(keys, sort=False):
        cells = []
        for arch in archs:
            same = rows[rows["arch"] == arch]
            cells.append(
                " / ".join(f"{row.registers}: {row.warps}" for row in same.itertuples()) or "-"
            )
        lines.append([*map(str, key), *cells])
    spills = variants[variants["spilled"] > 0].to_dict("records")
    told = ", ".join(
        "{kernel} {type} {channels} on sm_{arch}: {spilled} bytes".format(**row) for row in spills
    )
    notes = [
        f"{len(variants)} variants, spills: {told or 'none'}.",
        f"triton {result['environment']['versions']['triton']}",
    ]
    heads = ("rows", *keys[1:], *(f"sm_{arch}" for arch in archs))
    return [*table(heads, lines), "", *listed(notes)]


def family(results: Sequence[Result] | None = None) -> list[str]:
    """Minutes per epoch of models of the family, beside those of Table 4 of LaMP and Table 2 of MPED; all tracked ones
    unless given.
    """
    results = list(read_all("family-").values()) if results is None else results
    if not results:
        return ["Not measured."]
    lines, notes = [], []
    for result in results:
        for dataset, each in result["datasets"].items():
            for found in (found for found in each["models"].values() if found["agrees"]):
                row = Row(**found["row"])
                cells = (
                    cell
                    for mode in ("training", "testing")
                    for cell in _minutes(dataset, row, mode, found[mode])
                )
                lines.append([dataset, title(row), *cells])
        settings = result["settings"]
        notes.append(
            f"{machine(result).split(';')[0]}, threads: {settings['threads']}; median [quartiles] of "
            f"{settings['rounds']} rounds of {settings['batches']} batches of {settings['batch_size']}, scaled to an "
            f"epoch; epochs of training before: {settings['epochs_before']}; seed {settings['seed']};"
            f"{machine(result).split(';')[1]}"
        )
    heads = ("data", "model", "training", "x RNN Seq2Seq", "testing", "x RNN Seq2Seq")
    return [*table(heads, lines), "", *listed(notes)]


def _minutes(dataset: str, row: Row, mode: str, found: Result) -> Iterator[str]:
    """Minutes and speed-up, each with the paper's in parentheses."""
    paper, model = IN_PAPERS.get(row.model, ("", ""))
    minutes, key = found["minutes_per_epoch"], mode.removesuffix("ing")
    ours = f"{minutes['median']:.3f} [{minutes['q1']:.3f}, {minutes['q3']:.3f}]"
    ratio = f"{found['speedup']['median']:.2f}" if "speedup" in found else ""
    for text, metric, digits in (
        (ours, "minutes_per_epoch", 3),
        (ratio, "speedup_over_rnn_seq2seq", 1),
    ):
        theirs = reported().get((paper, dataset, model, f"{key}_{metric}"))
        yield text if theirs is None else f"{text} ({theirs:.{digits}f})".strip()


def _times(wall: Mapping[str, float], form: str) -> tuple[str, str]:
    return f"{wall['median']:{form}}", f"{wall['q1']:{form}} to {wall['q3']:{form}}"


def _machine(result: Result) -> str:
    settings, found, limits = result["settings"], result["environment"], result["limits"]
    rates = ", ".join(
        f"{1e-9 * rate:.0f} ({name})" for name, rate in limits["by_precision"].items()
    )
    versions = ", ".join(
        f"{name} {version}" for name, version in found["versions"].items() if version
    )
    return (
        f"{found['cuda'] or found['processor']}, {settings['threads']} threads; matrix products {rates} GFLOP/s, "
        f"copies {1e-9 * limits['bandwidth']:.0f} GB/s, measured in the same run; {settings['repeats']} rounds, in "
        f"which the candidates take turns; seed {settings['seed']}; {versions}"
    )
