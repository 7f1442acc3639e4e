#!/usr/bin/env python3
"""Prints the headers that the sources of a build read, one a line and indented, without compiling:
tools/list_headers.py COMPILE_COMMANDS. Fails where the preprocessor does: a header is missing."""

import json
import os
import shlex
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor


def headers(entry):
    words = shlex.split(entry["command"])
    output = words.index("-o")
    listed = subprocess.run(
        [*words[:output], *words[output + 2 :], "-M"],
        cwd=entry["directory"],
        capture_output=True,
        text=True,
    )
    if listed.returncode:
        sys.exit(f"{entry['file']}:\n{listed.stderr}")
    return [word for word in listed.stdout.split()[1:] if word != "\\"]


with open(sys.argv[1]) as commands, ThreadPoolExecutor(os.cpu_count()) as pool:
    found = {header for listed in pool.map(headers, json.load(commands)) for header in listed}
if not found:
    sys.exit("no header was found")
for header in sorted(found):
    print(f"    {header}")
