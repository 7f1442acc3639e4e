"""The workflow of GitHub Actions, which has never run there, calls what exists."""

import re

import pytest


@pytest.fixture(scope="module")
def workflow(root):
    yaml = pytest.importorskip("yaml")
    return yaml.safe_load((root / ".github" / "workflows" / "ci.yml").read_text(encoding="utf-8"))


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
    text = (root / ".github" / "workflows" / "ci.yml").read_text(encoding="utf-8")
    lines = [line for line in text.splitlines() if "uses:" in line]
    assert lines
    for line in lines:
        assert re.search(r"uses: [\w-]+/[\w-]+@[0-9a-f]{40}  # v\d+\.\d+\.\d+$", line), line


def test_it_says_that_it_has_never_run(root):
    first = (root / ".github" / "workflows" / "ci.yml").read_text(encoding="utf-8").splitlines()[0]
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
