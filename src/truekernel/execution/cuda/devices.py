"""What GPU is there, asked without making a context."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from functools import lru_cache

from truekernel.errors import GpuMissingError

_QUESTION_SECONDS = 60.0
_KNOWN = "TRUEKERNEL_GPU_"
"""With the number of a GPU behind it: what is known of it, for processes that start from this one."""


@dataclass(frozen=True, slots=True)
class DeviceInfo:
    """A GPU. `arch`: "sm_90"; `memory`: bytes; `driver`: newest CUDA version that the driver serves (13000 is 13.0)."""

    name: str
    arch: str
    memory: int
    driver: int


@lru_cache(maxsize=8)
def device_info(device: int = 0) -> DeviceInfo:
    """The GPU number `device` among those that CUDA_VISIBLE_DEVICES shows. Raises GpuMissingError, which says what is missing.

    Asked in a process of its own: this one may fork later, which a loaded driver does not survive.
    """
    known = os.environ.get(f"{_KNOWN}{device}")
    if known:
        return DeviceInfo(**json.loads(known))
    command = [sys.executable, "-m", "truekernel.execution.cuda.devices", str(device)]
    try:
        run = subprocess.run(command, capture_output=True, text=True, timeout=_QUESTION_SECONDS, check=False)
        answer = json.loads(run.stdout)
    except subprocess.TimeoutExpired:
        raise GpuMissingError(f"the GPU driver did not answer within {_QUESTION_SECONDS:g} s") from None
    except ValueError:
        last = (run.stderr.strip().splitlines() or [f"exit code {run.returncode}"])[-1]
        raise GpuMissingError(f"the GPU driver failed: {last}") from None
    if "error" in answer:
        raise missing(answer["error"], answer["text"])
    info = DeviceInfo(**answer)
    os.environ[f"{_KNOWN}{device}"] = json.dumps(answer)
    return info


def missing(kind: str, text: str) -> GpuMissingError:
    """The error for what a process found when it looked for the GPU: no_driver, no_device or driver."""
    if kind == "no_driver":
        return GpuMissingError(f"no NVIDIA driver ({text}): install one, or use the CPU")
    if kind == "no_device":
        return GpuMissingError(f"no NVIDIA GPU ({text}): check nvidia-smi and CUDA_VISIBLE_DEVICES, or use the CPU")
    return GpuMissingError(f"the GPU can't be used ({text}): check nvidia-smi, or use the CPU")


def _answer(device: int) -> dict[str, object]:
    from truekernel.execution.cuda.driver import NO_DEVICE, Driver, DriverError, DriverMissingError

    try:
        driver = Driver()
        count = driver.device_count()
        if not 0 <= device < count:
            return {"error": "no_device", "text": f"device {device}: {count} are visible"}
        return {
            "name": driver.device_name(device),
            "arch": driver.arch(device),
            "memory": driver.total_memory(device),
            "driver": driver.version(),
        }
    except DriverMissingError as error:
        return {"error": "no_driver", "text": str(error)}
    except DriverError as error:
        kind = "no_device" if error.code == NO_DEVICE else "driver"
        return {"error": kind, "text": str(error)}


if __name__ == "__main__":
    sys.stdout.write(json.dumps(_answer(int(sys.argv[1]))))
