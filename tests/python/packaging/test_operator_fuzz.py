"""Every operator returns or raises, whatever it is given: it ends no process, and it comes back.

A failure names the call; operator_fuzz repeats it, and operator_watch looks for more of them.
"""

import os
import re
import subprocess
import sys
from pathlib import Path

import operator_mutations
import pytest
from operator_watch import lost_calls
from test_every_operator_and_module import registered

_SEED = 20261125
_FEW, _MANY = 1800, 60_000
#: One line that names the function.
OWN_WORDS = re.compile(r"(Value|Type|Index|NotImplemented)Error: \[\w+\] [^\n]*$")


def assert_none_is_lost(seed, first, last):
    lost = [str(each) for each in lost_calls(seed, first, last) if not each.is_huge_work]
    assert not lost, "\n".join(lost)


def test_calls_are_of_every_operator():
    """Of all that need no file and no generator, and each with changed arguments."""
    names = {
        operator_mutations.case(_SEED, number)[0]
        for number in range(len(operator_mutations.CALLED))
    }
    files = {
        "causal_pipeline_read",
        "causal_pipeline_write",
        "causal_read_columns",
        "read_edges",
        "read_graphs",
        "read_table",
        "read_tuples",
    }
    assert sorted(names | files | {"orthogonal_directions"}) == registered()
    assert (
        operator_mutations.case(_SEED, 7)
        == operator_mutations.case(_SEED, 7)
        != operator_mutations.case(_SEED + 1, 7)
    )


def test_a_call_that_ends_its_process_or_hangs_is_found(monkeypatch, tmp_path):
    """By processes that do what lost calls do."""
    program = tmp_path / "operator_fuzz.py"
    program.write_text(
        "import os, sys, time\n"
        "for number in range(int(sys.argv[2]), int(sys.argv[3])):\n"
        "    print(number, flush=True)\n"
        "    if number == 3: os.kill(os.getpid(), 11)\n"
        "    if number == 5: time.sleep(60)\n"
        "print('done', flush=True)\n"
    )
    monkeypatch.setattr("operator_watch._FUZZ", program)
    assert [(each.number, each.how) for each in lost_calls(1, 0, 9, seconds=0.5)] == [
        (3, "signal 11"),
        (5, "no answer"),
    ]


def test_operators_come_back_from_any_call():
    assert_none_is_lost(_SEED, 0, _FEW)


@pytest.mark.slow
def test_operators_come_back_from_many_calls():
    assert_none_is_lost(_SEED, _FEW, _MANY)


def answers_of(program):
    """(call, answer) of all calls that a program makes in a process of its own."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run(
        [sys.executable, Path(__file__).with_name(program)],
        capture_output=True,
        text=True,
        env=environment,
        timeout=300,
    )
    lines = done.stdout.splitlines()
    assert done.returncode == 0, "\n".join(lines[-1:] + [done.stderr[-500:]])
    return list(zip(lines[::2], lines[1::2], strict=True))


def test_sizes_that_no_memory_holds_are_refused_in_words_of_the_library():
    """Within the memory that the child may take, and before it is taken."""
    answers = answers_of("operator_sizes.py")
    foreign = [f"{call}: {said}" for call, said in answers if said and not OWN_WORDS.match(said)]
    assert not foreign, "\n".join(foreign)


def test_memory_that_was_freed_is_not_read():
    """Nor memory that was cut, of which views of the tensor know nothing, nor a view of 2^41
    numbers."""
    why = r".* whose memory was freed|tensors of at most 2\^40 numbers, got shape \[.*\]"
    refused = re.compile(rf"ValueError: \[\w+\] [\w\[\]]+: expected ({why})")
    answers = answers_of("operator_memory.py")
    others = [f"{call}: {said}" for call, said in answers if not refused.fullmatch(said)]
    assert not others, "\n".join(others)
