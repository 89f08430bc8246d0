"""The command line. Bad input is one line on stderr and exit code 2; Ctrl-C is 130."""

import argparse
import errno
import os
import shutil
import sys
from collections.abc import Callable, Sequence
from typing import Any, NoReturn

from labkit import tasks
from labkit.env import ROOT
from labkit.errors import BadInput, brief, unknown

LABS = ROOT / "notebooks"


class _Parser(argparse.ArgumentParser):
    """One line instead of a page of usage."""

    def error(self, message: str) -> NoReturn:
        raise BadInput(f"{message} (see {self.prog} --help)")


def _run(args: argparse.Namespace) -> int:
    from labkit.run import run  # the notebook machinery: only when it is needed

    return run(LABS, args.labs, args.mode, args.parameters, args.keep_going, args.timeout)


def _list(args: argparse.Namespace) -> int:
    from labkit.notebooks import labs

    for lab in labs(LABS):
        budget = f"  {lab.budget_s:.0f} s in quick mode" if lab.budget_s else ""
        print(f"{lab.name}  {lab.title}{budget}")
    return 0


def _claims(args: argparse.Namespace) -> int:
    from labkit.lab import coverage
    from labkit.lab.ledger import lab_number
    from labkit.measure.record import read_lines, records_path

    lab = None if args.lab is None else lab_number(args.lab)
    lines, torn = read_lines(records_path())
    if args.json:
        said = [coverage.as_json(lab, lines)]
    elif args.coverage:
        said = coverage.coverage_lines(coverage.coverage(lab, lines, coverage.cells(LABS)))
    else:
        said = coverage.claim_lines(lab, lines, shutil.get_terminal_size((160, 24)).columns)
    if torn:
        print(f"labkit: skipped {torn} torn line(s) of records.jsonl", file=sys.stderr)
    try:
        print("\n".join(said), flush=True)
    except BrokenPipeError:  # the reader has seen enough: labkit claims | head
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return 0


def _doctor(args: argparse.Namespace) -> int:
    from labkit.doctor import report

    lines, code = report()
    print("\n".join(lines))
    return code


def _models(args: argparse.Namespace) -> int:
    from labkit.engine import load

    if args.action == "get":
        if not args.name:
            raise BadInput("which model? labkit models list names them")
        load.get(args.name)
    elif args.action == "list":
        print("\n".join(load.names()))
    else:
        raise unknown("action", args.action, ("list", "get"))
    return 0


def _parser() -> tuple[_Parser, dict[str, Any]]:
    parser = _Parser(prog="labkit", description="Labs on fast long-text generation: everything a switch, every claim a test.")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND")

    def command(name: str, act: Callable[[argparse.Namespace], int], about: str) -> argparse.ArgumentParser:
        made = commands.add_parser(name, help=about, description=about)
        made.set_defaults(act=act)
        return made

    run = command("run", _run, "run labs without a browser: records, executed notebooks, one report")
    run.add_argument("labs", nargs="*", metavar="LAB", help="such as 01; all labs when left out")
    run.add_argument("--mode", default="quick", help="smoke, quick (default) or full")
    run.add_argument("-p", dest="parameters", action="append", default=[], metavar="NAME=VALUE", help="a parameter of the labs")
    run.add_argument("--keep-going", action="store_true", help="go on with the next lab when one fails")
    run.add_argument("--timeout", type=float, metavar="S", help="seconds that one lab may take")
    command("doctor", _doctor, "what this machine has for the labs, and the command that fixes what is missing")
    command("list", _list, "the labs, their questions and their budgets")
    claims = command("claims", _claims, "what the articles claim, and the newest verdict of this machine on each")
    claims.add_argument("--lab", metavar="LAB", help="only the claims of one lab, such as 01")
    shown = claims.add_mutually_exclusive_group()
    shown.add_argument("--json", action="store_true", help="all that is known of each claim")
    shown.add_argument("--coverage", action="store_true", help="for every row of the ledger: its record, its lab and its cell")
    models = command("models", _models, "list the models, or fetch one: models get smollm2-135m")
    models.add_argument("action", nargs="?", default="list", metavar="list|get")
    models.add_argument("name", nargs="?")
    for name, task in tasks.TASKS.items():
        command(name, lambda args, task=task: task(), (task.__doc__ or "").splitlines()[0])  # type: ignore[misc]
    return parser, dict(commands.choices)


def _refused(err: OSError) -> str:
    """One line for what the system refused, and what to do about it."""
    if err.errno in (errno.ENOSPC, errno.EDQUOT):
        return f"the disk is full ({err.filename or err.strerror}): free some space; what was recorded is safe"
    what = f"{err.filename}: {err.strerror}" if err.filename else brief(err)
    return f"{what}: see that it can be read and written, or set LABKIT_HOME to another folder"


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; its exit code."""
    words = list(sys.argv[1:] if argv is None else argv)
    try:
        parser, commands = _parser()
        if words and not words[0].startswith("-") and words[0] not in commands:
            raise unknown("command", words[0], commands)
        args = parser.parse_args(words or ["--help"])
        return int(args.act(args))
    except BadInput as err:
        print(f"labkit: {err}", file=sys.stderr)
        return 2
    except OSError as err:
        print(f"labkit: {_refused(err)}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        return 130
