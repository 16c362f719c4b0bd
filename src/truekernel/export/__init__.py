"""Programs as files that other people's evaluators load.

from truekernel.export import Subject, model_new

text = model_new(subject, problem, axes)        # a KernelBench candidate: `class ModelNew(torch.nn.Module)`
"""

from truekernel.export.kernelbench import HOSTS, model_new, model_new_of
from truekernel.export.references import model
from truekernel.export.subject import Subject

__all__ = ["HOSTS", "Subject", "model", "model_new", "model_new_of"]
