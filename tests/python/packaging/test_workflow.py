"""The workflows of GitHub Actions, which have never run there, call what exists and pass linters.
So do the forms of issues, CITATION.cff and the configuration of development containers."""

import json
import re
import shutil
import subprocess
import sysconfig

import pytest

CI, RELEASE = WORKFLOWS = (".github/workflows/ci.yml", ".github/workflows/release.yml")
SCHEMAS = {
    CI: "vendor.github-workflows",
    RELEASE: "vendor.github-workflows",
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
def workflows(root):
    yaml = pytest.importorskip("yaml")
    return {name: yaml.safe_load((root / name).read_text(encoding="utf-8")) for name in WORKFLOWS}


def jobs(workflows):
    return {name: job for workflow in workflows.values() for name, job in workflow["jobs"].items()}


def commands(workflows):
    return [
        line
        for job in jobs(workflows).values()
        for step in job["steps"]
        for line in step.get("run", "").splitlines()
    ]


def test_the_jobs_build_test_sanitize_document_and_release(workflows):
    assert set(workflows[CI]["jobs"]) == {"test", "sanitizers", "docs", "images"}
    assert set(workflows[RELEASE]["jobs"]) == {"build", "try", "publish", "page"}
    for workflow in workflows.values():
        assert workflow["permissions"] == {"contents": "read"}
    for job in jobs(workflows).values():
        assert job["timeout-minutes"] <= 180
    for command in ("make build", "make test", "tools/docs --visit", "tools/types"):
        assert command in commands(workflows)


def test_tools_and_targets_exist(root, workflows):
    targets = set(re.findall(r"^([a-z][a-z -]*):", (root / "Makefile").read_text(), re.MULTILINE))
    targets = {name for line in targets for name in line.split()}
    sanitizers = jobs(workflows)["sanitizers"]["strategy"]["matrix"]["sanitizer"]
    stages = re.findall(r"^FROM \S+ AS (\w+)$", (root / "Dockerfile").read_text(), re.MULTILINE)
    for command in commands(workflows):
        words = command.split()
        if words[0] == "make":
            wanted = sanitizers if "matrix" in command else words[1:2]
            assert set(wanted) <= targets, command
        elif words[0].startswith("tools/"):
            assert (root / words[0]).stat().st_mode & 0o100, command
        else:
            # Programs that the machines of GitHub have, and ours where the wheel is installed.
            assert words[0] in ("docker", "gh", "nsimplex", "pipx", "python"), command
        if "--target" in words:
            assert words[words.index("--target") + 1] in stages, command


def test_only_a_release_is_published_and_by_one_job_each(workflows):
    allowed = {n: job["permissions"] for n, job in jobs(workflows).items() if "permissions" in job}
    assert allowed == {
        "docs": {"contents": "write"},
        "publish": {"id-token": "write"},
        "page": {"contents": "write"},
    }
    steps = jobs(workflows)["docs"]["steps"]
    (step,) = [step for step in steps if "publish_site" in step.get("run", "")]
    assert step["if"] == "startsWith(github.ref, 'refs/tags/')"
    assert workflows[RELEASE][True] == {"push": {"tags": ["v*"]}}  # YAML reads "on" as True
    publish = jobs(workflows)["publish"]
    assert publish["environment"] == "pypi" and set(publish["needs"]) == {"build", "try"}


def test_a_release_is_tried_with_the_versions_of_python_that_the_package_names(workflows, root):
    tried = jobs(workflows)["try"]["strategy"]["matrix"]["python"]
    lines = (root / "pyproject.toml").read_text(encoding="utf-8")
    assert re.findall(r"Programming Language :: Python :: (3\.\d+)", lines) == tried


def test_the_wheel_of_a_release_serves_every_supported_torch(workflows, root, monkeypatch):
    """An index takes no version that names them, and only such a wheel has a version without."""
    monkeypatch.syspath_prepend(root / "tools" / "metadata")
    from torch_requirement import SUPPORTED

    (command,) = [line for line in commands(workflows) if "--build-arg TORCH=" in line]
    own = re.search(r"^torch_version=(2\.\d+)", (root / "tools/bootstrap").read_text(), re.M)[1]
    named = re.search(r'TORCH="(.*?)"', command)[1].split()
    assert {own, *named} == {f"2.{minor}" for minor in SUPPORTED}


@pytest.mark.parametrize("name", WORKFLOWS)
def test_actions_are_named_by_their_commit(root, name):
    # A tag can be moved to other code, a commit cannot; the version stands beside it for readers.
    text = (root / name).read_text(encoding="utf-8")
    lines = [line for line in text.splitlines() if "uses:" in line]
    assert lines
    for line in lines:
        assert re.search(r"uses: [\w-]+/[\w-]+@[0-9a-f]{40}  # v\d+\.\d+\.\d+$", line), line


@pytest.mark.parametrize("name", [*WORKFLOWS, "packaging/conda/recipe.yaml"])
def test_it_says_that_it_has_never_run(root, name):
    first = (root / name).read_text(encoding="utf-8").splitlines()[:2]
    assert re.search("has never (run|been built)", " ".join(first))


def test_the_development_container_starts_from_a_stage_of_the_dockerfile(root):
    text = (root / ".devcontainer" / "devcontainer.json").read_text(encoding="utf-8")
    read = json.loads(re.sub(r"^\s*//.*$", "", text, flags=re.MULTILINE))
    folder = root / ".devcontainer"
    image = folder / read["build"]["dockerfile"]
    assert f" AS {read['build']['target']}\n" in image.read_text(encoding="utf-8")
    assert (folder / read["build"]["context"]).resolve() == root
    assert read["postCreateCommand"] == "make"


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


@pytest.mark.parametrize("name", WORKFLOWS)
def test_the_workflow_is_safe_to_run(root, tmp_path, name):
    """zizmor knows how workflows leak tokens and run what others wrote."""
    ended = linted("zizmor", "--offline", "--quiet", root / name)
    assert ended.returncode == 0, ended.stdout
    wrong = tmp_path / "ci.yml"
    text = (root / name).read_text(encoding="utf-8")
    wrong.write_text(text.replace("persist-credentials: false", "clean: true"))
    assert "artipacked" in linted("zizmor", "--offline", "--quiet", wrong).stdout
