"""The workflow of GitHub Actions, which has never run there, calls what exists and passes linters.
So do the forms of issues and CITATION.cff."""

import re
import shutil
import subprocess
import sysconfig

import pytest

WORKFLOW = ".github/workflows/ci.yml"
SCHEMAS = {
    WORKFLOW: "vendor.github-workflows",
    ".github/ISSUE_TEMPLATE/bug.yml": "vendor.github-issue-forms",
    ".github/ISSUE_TEMPLATE/speed.yml": "vendor.github-issue-forms",
    ".github/ISSUE_TEMPLATE/wish.yml": "vendor.github-issue-forms",
    ".github/ISSUE_TEMPLATE/config.yml": "vendor.github-issue-config",
    "CITATION.cff": "vendor.citation-file-format",
}


def linted(name, *words):
    """The run of a linter of the environment."""
    linter = shutil.which(name, path=sysconfig.get_path("scripts"))
    if not linter:
        pytest.skip(f"{name} is not installed; tools/bootstrap installs it")
    return subprocess.run([linter, *map(str, words)], capture_output=True, text=True)


@pytest.fixture(scope="module")
def workflow(root):
    yaml = pytest.importorskip("yaml")
    return yaml.safe_load((root / WORKFLOW).read_text(encoding="utf-8"))


def commands(workflow):
    return [
        line
        for job in workflow["jobs"].values()
        for step in job["steps"]
        for line in step.get("run", "").splitlines()
    ]


def test_the_jobs_build_test_sanitize_document_and_make_wheels(workflow):
    assert set(workflow["jobs"]) == {"test", "sanitizers", "docs", "wheels"}
    assert workflow["permissions"] == {"contents": "read"}
    for job in workflow["jobs"].values():
        assert job["timeout-minutes"] <= 180 and "actions/checkout" in job["steps"][0]["uses"]
    for command in ("make build", "make test", "tools/docs --visit", "tools/types"):
        assert command in commands(workflow)


def test_tools_and_targets_exist(root, workflow):
    targets = set(re.findall(r"^([a-z][a-z -]*):", (root / "Makefile").read_text(), re.MULTILINE))
    targets = {name for line in targets for name in line.split()}
    sanitizers = workflow["jobs"]["sanitizers"]["strategy"]["matrix"]["sanitizer"]
    for command in commands(workflow):
        words = command.split()
        if words[0] == "make":
            wanted = sanitizers if "matrix" in command else words[1:2]
            assert set(wanted) <= targets, command
        elif words[0].startswith("tools/"):
            assert (root / words[0]).stat().st_mode & 0o100, command
        else:
            # Programs that the machines of GitHub have.
            assert words[:2] == ["pipx", "run"] or words[0] == "gh", command


def test_only_a_release_is_published_and_by_one_job(workflow):
    jobs = workflow["jobs"]
    assert [name for name, job in jobs.items() if "permissions" in job] == ["docs"]
    assert jobs["docs"]["permissions"] == {"contents": "write"}
    (step,) = [step for step in jobs["docs"]["steps"] if "publish_site" in step.get("run", "")]
    assert step["if"] == "startsWith(github.ref, 'refs/tags/')"


def test_actions_are_named_by_their_commit(root):
    # A tag can be moved to other code, a commit cannot; the version stands beside it for readers.
    text = (root / WORKFLOW).read_text(encoding="utf-8")
    lines = [line for line in text.splitlines() if "uses:" in line]
    assert lines
    for line in lines:
        assert re.search(r"uses: [\w-]+/[\w-]+@[0-9a-f]{40}  # v\d+\.\d+\.\d+$", line), line


def test_it_says_that_it_has_never_run(root):
    first = (root / WORKFLOW).read_text(encoding="utf-8").splitlines()[0]
    assert "has never run" in first


def test_issue_forms_have_labels_and_fields_of_their_own(root):
    yaml = pytest.importorskip("yaml")
    forms = sorted((root / ".github" / "ISSUE_TEMPLATE").glob("*.yml"))
    forms = [form for form in forms if form.stem != "config"]
    assert len(forms) == 3
    for form in forms:
        read = yaml.safe_load(form.read_text(encoding="utf-8"))
        assert read["name"] and read["description"] and read["labels"]
        ids = [field["id"] for field in read["body"]]
        assert len(set(ids)) == len(ids) >= 3
        assert any(field.get("validations", {}).get("required") for field in read["body"])


def test_every_file_for_github_has_a_schema(root):
    files = {path.relative_to(root).as_posix() for path in (root / ".github").rglob("*.yml")}
    assert files | {"CITATION.cff"} == set(SCHEMAS)


@pytest.mark.parametrize("file", SCHEMAS)
def test_files_fit_their_schemas(root, tmp_path, file):
    def check(path):
        return linted("check-jsonschema", "--builtin-schema", SCHEMAS[file], path)

    ended = check(root / file)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    wrong = tmp_path / "wrong.yml"
    wrong.write_text(
        (root / file).read_text(encoding="utf-8") + "\nsurprise: 1\n", encoding="utf-8"
    )
    assert "'surprise' was unexpected" in check(wrong).stdout


def test_the_workflow_is_safe_to_run(root, tmp_path):
    """zizmor knows how workflows leak tokens and run what others wrote."""
    ended = linted("zizmor", "--offline", "--quiet", root / WORKFLOW)
    assert ended.returncode == 0, ended.stdout
    wrong = tmp_path / "ci.yml"
    text = (root / WORKFLOW).read_text(encoding="utf-8")
    wrong.write_text(text.replace("persist-credentials: false", "clean: true"))
    assert "artipacked" in linted("zizmor", "--offline", "--quiet", wrong).stdout
