"""The knowledge base: its data, what is drawn from it, and that it can be switched off."""

import json
from collections import Counter
from importlib import resources

import pytest
from pydantic import TypeAdapter, ValidationError

from truekernel.errors import BadInputError
from truekernel.fuzz.choices import PATTERNS, VOCABULARY
from truekernel.fuzz.knowledge import REPORT_KINDS, Report, load, tags
from truekernel.fuzz.knowledge.base import Knowledge, Pattern, check
from truekernel.fuzz.knowledge.names import kin, stem

FOLDER = resources.files("truekernel.fuzz.knowledge")
ROWS = json.loads(FOLDER.joinpath("reports.json").read_text(encoding="utf-8"))


def resolves(name):
    import importlib

    import torch

    found = torch
    path = "torch"
    for part in name.split(".")[1:]:
        path = f"{path}.{part}"
        try:
            found = getattr(found, part)
        except AttributeError:
            try:
                found = importlib.import_module(path)
            except ImportError:
                return False
    return True


def test_there_are_three_hundred_reports_of_every_kind():
    knowledge = load()
    assert len(knowledge.reports) >= 300
    assert {report.kind for report in knowledge.reports} == set(REPORT_KINDS)
    by_library = Counter(report.library for report in knowledge.reports)
    assert by_library["torch"] >= 300
    assert min(by_library["jax"], by_library["tensorflow"]) >= 10


def test_no_report_is_there_twice():
    urls = [row["url"] for row in ROWS]
    assert len(set(urls)) == len(urls)


def test_urls_belong_to_the_library():
    home = {"torch": "pytorch/pytorch", "jax": "jax-ml/jax", "tensorflow": "tensorflow/tensorflow"}
    assert [row["url"] for row in ROWS if f"github.com/{home[row['library']]}/" not in row["url"]] == []


def test_the_stored_schema_is_the_records():
    stored = json.loads(FOLDER.joinpath("schema.json").read_text(encoding="utf-8"))
    assert stored == TypeAdapter(list[Report]).json_schema()


@pytest.mark.filterwarnings("ignore")
def test_torch_has_every_operator_that_is_named():
    names = sorted({name for row in ROWS if row["library"] == "torch" for name in row["apis"]})
    assert len(names) > 150
    assert [name for name in names if not resolves(name)] == []
    assert not resolves("torch.nn.functional.no_such_operator")


def test_every_tag_is_described_and_used():
    used = {tag for row in ROWS for tag in row["tags"]}
    assert used == set(tags())


def test_a_row_of_an_unknown_kind_is_refused():
    with pytest.raises(ValidationError):
        Report.model_validate(ROWS[0] | {"kind": "explosion"})
    with pytest.raises(ValidationError):
        Report.model_validate(ROWS[0] | {"url": "https://example.org/1"})


def one(number, *, tag=(), api="torch.add", **more):
    row = {"url": f"https://github.com/pytorch/pytorch/issues/{number}", "apis": (api,), "tags": tuple(tag)}
    return Report.model_validate(ROWS[0] | row | more)


def pattern(**more):
    facts = {"name": "p", "tags": frozenset({"ties"}), "shape": None, "options": {}, "seeds": {}}
    return Pattern(**(facts | more))


@pytest.mark.parametrize(
    ("reports", "entries", "said"),
    [
        ([one(1), one(1)], [], "twice"),
        ([one(1, tag=["no_such_tag"])], [], "no_such_tag"),
        ([], [pattern(tags=frozenset({"other"}))], "other"),
        ([], [pattern(shape="spiral")], "spiral"),
        ([], [pattern(options={"integer": ("17.5",)})], "17.5"),
    ],
)
def test_what_does_not_fit_is_refused(reports, entries, said):
    with pytest.raises(BadInputError, match=said):
        check(reports, entries)


