"""The adapter of JAX, where JAX is installed. Nothing is computed in this process: XLA's threads do not survive a fork."""

import subprocess
import sys

import pytest

jax = pytest.importorskip("jax")

from truekernel.fuzz.libraries.jax import FEATURE_NAMES, Jax  # noqa: E402

PROGRAM = """
from truekernel.fuzz.libraries.jax import Jax
from truekernel.fuzz.library import Ran
from truekernel.fuzz.records import Call, TensorValue, TestCase
library = Jax(); library.start()
call = Call("jax.numpy.sin", (TensorValue((3, 4)),))
bound = library.bind(call, (), ())
again = lambda: library.bind(call, (), ())
ran = Ran(TestCase("jax", (call,)), (bound.operator,), (bound(),), 0.0, again)
honest = [oracle.judge(ran) for oracle in library.oracles() if oracle.applies(ran.case, ran.operators)]
wrong = Ran(ran.case, ran.operators, (bound() * 1.01,), 0.0, again)
seen = [oracle.judge(wrong) for oracle in library.oracles()]
print(honest == [None, None, None], all(one is not None for one in seen))
"""


def test_operators_take_arrays_and_have_features():
    operators = Jax().operators()
    assert len(operators) >= 100
    assert all(len(operator.features) == len(FEATURE_NAMES) for operator in operators)
    assert {"jax.numpy.add", "jax.nn.softmax", "jax.lax.conv_general_dilated"} <= {
        operator.name for operator in operators
    }


def test_judges_see_a_wrong_result_and_leave_an_honest_one_alone():
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=False)
    assert done.stdout.split() == ["True", "True"], done.stderr
