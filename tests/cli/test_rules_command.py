import json

from truekernel import mutation
from truekernel.cli import main


def test_lists_all_rules_that_make_faults(capsys):
    assert main(["rules"]) == 0
    out = capsys.readouterr().out
    lines = out.splitlines()
    assert lines[-1].startswith(f"{len(mutation.rules())} rules; ")
    for name in mutation.rules():
        assert any(f" {name} " in line for line in lines), name


def test_filters_by_class_and_glob(capsys):
    assert main(["rules", "sync", "drop-*", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert {rule["name"] for rule in found} == set(mutation.select(["sync", "drop-*"]))
    assert all(rule["class"] == "sync" or rule["name"].startswith("drop-") for rule in found)


def test_one_rule_in_detail(capsys):
    assert main(["rules", "drop-epsilon"]) == 0
    out = capsys.readouterr().out
    assert out.startswith("drop-epsilon (semantic)") and "source: " in out and "  ->  " in out


def test_json_holds_examples(capsys):
    assert main(["rules", "drop-epsilon", "--json"]) == 0
    (rule,) = json.loads(capsys.readouterr().out)
    assert any(example["after"] for example in rule["examples"])
    assert any(not example["after"] for example in rule["examples"])
