"""The extras of pyproject.toml are documented, and messages name those that there are."""

import re

import pytest
import tomllib


@pytest.fixture(scope="module")
def project(root):
    return tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["project"]


@pytest.fixture(scope="module")
def extras(project):
    """The names of the packages of each extra, and of the extras that it takes in."""
    return {
        extra: [name for package in packages for name in names(package)]
        for extra, packages in project["optional-dependencies"].items()
    }


def names(requirement):
    """`numpy` of `numpy>=2`; the extras a and b of `nsimplex-attention[a,b]`."""
    own = re.fullmatch(r"nsimplex-attention\[([\w,]+)\]", requirement)
    return own[1].split(",") if own else [re.match(r"[\w-]+", requirement)[0]]


def test_no_extra_pins_a_version(project):
    """A pin would clash with the versions of others. tools/requirements-test.txt has pins."""
    for packages in project["optional-dependencies"].values():
        assert not [package for package in packages if "==" in package]


def test_the_extra_all_takes_in_the_others(extras):
    assert set(extras["all"]) == set(extras) - {"all", "dev"}


def test_the_extra_dev_has_the_packages_that_tests_use(root, extras):
    groups = tomllib.loads((root / "tools" / "pyproject.toml").read_text())["dependency-groups"]
    used = {names(package)[0] for package in groups["test"] + groups["build"]}
    # The wheel asks for two of them, the build for its backend, and torch brings triton where it is
    # used.
    used -= {"numpy", "safetensors", "scikit-build-core", "triton"}
    assert used <= {package for packages in extras.values() for package in packages}
    assert "all" in extras["dev"]


def words(page):
    """A page without its line breaks."""
    return " ".join(page.read_text(encoding="utf-8").split())


def test_the_page_about_installing_has_a_row_per_extra(root, extras):
    page = (root / "docs" / "install.md").read_text(encoding="utf-8")
    section = page.partition("## Optional packages")[2]
    rows = re.findall(r"^\| `(\w+)` \| ([^|]+) \|", section, re.MULTILINE)
    assert {extra: packages.split(", ") for extra, packages in rows} == extras


def test_a_message_that_installs_a_package_of_an_extra_names_it(root, extras):
    """A package of its own, such as igraph, needs no extra."""
    of = {
        package: extra
        for extra, packages in extras.items()
        for package in packages
        if package not in extras
    }
    named = []
    for path in sorted((root / "python" / "nsimplex").rglob("*.py")):
        text = re.sub(r'"\s+f?"', "", path.read_text(encoding="utf-8"))  # literals in a row
        for package, after in re.findall(r"pip install '?([\w-]+)(.{60})", text, re.DOTALL):
            if package in of:
                named.append(package)
                words = " ".join(after.replace("`", "").split())
                assert f"the extra {of[package]}" in words, f"{path}: {package}"
    assert {"rdkit", "anndata", "matplotlib", "networkx", "tokenizers"} <= set(named)


def test_commands_name_a_package_with_its_extra(root, extras):
    wanted = re.compile(r'\.package = "([\w-]*)",\s*\.extra = "(\w*)"')
    sources = [path for folder in ("src", "lab") for path in (root / folder).rglob("*.cpp")]
    named = [pair for path in sources for pair in wanted.findall(path.read_text(encoding="utf-8"))]
    assert ("matplotlib", "plots") in named and ("", "") in named
    for package, extra in set(named) - {("", "")}:
        assert package in extras[extra]


def test_the_supported_versions_are_those_that_pages_tell(root, project):
    assert project["requires-python"] == ">=3.10"
    for page in ("README.md", "docs/install.md"):
        assert "Python 3.10 or later and torch 2.11 to 2.14" in words(root / page), page


def test_the_classifiers_name_the_versions_that_are_supported(root, project):
    """The page about installing says which of them ran."""
    named = [each for each in project["classifiers"] if ":: Python :: 3." in each]
    minors = [each.rpartition(" ")[2] for each in named]
    assert minors == [f"3.{minor}" for minor in range(10, 15)]
    assert "Python 3.10 and 3.12 have not been tried" in words(root / "docs" / "install.md")
