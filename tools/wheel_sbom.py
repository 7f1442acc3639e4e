"""Lists in CycloneDX what is inside a wheel:  tools/wheel_sbom.py TREE FMT PACKAGE...

TREE is a wheel taken apart, FMT the version of fmt, and a PACKAGE is Debian's name of a library.
The file is nsimplex.cdx.json in the folder sboms of the metadata (PEP 770). auditwheel adds a file
of its own beside it. tools/build_wheel runs this with the Python of .venv-wheel.
"""

import runpy
import subprocess
import sys
from email.parser import HeaderParser
from pathlib import Path

from cyclonedx.contrib.this.builders import this_component
from cyclonedx.model.bom import Bom
from cyclonedx.model.component import Component, ComponentType
from cyclonedx.model.license import DisjunctiveLicense
from cyclonedx.output.json import JsonV1Dot6
from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator
from packageurl import PackageURL

LICENCES = runpy.run_path(str(Path(__file__).with_name("licences")))


def library(name, version, licence, url):
    """A component of the list, which its address names."""
    return Component(
        name=name,
        version=version,
        type=ComponentType.LIBRARY,
        licenses=[DisjunctiveLicense(name=licence)],
        purl=url,
        bom_ref=str(url),
    )


def debian_library(package):
    query = ["dpkg-query", "-W", "-f", "${Version}\n", package]
    found = subprocess.run(query, check=True, capture_output=True, text=True).stdout.split()
    url = PackageURL("deb", "debian", package, found[0])
    return library(package, found[0], LICENCES["debian_licence"](package), url)


def wheel_itself(metadata):
    name, version = metadata["Name"], metadata["Version"]
    url = PackageURL("pypi", None, name, version)
    return library(name, version, metadata["License-Expression"], url)


def main():
    (info,) = Path(sys.argv[1]).glob("*.dist-info")
    metadata = HeaderParser().parsestr((info / "METADATA").read_text(encoding="utf-8"))
    bom = Bom()
    bom.metadata.tools.components.add(this_component())
    bom.metadata.component = wheel_itself(metadata)
    fmt = PackageURL("github", "fmtlib", "fmt", sys.argv[2])
    inside = [library("fmt", fmt.version, "MIT", fmt), *map(debian_library, sys.argv[3:])]
    bom.components.update(inside)
    bom.register_dependency(bom.metadata.component, inside)
    text = JsonV1Dot6(bom).output_as_string(indent=1)
    fault = JsonStrictValidator(SchemaVersion.V1_6).validate_str(text)
    if fault:
        sys.exit(f"wheel_sbom: {fault}")
    (info / "sboms").mkdir(exist_ok=True)
    (info / "sboms" / "nsimplex.cdx.json").write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
