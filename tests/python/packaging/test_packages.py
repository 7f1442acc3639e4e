"""The packages that a build needs are in one list, and everything that names them agrees."""

import re
import runpy
import shutil
import subprocess

import pytest

DEBIAN, FEDORA, CONDA = 1, 2, 3
BY_CMAKE = ["HWY", "ZLIB", "Eigen3", "Spectra", "Boost", "CLI11", "nlohmann_json"]


@pytest.fixture(scope="module")
def rows(root):
    lines = (root / "cmake" / "packages.txt").read_text(encoding="utf-8").splitlines()
    rows = [line.split(" | ") for line in lines if not line.startswith("#")]
    assert all(len(row) == 4 for row in rows)
    return {row[0]: row for row in rows}


def packages(rows, distribution):
    return {name for row in rows.values() for name in row[distribution].split()}


def test_the_page_about_installing_has_the_list(root, rows):
    page = (root / "docs" / "install.md").read_text(encoding="utf-8")
    table = page.partition("| conda-forge |\n")[2].partition("\n\n")[0]
    cells = [line.split("|")[2:5] for line in table.splitlines()[1:]]
    for distribution in (DEBIAN, FEDORA, CONDA):
        named = [name for row in cells for name in re.findall(r"`(.*?)`", row[distribution - 1])]
        assert set(" ".join(named).split()) == packages(rows, distribution)


def test_bootstrap_installs_those_of_debian(root, rows):
    script = (root / "tools" / "bootstrap").read_text(encoding="utf-8")
    (line,) = re.findall(r"^mapfile .* packages < <\((.*)\)$", script, re.MULTILINE)
    read = subprocess.run(["bash", "-c", line], cwd=root, capture_output=True, text=True)
    assert set(read.stdout.split()) == packages(rows, DEBIAN)
    assert "libhwy-dev" in read.stdout


def configure(root, folder, *options):
    """CMake's words about the dependencies alone, in a project without a compiler."""
    (folder / "CMakeLists.txt").write_text(
        "cmake_minimum_required(VERSION 3.24)\nproject(needs LANGUAGES NONE)\n"
        f'set(NSIMPLEX_APP ON)\ninclude("{root}/cmake/Dependencies.cmake")\n'
    )
    command = ["cmake", "-S", folder, "-B", folder / "build", *options]
    return subprocess.run(command, capture_output=True, text=True)


@pytest.mark.skipif(not shutil.which("cmake"), reason="CMake is not installed")
def test_what_is_missing_is_named_once_for_each_distribution(root, tmp_path, rows):
    absent = ["HWY", "ZLIB", "CLI11"]
    rest = [name for name in BY_CMAKE if name not in absent]
    options = [f"-DCMAKE_DISABLE_FIND_PACKAGE_{name}=ON" for name in absent]
    for name in rest:  # found, whatever the machine has
        (tmp_path / f"{name}Config.cmake").write_text("")
        options.append(f"-D{name}_DIR={tmp_path}")
    ended = configure(root, tmp_path, *options)
    assert ended.returncode == 1 and ended.stderr.count("CMake Error") == 1
    words = " ".join(ended.stderr.split())
    assert "nsimplex needs HWY, ZLIB, CLI11." in words
    lines = [line.strip() for line in ended.stderr.splitlines()]
    for distribution, begin in [
        (DEBIAN, "Debian, Ubuntu: apt-get install"),
        (FEDORA, "Fedora:         dnf install"),
        (CONDA, "conda:          conda install -c conda-forge"),
    ]:
        names = " ".join(rows[name][distribution] for name in absent)
        assert f"{begin} {names}" in lines


def test_every_dependency_of_cmake_has_a_row(root, rows):
    text = (root / "cmake" / "Dependencies.cmake").read_text(encoding="utf-8")
    asked = re.findall(r"^ *nsimplex_dependency\((\w+)", text, re.MULTILINE)
    assert asked and set(asked) == set(BY_CMAKE) <= set(rows)


def test_a_failed_build_names_the_compilers(root, rows):
    """In the last line that its output has: CMake finds no compiler before it reads the list."""
    tomllib = pytest.importorskip("tomllib")
    project = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))
    message = project["tool"]["scikit-build"]["messages"]["after-failure"]
    first = [rows["compiler"][distribution].split()[0] for distribution in (DEBIAN, FEDORA, CONDA)]
    assert [name for name in first if name in message] == first and "\n" not in message


@pytest.fixture(scope="module")
def recipe(root):
    return root / "packaging" / "conda" / "recipe.yaml"


def test_the_recipe_of_conda_has_the_list_and_the_version(root, rows, recipe):
    yaml = pytest.importorskip("yaml")
    read = yaml.safe_load(recipe.read_text(encoding="utf-8"))
    needs = read["requirements"]["build"] + read["requirements"]["host"]
    of_users = {**rows, "tests": [""] * 4, "faster builds": [""] * 4}
    assert packages(of_users, CONDA) - {"cxx-compiler"} <= set(needs)
    assert "${{ compiler('cxx') }}" in needs
    cmake = (root / "CMakeLists.txt").read_text(encoding="utf-8")
    assert f"project(nsimplex VERSION {read['context']['version']} " in cmake


def test_the_recipe_of_conda_has_the_form_that_its_tool_reads(recipe):
    tool = pytest.importorskip("rattler_build", reason="py-rattler-build is not installed")
    variants = {"c_stdlib": ["sysroot"], "c_stdlib_version": ["2.34"], "cxx_compiler": ["gxx"]}
    read = tool.Stage0Recipe.from_file(str(recipe))
    assert len(read.render(tool.VariantConfig(variants))) == 1
    wrong = recipe.read_text(encoding="utf-8") + "surprise: 1\n"
    with pytest.raises(Exception, match="surprise"):
        tool.Stage0Recipe.from_yaml(wrong)


def test_the_check_of_the_dockerfile_knows_its_instructions(root):
    tool = runpy.run_path(str(root / "tools" / "check_dockerfile"))
    text = (root / "Dockerfile").read_text(encoding="utf-8")
    found = tool["instructions"](text)
    assert {"FROM", "RUN", "COPY", "ENTRYPOINT"} <= {name for name, _ in found}
    assert all(hasattr(tool["Dockerfile"], f"do_{name.lower()}") for name, _ in found)
    (joined,) = [rest for name, rest in found if name == "RUN" and "useradd" in rest]
    assert joined.startswith("apt-get update ") and joined.endswith("--create-home nsimplex")
    ended = [rest for name, rest in found if name in ("USER", "ENTRYPOINT")]
    assert ended == ["nsimplex", '["nsimplex"]']
