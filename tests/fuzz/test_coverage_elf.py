import shutil
import subprocess

import numpy as np
import pytest

from truekernel.errors import BadInputError
from truekernel.execution.simt.toolchain import default_compiler
from truekernel.fuzz.coverage.elf import function_table
from truekernel.fuzz.coverage.native import torch_library

# `table` is data that a symbol calls a function; `no_unwind` is code without unwind tables.
SOURCE = """
int twice(int x) { return 2 * x; }
__attribute__((noinline)) static int hidden(int x) { return x * x + 1; }
int calls(int x) { return hidden(x) + hidden(x + 1); }
__asm__(".text\\n.globl table\\n.type table,@function\\ntable: .byte 0x55,0x48,0x89,0xe5\\n.size table,4\\n");
__asm__(".globl no_unwind\\n.type no_unwind,@function\\nno_unwind: movl $7,%eax\\nret\\n.size no_unwind,.-no_unwind\\n");
"""


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    folder = tmp_path_factory.mktemp("small")
    (folder / "small.c").write_text(SOURCE)
    command = [*default_compiler().command, "-x", "c", "-O1", "-fPIC", "-shared", "-fasynchronous-unwind-tables"]
    subprocess.run([*command, str(folder / "small.c"), "-o", str(folder / "small.so")], check=True)
    return folder / "small.so"


def names(table):
    return {table.symbol(number) for number in range(len(table))}


def test_functions_are_found_by_name_also_those_that_are_not_exported(small):
    table = function_table(small)
    assert {"twice", "hidden", "calls"} <= names(table)
    assert table.source == "symbols and unwind tables"


def test_what_only_a_symbol_calls_a_function_is_left_alone(small):
    assert not {"table", "no_unwind"} & names(function_table(small))


def test_a_stripped_library_has_the_same_functions_without_names(small, tmp_path):
    stripped = tmp_path / "stripped.so"
    strip = shutil.which("strip")
    if strip is None:
        pytest.skip("no strip on this machine")
    subprocess.run([strip, "--strip-all", str(small), "-o", str(stripped)], check=True)
    whole, table = function_table(small), function_table(stripped)
    assert set(whole.addresses) <= set(table.addresses)
    assert table.source == "unwind tables"
    exported = table.symbol(int(np.searchsorted(table.addresses, whole.addresses[0])))
    assert exported in names(whole) | {f"stripped.so+{int(whole.addresses[0]):#x}"}
    assert any(name.startswith("stripped.so+0x") for name in names(table))


def test_names_can_be_left_out(small):
    table = function_table(small, names=False)
    assert set(function_table(small).addresses) <= set(table.addresses)
    assert all(name.startswith("small.so+0x") for name in names(table))


def test_the_function_that_holds_an_address_is_found(small):
    table = function_table(small)
    number = next(n for n in range(len(table)) if table.symbol(n) == "calls")
    assert table.containing(int(table.addresses[number]) + 5) == number
    assert table.containing(0) == -1


def test_torch_gives_its_functions_with_and_without_names():
    table, bare = function_table(torch_library()), function_table(torch_library(), names=False)
    assert len(table) > 100_000
    assert table.source == "symbols and unwind tables"
    assert set(table.addresses) <= set(bare.addresses)
    assert len(bare) < 1.05 * len(table)
    assert np.all(np.diff(table.addresses) > 0)


def test_entries_of_torch_begin_instructions_as_a_disassembler_sees_them():
    objdump = shutil.which("objdump")
    if objdump is None:
        pytest.skip("no objdump on this machine")
    table = function_table(torch_library())
    middle = len(table) // 2
    inside = table.addresses[middle : middle + 400]
    arguments = [f"--start-address={inside[0]}", f"--stop-address={int(inside[-1]) + 16}", "--no-show-raw-insn"]
    text = subprocess.run(
        [objdump, "-d", *arguments, str(table.path)], capture_output=True, text=True, check=True
    ).stdout
    lines = [line.split(":", 1)[0].strip() for line in text.splitlines() if ":\t" in line]
    instructions = {int(line, 16) for line in lines}
    assert {int(address) for address in inside} <= instructions
    assert len(instructions) > 2 * len(inside)  # the check could fail


def test_what_is_no_library_is_refused(tmp_path):
    file = tmp_path / "text.so"
    file.write_text("not a library")
    with pytest.raises(BadInputError, match="no x86-64 ELF"):
        function_table(file)
    with pytest.raises(BadInputError, match="can't be read"):
        function_table(tmp_path / "missing.so")


def test_a_library_that_is_cut_short_is_refused(small, tmp_path):
    cut = tmp_path / "cut.so"
    cut.write_bytes(small.read_bytes()[:1000])
    with pytest.raises(BadInputError, match="cut short"):
        function_table(cut)
