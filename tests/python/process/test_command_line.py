"""What a shell sees of the program: completion, standard input, help."""

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest
from commands import QUIET

#: Commands of a moment. The first name in capitals is the file that comes on standard input.
READERS = (
    "causal fit TABLE",
    "causal embed EDGES --steps 5",
    "causal encode EMBEDDING --overwrite --out OUT",
    "causal task classify TABLE --labels LABELS --encodings none --splits 1 --seeds 1 --epochs 1 "
    "--restore-epochs 1 --width 8 --heads 2 --layers 1",
    "analyze curvature GRAPHS",
    "lab hyperedges --train TUPLES --test TUPLES --models s2g-plus --epochs 1",
    "lab molecules MOLECULES --models mlp --epochs 1",
)


def results(line, **options):
    done = subprocess.run(line, capture_output=True, check=False, **options)
    assert done.returncode == 0, done.stderr.decode()
    lines = [json.loads(each) for each in done.stdout.splitlines()]
    # How long something took differs between two runs of the same command.
    return [{name: each[name] for name in each if "seconds" not in name} for each in lines]


@pytest.mark.parametrize("reader", READERS, ids=lambda line: " ".join(line.split()[:2]))
def test_a_dash_reads_standard_input(executable, inputs, tmp_path, reader):
    words = reader.split()
    place = next(i for i, word in enumerate(words) if word in inputs)
    named = [str(tmp_path) if word == "OUT" else inputs.get(word, word) for word in words]
    piped = [*named[:place], "-", *named[place + 1 :]]
    content = Path(named[place]).read_bytes()
    of_file = results([executable, *named, *QUIET])
    of_pipe = results([executable, *piped, *QUIET], input=content)
    assert json.loads(json.dumps(of_pipe).replace('"-"', json.dumps(named[place]))) == of_file


def test_standard_input_has_its_name_in_an_error(executable):
    line = [executable, "causal", "fit", "-"]
    done = subprocess.run(line, input=b"", capture_output=True, check=False)
    assert done.returncode == 2
    assert done.stderr.decode().startswith("nsimplex: cannot read standard input: ")


def test_graph_train_reads_no_standard_input(executable, tmp_path):
    line = [executable, *"graph train - --task graph --target y --out".split(), tmp_path / "run"]
    done = subprocess.run(line, input=b"", capture_output=True, check=False)
    assert done.returncode == 2
    wanted = "nsimplex: DATA: expected a file, got -, which is standard input\n"
    assert done.stderr.decode() == wanted
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("place", ["before", "after"])
def test_a_config_comes_from_standard_input(executable, inputs, place):
    config = ["--config", "-"]
    command = [executable, "causal", "fit"]
    line = [executable, *config, *command[1:]] if place == "before" else [*command, *config]
    text = f"table = '{inputs['TABLE']}'\nestimator = 'paper'\njson = true\n".encode()
    wanted = [*command, inputs["TABLE"], "--estimator", "paper", "--json"]
    assert results(line, input=text) == results(wanted)


def test_a_config_from_standard_input_has_its_name_in_an_error(executable):
    line = [executable, "info", "--config", "-"]
    done = subprocess.run(line, input=b"\nordre = 3\n", capture_output=True, check=False)
    assert done.returncode == 2
    assert done.stderr.decode().startswith("nsimplex: --config: standard input, line 2: unknown ")


def test_json_before_the_command_is_in_the_config(executable, inputs, tmp_path):
    line = [executable, "--json", "causal", "simulate", "--nodes", "4", "--out", str(tmp_path)]
    subprocess.run(line, capture_output=True, check=True)
    assert "json=true" in (tmp_path / "config.toml").read_text(encoding="utf-8")


#: How each shell shows what it would offer for the words, the last of which is begun only. The
#: functions of zsh that complete exist only while somebody types.
SHELLS = {
    "bash": """eval "$(nsimplex completion bash)"
        COMP_WORDS=({words}); COMP_CWORD={last}; _nsimplex
        printf '%s\\n' "${{COMPREPLY[@]}}" """,
    "zsh": """compdef() {{ : }}; _files() {{ : }}
        compadd() {{ shift; print -l -- ${{(M)@:#${{words[CURRENT]}}*}}; [[ -n $1 ]] }}
        eval "$(nsimplex completion zsh)"
        words=({words}); (( CURRENT = {last} + 1 )); _nsimplex; true""",
    "fish": """nsimplex completion fish | source
        complete -C (string join ' ' -- {words}) | cut -f 1""",
}


