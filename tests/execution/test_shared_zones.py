"""Red zones behind static shared variables."""

from __future__ import annotations

import subprocess

import pytest

from truekernel.execution.simt.shared_zones import RED_ZONE, widen

SOURCE = """
thread_local int first[8];
int ordinary[8];
void use(int *);
void f() { static thread_local int second[4]; use(first); use(second); use(ordinary); }
"""


def sizes(path):
    """Size by name of the thread-local and ordinary sections without contents."""
    listing = subprocess.run(["readelf", "-SW", path], capture_output=True, text=True, check=True).stdout
    rows = (line.split("]", 1)[1].split() for line in listing.splitlines() if "NOBITS" in line)
    return {row[0]: int(row[4], 16) for row in rows if int(row[4], 16)}


def test_widens_thread_local_variables_only(tmp_path):
    source, out = tmp_path / "a.cpp", tmp_path / "a.o"
    source.write_text(SOURCE)
    subprocess.run(["g++", "-fdata-sections", "-fPIC", "-c", source, "-o", out], check=True)
    before = sizes(out)
    assert widen(out) == 2
    after = sizes(out)
    assert {name: after[name] - before[name] for name in before} == {
        name: RED_ZONE if ".tbss" in name else 0 for name in before
    }
    assert sum(".tbss" in name for name in before) == 2


def test_refuses_other_files(tmp_path):
    other = tmp_path / "a.o"
    other.write_bytes(b"no object")
    with pytest.raises(ValueError, match="ELF64"):
        widen(other)
