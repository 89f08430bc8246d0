"""Small notebooks that behave like labs, well and badly: they need no model and take a second."""

from collections.abc import Sequence
from pathlib import Path

import nbformat
import psutil
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook

PARAMETERS = 'mode = "quick"\ndevice = "auto"\nspeed_model = "random:stream"\ntokens = 8\nratio = 1.5\nwarm = True\ntoggles = ["eager"]\nbudget_s = 150'
START = """\
import json, os, sys, time, uuid
def tell(**line):
    told = os.open(os.environ["LABKIT_STORY"], os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
    os.write(told, (json.dumps({"t": time.time()} | line) + "\\n").encode()); os.close(told)
def record():
    made = uuid.uuid4().hex[:12]
    path = os.path.join(os.environ["LABKIT_HOME"], "records.jsonl")
    file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
    os.write(file, (json.dumps({"id": made}) + "\\n").encode()); os.close(file)
    print("record", made)
tell(kind="lab", lab="01", title="A fixture", question="Does it run?", mode=mode)"""
FINISH = 'tell(kind="finished", seconds=1.0, budget_s=budget_s)'


def write_lab(folder: Path, *cells: str, name: str = "01_fixture", parameters: str = PARAMETERS) -> Path:
    """A lab in `folder`: title, parameters, start, `cells`, finish. Returns the folder."""
    folder.mkdir(parents=True, exist_ok=True)
    tagged = new_code_cell(parameters, metadata={"tags": ["parameters"]})
    body = [new_markdown_cell("# A fixture"), tagged, *map(new_code_cell, (START, *cells, FINISH))]
    kernel = {"kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}, "language_info": {"name": "python"}}
    nbformat.write(new_notebook(cells=body, metadata=kernel), folder / f"{name}.ipynb")
    return folder


def runner(folder: Path, *names: str) -> Sequence[str]:
    """The words that run the labs of `folder` in a process of their own."""
    code = (
        f"import sys; from pathlib import Path; from labkit.cli import main; import labkit.cli; labkit.cli.LABS = Path({str(folder)!r}); "
    )
    return ["-c", code + f"sys.exit(main({['run', *names]!r}))"]


def marked(home: Path) -> list[psutil.Process]:
    """Living processes of a run under `home`, the kernel (the oldest) first."""
    found = []
    for process in psutil.process_iter():
        try:
            if process.environ().get("LABKIT_STORY", "").startswith(str(home)):
                found.append(process)
        except psutil.Error:
            continue
    return sorted(found, key=lambda p: (p.create_time(), p.pid))