def complete(executable, shell, typed, folder):
    words = " ".join(f"'{word}'" for word in ["nsimplex", *typed])
    script = SHELLS[shell].format(words=words, last=len(typed))
    environment = os.environ | {
        "PATH": f"{Path(executable).parent}:{os.environ['PATH']}",
        "HOME": str(folder),
    }
    quick = ["-f"] if shell == "zsh" else []
    done = subprocess.run(
        [shell, *quick, "-c", script],
        capture_output=True,
        text=True,
        cwd=folder,
        env=environment,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    return done.stdout.split()


@pytest.mark.parametrize("shell", SHELLS)
@pytest.mark.parametrize(
    ("typed", "offered"),
    [
        (["ca"], ["causal"]),
        (["he"], ["help"]),
        (["help", "lm", "tr"], ["train"]),
        (["causal", "f"], ["fit"]),
        (["lm", "train", "--norma"], ["--normalizer"]),
        (["bench", "attention", "--pass", ""], ["forward", "backward"]),
        (["bench", "attention", "--pass", "b"], ["backward"]),
        (["--config", "x.toml", "--json", "lm", "ev"], ["eval"]),
        (["lab", "match"], ["match2", "match3", "match4"]),
        (["lab", "match3", "--ste"], ["--steps"]),
        (["lm", "train", "--text", ""], []),
        (["lm", "train", "--norm", "qk"], ["qk", "qkv"]),
        (["lm", "train", "--indexer-scores", ""], ["relu", "softmax"]),
        (["bench", "attention", "--dtype", "b"], ["bfloat16"]),
        (["bench", "attention", "--mask", ""], ["none", "boolean", "additive"]),
        (["--json", "ca"], ["causal"]),
        (["lm", "--json", "tr"], ["train"]),
        (["completion", ""], ["bash", "zsh", "fish"]),
        (["vers"], ["version"]),
        (["lm", "train", "--conf"], ["--config"]),
        (["causal", "fit", "table"], []),
    ],
    ids=" ".join,
)
def test_a_shell_completes_commands_options_and_choices(
    executable, tmp_path, shell, typed, offered
):
    if shutil.which(shell) is None:
        pytest.skip(f"needs {shell}")
    assert sorted(complete(executable, shell, typed, tmp_path)) == sorted(offered)


def test_the_manual_page_is_read_without_a_complaint(executable):
    page = subprocess.run([executable, "man"], capture_output=True, text=True, check=True).stdout
    assert page.startswith(".TH NSIMPLEX 1 ")
    assert ".SS nsimplex lm train\n" in page and "\\fB\\-\\-width\\fR \\fIN\\fR" in page
    for reader in (["mandoc", "-T", "lint", "-W", "warning"], ["groff", "-ww", "-man", "-z"]):
        if shutil.which(reader[0]) is None:
            pytest.skip(f"needs {reader[0]}")
        done = subprocess.run(reader, input=page, capture_output=True, text=True, check=False)
        assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


#: Commands of a moment that write to standard output.
WRITERS = (
    "causal fit TABLE",
    "causal embed EDGES --steps 5",
    "causal encode EMBEDDING --overwrite --out OUT",
    "causal simulate --nodes 4 --rows 9 --out OUT",
    "analyze curvature GRAPHS",
    "lab hyperedges --train TUPLES --test TUPLES --models s2g-plus --epochs 1",
    "graph train LINKS --task edge --target sign --epochs 1 --patience 0 --width 8 --out OUT",
    "lab molecules MOLECULES --models mlp --epochs 1",
    "verify --case order2-window",
)


@pytest.mark.parametrize("json_lines", [False, True])
@pytest.mark.parametrize("writer", WRITERS, ids=lambda line: " ".join(line.split()[:2]))
def test_a_full_disk_behind_standard_output_is_said_once(
    executable, inputs, tmp_path, writer, json_lines
):
    if not Path("/dev/full").exists():
        pytest.skip("no /dev/full here")
    words = [str(tmp_path) if word == "OUT" else inputs.get(word, word) for word in writer.split()]
    with open("/dev/full", "wb") as full:
        line = [executable, *words, *(["--json"] if json_lines else [])]
        done = subprocess.run(line, stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert done.returncode == 1
    said = [line for line in done.stderr.splitlines() if "standard output" in line]
    assert said == ["nsimplex: cannot write to standard output: No space left on device"]
    assert said[0] == done.stderr.splitlines()[-1] and "rror" not in done.stderr
