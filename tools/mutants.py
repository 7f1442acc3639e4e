#!/usr/bin/env python3
"""Measures how much of given sources given tests notice: lines that they run, and mutants (small
deliberate faults) that they catch.

    tools/mutants.py nsimplex/rotary.py --tests tests/python/attention/test_rotary.py --out a.json
    tools/mutants.py nsimplex/rotary.py --tests tests/python/attention --out b.json --against a.json

The exit code is 1 if a function has fewer covered lines or fewer caught mutants than in the earlier
file. Mutants live in a copy of the package; the choice depends on the seed and the function alone.
"""

from __future__ import annotations

import argparse
import ast
import importlib
import json
import multiprocessing
import os
import random
import shutil
import sys
import tempfile
import threading
from pathlib import Path

import pytest

_PAIRS = [(ast.Lt, ast.GtE), (ast.Gt, ast.LtE), (ast.Eq, ast.NotEq), (ast.Is, ast.IsNot)]
_FLIPPED = dict([*_PAIRS, *((b, a) for a, b in _PAIRS), (ast.In, ast.NotIn), (ast.NotIn, ast.In)])


def functions_of(tree):
    """Functions and methods of a module by name. Those inside a function count as a part of it."""
    for node in tree.body:
        if isinstance(node, ast.ClassDef):
            yield from ((f"{node.name}.{name}", each) for name, each in functions_of(node))
        elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            yield node.name, node


def lines_of(function):
    """The first lines of its statements, but those of texts."""
    text = lambda node: isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    nodes = (node for each in function.body for node in ast.walk(each))
    return {node.lineno for node in nodes if isinstance(node, ast.stmt) and not text(node)}


def sites_of(function):
    """What can be changed in a function: a node, the words for it, and a field, its new value."""
    defaults = [*function.args.defaults, *filter(None, function.args.kw_defaults)]
    for node in (node for each in [*defaults, *function.body] for node in ast.walk(each)):
        if isinstance(node, ast.Compare) and type(node.ops[0]) in _FLIPPED:
            flipped = _FLIPPED[type(node.ops[0])]()
            yield node, "comparison flipped", "ops", [flipped, *node.ops[1:]]
        elif isinstance(node, ast.Constant) and isinstance(node.value, (bool, int, float)):
            changed = not node.value if isinstance(node.value, bool) else node.value + 1
            yield node, "constant changed", "value", changed
        elif isinstance(node, ast.If):
            yield node, "branch removed", "test", ast.Constant(False)
        elif isinstance(node, ast.Call) and len(node.args) > 1:
            first, second, *others = node.args
            yield node, "arguments swapped", "args", [second, first, *others]
        elif isinstance(node, ast.Return) and node.value is not None:
            yield node, "return changed", "value", ast.Constant(None)


def overlay(build, folder):
    """A build folder of links, whose Python files can be replaced."""
    for path in build.iterdir():
        if path.name != "python":
            (folder / path.name).symlink_to(path)
    ignore = shutil.ignore_patterns("__pycache__")
    link = lambda source, target: os.symlink(os.path.realpath(source), target)
    shutil.copytree(build / "python", folder / "python", copy_function=link, ignore=ignore)


def replace(path, source):
    """Puts a file where a link to the sources was, which stay as they are."""
    path.unlink()
    path.write_text(source, encoding="utf-8")


class Coverage:
    """A plugin of pytest that writes the lines of files that ran."""

    def __init__(self, files, out):
        self._ran, self._out = {str(path): set() for path in files}, out

    def _trace(self, frame, event, _argument):
        ran = self._ran.get(frame.f_code.co_filename)
        if ran is None:
            return None
        ran.add(frame.f_lineno)
        return self._trace

    def pytest_sessionstart(self):
        threading.settrace(self._trace)
        sys.settrace(self._trace)

    def pytest_sessionfinish(self):
        sys.settrace(None)
        self._out.write_text(json.dumps([sorted(ran) for ran in self._ran.values()]))


def _run_tests(build, words, plugins):
    os.environ |= {"NSIMPLEX_BUILD_DIR": str(build), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    sys.dont_write_bytecode = True
    for stream in (1, 2):
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream)
    os._exit(pytest.main(["-x", "-p", "no:cacheprovider", *words], plugins=plugins))


def passes(build, words, plugins=()):
    """Whether tests pass, in a process of their own and within ten minutes."""
    fork = multiprocessing.get_context("fork")
    process = fork.Process(target=_run_tests, args=(build, words, plugins))
    process.start()
    process.join(600)
    process.kill()
    process.join()
    return process.exitcode == 0


def survivors_of(path, name, build, options):
    """How many mutants of a function there were, and descriptions of those that nobody noticed."""
    source, survived = path.read_text(encoding="utf-8"), []
    sites = lambda tree: [*sites_of(dict(functions_of(tree))[name])]
    numbers = range(len(sites(ast.parse(source))))
    count = min(options.mutants, len(numbers))
    chosen = random.Random(f"{options.seed} {name}").sample(numbers, count)
    for index in sorted(chosen):
        node, words, field, value = sites(tree := ast.parse(source))[index]
        setattr(node, field, value)
        replace(path, ast.unparse(tree))
        if passes(build, options.tests):
            survived.append(f"line {node.lineno}: {words}")
    replace(path, source)
    return count, survived


def measure(options):
    """Figures of each function."""
    figures = {}
    with tempfile.TemporaryDirectory() as folder:
        build = Path(folder)
        overlay(options.build.absolute(), build)
        paths, out = [build / "python" / source for source in options.sources], build / "ran.json"
        if not passes(build, options.tests, [Coverage(paths, out)]):
            sys.exit("the tests fail without a mutant")
        for source, path, ran in zip(options.sources, paths, json.loads(out.read_text())):
            tree = ast.parse(path.read_text(encoding="utf-8"))
            for name, node in dict(functions_of(tree)).items():  # the last of its overloads
                lines = lines_of(node)
                planted, survived = survivors_of(path, name, build, options)
                own = {"lines": len(lines), "covered": len(lines & {*ran}), "mutants": planted}
                own |= {"caught": planted - len(survived), "survived": survived}
                figures[f"{source}: {name}"] = own
                print(f"{source}: {name}", *(f"{key} {own[key]}" for key in own), flush=True)
    return figures


def losses(before, now):
    """A line for each function of which the tests notice less than before."""
    for name, was in before.items():
        for key in ("covered", "caught"):
            if (new := now.get(name, {}).get(key, 0)) < was[key]:
                yield f"{name}: {key} {new}, before {was[key]}"


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n\n")[0])
    parser.add_argument("sources", nargs="+", help="below the folder python of the build")
    parser.add_argument("--tests", nargs="+", required=True, help="words for pytest")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--against", type=Path, help="an earlier --out to compare with")
    parser.add_argument("--mutants", type=int, default=2, help="per function")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--build", type=Path, default=Path("build/release"))
    parser.add_argument("--preload", default="torch", help="a module that all processes share")
    options = parser.parse_args()
    importlib.import_module(options.preload)
    figures = measure(options)
    options.out.write_text(json.dumps(figures, indent=1) + "\n")
    lost = [*losses(json.loads(options.against.read_text()), figures)] if options.against else []
    print(*lost, sep="\n", end="\n" if lost else "", file=sys.stderr)
    return bool(lost)


if __name__ == "__main__":
    sys.exit(main())
