import dataclasses

import pytest
import torch

from truekernel.errors import BadInputError
from truekernel.execution.cuda.judging import judge, judge_kernels, output_tensors
from truekernel.execution.cuda.outcomes import hazard_texts, outcome_of
from truekernel.execution.cuda.wire_cases import case_message
from truekernel.execution.cuda.worker_process import Answer, too_large
from truekernel.model import BufferArg, BufferSpec, Launch, LaunchPlan, ScalarArg
from truekernel.numerics import statistics
from truekernel.numerics.expected import Expected

PLAN = LaunchPlan(
    (
        BufferSpec("x", (4,), "float32", "input"),
        BufferSpec("state", (2,), "int64", "input"),
        BufferSpec("y", (4,), "float16", "empty"),
        BufferSpec("scratch", (3,), "float32", "empty"),
        BufferSpec("count", (1,), "int32", "zeros"),
    ),
    (
        Launch(
            "k<3>", (2, 1, 1), (32, 1, 1), (BufferArg(0, 8), ScalarArg("int", -2), ScalarArg("bool", 1)), 64, True, 1
        ),
    ),
    (2,),
)
INPUTS = {"x": torch.arange(4.0), "state": torch.tensor([5, 6])}


def test_plan_becomes_a_message_with_named_contents():
    found = case_message("key", PLAN, INPUTS, [torch.full((4,), 2.0, dtype=torch.float16)], ["state"])
    buffers = found.message["buffers"]
    assert [b["role"] for b in buffers] == ["input", "mutable", "empty", "empty", "zeros"]
    assert [b["nbytes"] for b in buffers] == [16, 16, 8, 12, 4]
    assert bytes(found.contents[buffers[0]["content"]]) == INPUTS["x"].numpy().tobytes()
    assert buffers[2]["stale"] == buffers[3]["stale"]
    assert found.message["launches"] == [
        {
            "kernel": "k<3>",
            "grid": [2, 1, 1],
            "block": [32, 1, 1],
            "args": [["buffer", 0, 8], ["scalar", "feffffff"], ["scalar", "01"]],
            "shared": 64,
            "cooperative": True,
            "stream": 1,
        }
    ]


def test_equal_tensors_are_one_content_and_references_travel():
    want = Expected("y", "float16", "value", torch.ones(4).half(), torch.ones(4).double(), torch.ones(4).double())
    found = case_message("key", PLAN, INPUTS, None, [], [want])
    (reference,) = found.message["references"]
    assert reference["truth"] == reference["scale"] != reference["published"]
    assert (reference["spread"], reference["ties"], reference["elements"]) == (None, None, 4)
    assert len(found.contents) == 4
    table = Expected(
        "y",
        "int64",
        "index",
        torch.ones(2).long(),
        torch.ones(2).double(),
        torch.ones(2).double(),
        ties=torch.ones(2, 5),
    )
    assert case_message("key", PLAN, INPUTS, None, [], [table]).message["references"][0]["ties_length"] == 5


@pytest.mark.parametrize(
    ("inputs", "why"),
    [
        ({"x": torch.ones(4)}, "no input 'state'"),
        (INPUTS | {"x": torch.ones(5)}, "input 'x' has 5"),
        (INPUTS | {"x": torch.ones(4).double()}, "float64"),
    ],
)
def test_tensors_that_do_not_fit_are_refused(inputs, why):
    with pytest.raises(BadInputError, match=why):
        case_message("key", PLAN, inputs, None, [])
    with pytest.raises(BadInputError, match="2 stale tensors"):
        case_message("key", PLAN, INPUTS, [torch.ones(1), torch.ones(1)], [])


@pytest.mark.parametrize(
    ("code", "status"),
    [
        (700, "out_of_bounds"),
        (716, "misaligned"),
        (719, "trap"),
        (710, "trap"),
        (702, "timeout"),
        (718, "crash"),
        (999, "crash"),
    ],
)
def test_errors_of_kernels_become_outcomes(code, status):
    assert outcome_of(Answer("fault", code=code, text="said"), PLAN).status == status


def test_refused_launch_is_reported_as_on_the_cpu():
    outcome = outcome_of(Answer("refused", code=1, text="CUDA_ERROR_INVALID_VALUE", launch=0), PLAN)
    assert outcome.status == "trap"
    assert outcome.message.startswith("launch refused: k<3>, grid (2, 1, 1), block (32, 1, 1), 64 bytes")


def test_hazards_name_buffer_and_byte():
    texts = hazard_texts([("before", 2, -4), ("behind", 2, 8), ("input", 0, 0), ("far", -1, 0)], PLAN)
    assert texts == (
        "out_of_bounds: wrote before buffer 'y' at byte -4",
        "out_of_bounds: wrote behind buffer 'y' at byte 8",
        "out_of_bounds: wrote to input buffer 'x'",
        "out_of_bounds: wrote to memory that is not its own",
    )


def test_size_that_fits_is_offered():
    text = str(too_large("softmax:1", "NVIDIA L4", 40 << 30, 20 << 30))
    assert "case 'softmax:1' needs 40.0 GiB on the NVIDIA L4, 20.0 GiB are free" in text
    assert "45 %" in text


def test_outputs_of_a_wrong_size_are_refused():
    good = output_tensors([memoryview(bytes(8))], PLAN)
    assert good[0].dtype == torch.float16
    with pytest.raises(ValueError, match="7 bytes, 8 expected"):
        output_tensors([memoryview(bytes(7))], PLAN)


def test_statistics_come_from_the_device_or_from_outputs():
    truth = torch.ones(4).double()
    want = [Expected("y", "float32", "value", truth.float(), truth, truth * 1e-7)]
    outputs = [torch.tensor([1.0, 1.1, 1.0, 1.0])]
    host = judge(None, outputs, want, "poison", ((1e-2, 1e-2),), (0.0,))
    assert host == statistics(outputs, want, "poison", ((1e-2, 1e-2),), (0.0,))
    assert judge(list(host.values()), None, want, "poison", ((1e-2, 1e-2),), (0.0,)) == dict(host)
    with_spread = dataclasses.replace(want[0], spread=truth)
    assert judge_kernels([*want, *want, with_spread], ((1e-2, 1e-2),), (0.0,)) == (
        "tk_judge<0, true, true, 1, 1, false>",
        "tk_judge<0, true, true, 1, 1, true>",
        "tk_combine",
    )