@pytest.mark.parametrize(
    ("name", "expected", "family"),
    [
        ("torch.nn.functional.max_pool2d", "maxpool2d", "maxpool"),
        ("torch.ops.aten.max_pool2d_with_indices_backward.default", "maxpool2d", "maxpool"),
        ("torch.nn.AdaptiveMaxPool3d", "adaptivemaxpool3d", "adaptivemaxpool"),
        ("torch.mkldnn_max_pool2d", "maxpool2d", "maxpool"),
        ("torch.Tensor.index_put_", "indexput", "indexput"),
        ("torch.ops.aten._log_softmax_backward_data", "logsoftmax", "logsoftmax"),
        ("torch.linalg.eig", "eig", "eig"),
        ("jax.numpy.mean", "mean", "mean"),
        ("torch.Tensor.backward", "backward", "backward"),
    ],
)
def test_names_of_one_kernel_are_kin(name, expected, family):
    assert stem(name) == expected
    assert kin(name) == family


def test_weight_counts_reports_on_the_operator_and_its_kin():
    knowledge = Knowledge(
        (one(1, api="torch.nn.MaxPool2d", disputed=False), one(2, api="torch.nn.functional.max_pool3d", disputed=True))
    )
    assert knowledge.weight("torch.nn.functional.max_pool2d") == pytest.approx(1 + 1.169925)  # log2(1 + 1 + 0.25)
    assert knowledge.weight("torch.nn.functional.max_pool1d") == pytest.approx(1 + 0.807355)  # log2(1 + 0.5 + 0.25)
    assert knowledge.weight("torch.add") == 1.0


def test_reported_operators_weigh_more():
    knowledge = load()
    assert knowledge.weight("torch.nn.functional.grid_sample") > knowledge.weight("torch.nn.functional.elu")
    assert knowledge.weight("torch.nn.functional.elu") == 1.0


def test_patterns_follow_the_operators_own_reports():
    knowledge = load()
    eig = knowledge.patterns("torch.linalg.eig")
    fold = knowledge.patterns("torch.nn.functional.fold")
    assert set(eig) == set(fold) == set(PATTERNS)
    assert eig["special_values"] > fold["special_values"]
    assert fold["extreme_window"] > eig["extreme_window"]
    assert eig["none"] == fold["none"] == 1.0
    assert min(eig.values()) >= 1.0


def test_an_unknown_operator_gets_the_average():
    knowledge = load()
    assert knowledge.patterns("torch.no_such_operator") == pytest.approx(knowledge.patterns("another"))


def test_shares_are_smoothed_counts():
    entry = pattern()
    knowledge = Knowledge((one(1, tag=["ties"], api="torch.topk"), one(2), one(3), one(4)), (entry,))
    assert knowledge.share(entry) == pytest.approx(1 / 4)
    assert knowledge.share(entry, "torch.topk") == pytest.approx((1 + 4 / 4) / (1 + 4))
    assert knowledge.share(entry, "torch.add") == pytest.approx((0 + 4 / 4) / (3 + 4))


def test_options_are_of_the_tree():
    knowledge = load()
    for kind, known in VOCABULARY.items():
        options = knowledge.options(kind, "torch.nn.functional.conv2d")
        assert set(options) <= set(known)
        assert all(factor > 1 for factor in options.values())
    assert "0" in knowledge.options("extent", "torch.div")
    assert "nan" in knowledge.options("values", "torch.linalg.eig")


def test_seeds_are_whole_numbers_beyond_the_vocabulary():
    integers = load().seeds("integers")
    assert len(integers) >= 10
    assert all(isinstance(value, int) and abs(value) < 2**63 for value in integers)
    assert not {str(value) for value in integers} & set(VOCABULARY["integer"])


def test_switched_off_it_knows_nothing():
    nothing = load(enabled=False)
    assert nothing.weight("torch.nn.functional.grid_sample") == 1.0
    assert set(nothing.patterns("torch.linalg.eig").values()) == {1.0}
    assert all(nothing.options(kind, "torch.linalg.eig") == {} for kind in VOCABULARY)
    assert nothing.seeds("integers") == ()
