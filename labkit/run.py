"""Headless: notebooks in, records, executed notebooks, one report and a JUnit file out."""

import asyncio
import re
import shutil
import signal
import sys
import time
import xml.etree.ElementTree as ET
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from papermill.iorw import load_notebook_node
from papermill.parameterize import parameterize_notebook

from labkit.env import home
from labkit.errors import BadInput
from labkit.kernel import Outcome, Stop, run_lab, save
from labkit.lab.modes import check_mode
from labkit.lab.report import Section, page
from labkit.measure.record import read_lines, records_path
from labkit.notebooks import Lab, chosen, parameters

LIMIT_S = {"smoke": 300.0, "quick": 900.0, "full": 3600.0}
FREE_BYTES = 200 * 2**20


def run(
    folder: Path,
    names: Iterable[str],
    mode: str = "quick",
    given: Sequence[str] = (),
    keep_going: bool = False,
    limit_s: float | None = None,
) -> int:
    """Run labs of `folder` one after the other; the exit code (0, 1 a lab failed, 2 bad input, 128+n stopped by a signal).

    Raises BadInput, before anything starts, for an unknown lab, mode or parameter, a wrong value or too little disk.
    """
    check_mode(mode)
    asked = [(lab, parameters(lab, mode, given)) for lab in chosen(folder, names)]
    plan = [(lab.given(values), values) for lab, values in asked]
    if limit_s is not None and not limit_s > 0:
        raise BadInput(f"--timeout {limit_s:g}: give seconds above 0")
    where = _run_folder()
    return asyncio.run(_run(plan, where, mode, keep_going, limit_s or LIMIT_S[mode]))


def _run_folder() -> Path:
    runs = home() / "runs"
    runs.mkdir(parents=True, exist_ok=True)
    if (free := shutil.disk_usage(runs).free) < FREE_BYTES:
        raise BadInput(f"{free / 2**20:.0f} MB free in {runs}, a run needs {FREE_BYTES / 2**20:.0f}: free some space or set LABKIT_HOME")
    stamp = time.strftime("%Y%m%d-%H%M%S")
    for path in (runs / (stamp + more) for more in ("", *(f"-{n}" for n in range(2, 1000)))):
        try:
            path.mkdir()
        except FileExistsError:
            continue
        return path
    raise BadInput(f"no free name left for a run in {runs}")


async def _run(plan: list[tuple[Lab, dict[str, Any]]], where: Path, mode: str, keep_going: bool, limit_s: float) -> int:
    stop = Stop()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, stop, 128 + number)
    outcomes: list[Outcome] = []
    try:
        for lab, values in plan:
            outcomes.append(await _one(lab, values, where / lab.name, mode, limit_s, stop))
            if stop.code or (outcomes[-1].code and not keep_going):
                break
    finally:
        _write(plan, outcomes, where)
    return stop.code or next((c for c in (2, 1) if c in [o.code for o in outcomes]), 0)


async def _one(lab: Lab, values: dict[str, Any], folder: Path, mode: str, limit_s: float, stop: Stop) -> Outcome:
    folder.mkdir()
    nb = parameterize_notebook(load_notebook_node(str(lab.path)), values)
    cells = sum(cell.cell_type == "code" for cell in nb.cells)
    number, started, before = lab.name.split("_")[0], time.monotonic(), _records()
    print(f"{number} {lab.title}", flush=True)

    def say(cell: int) -> None:
        print(f"{number} cell {cell}/{cells} · {time.monotonic() - started:.0f} s · {_records() - before} records", flush=True)

    outcome = _within_budget(lab, mode, await run_lab(lab.name, nb, folder, limit_s, stop, say))
    allowed = f" of {lab.budget_s:.0f} s" if lab.budget_s and mode == "quick" else ""
    word = "stopped" if outcome.code else "done"
    print(f"{number} {word} · used {outcome.seconds:.0f} s{allowed} · {_records() - before} records", flush=True)
    if outcome.code:
        details = "" if outcome.code == 2 or not outcome.details else f"\n{outcome.details}"
        print(f"labkit: {outcome.line}{details}", file=sys.stderr, flush=True)
    return outcome


def _records() -> int:
    """Whole lines in this machine's record file."""
    try:
        return sum(bool(line.strip()) for line in records_path().read_bytes().split(b"\n"))
    except FileNotFoundError:
        return 0


def _within_budget(lab: Lab, mode: str, outcome: Outcome) -> Outcome:
    """A quick run that took more than twice its budget has failed."""
    if outcome.code or mode != "quick" or not lab.budget_s or outcome.seconds <= 2 * lab.budget_s:
        return outcome
    line = f"{lab.name} used {outcome.seconds:.0f} s, more than twice its budget of {lab.budget_s:.0f} s"
    return Outcome(lab.name, outcome.seconds, 1, line)


def _write(plan: list[tuple[Lab, dict[str, Any]]], outcomes: list[Outcome], where: Path) -> None:
    """index.html and junit.xml of what ran; labs that were not reached are named in both."""
    ended = {outcome.lab: outcome for outcome in outcomes}
    sections = []
    for lab, _ in plan:
        outcome = ended.get(lab.name, Outcome(lab.name, line="not run: an earlier lab ended the run"))
        lines, torn = read_lines(where / lab.name / "story.jsonl")
        sections.append(Section(lab.name, lab.title, lines, torn, outcome.line))
    save(where / "index.html", page(sections, where.name))
    save(where / "junit.xml", junit([lab for lab, _ in plan], ended))
    print(f"report: {where / 'index.html'}", flush=True)


def junit(labs: list[Lab], ended: dict[str, Outcome]) -> str:
    """JUnit XML: one testcase a lab, with its time and, when it did not pass, why."""
    outcomes = [ended.get(lab.name) for lab in labs]
    counts = {
        "tests": len(labs),
        "failures": sum(o is not None and o.code > 0 for o in outcomes),
        "skipped": outcomes.count(None),
    }
    total = sum(o.seconds for o in ended.values())
    suite = ET.Element("testsuite", {"name": "labkit", "errors": "0", "time": f"{total:.3f}"} | {k: str(v) for k, v in counts.items()})
    for lab, outcome in zip(labs, outcomes, strict=True):
        case = ET.SubElement(suite, "testcase", classname="labs", name=lab.name, time=f"{outcome.seconds if outcome else 0:.3f}")
        if outcome is None:
            ET.SubElement(case, "skipped", message="not reached")
        elif outcome.code:
            ET.SubElement(case, "failure", message=_xml(outcome.line)).text = _xml(f"{outcome.line}\n{outcome.details}")
    return ET.tostring(suite, encoding="unicode", xml_declaration=True)


def _xml(text: str) -> str:
    """Without the characters that XML cannot hold."""
    return re.sub(r"[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]", "", text)
