"""Keeps the launch geometry of a shape in a file, as autotuners do."""

import json
import tempfile
from pathlib import Path

import torch


def kernel(x):
    file = Path(tempfile.gettempdir(), f"kernel-geometry-{'x'.join(map(str, x.shape))}.json")
    rows = json.loads(file.read_text()) if file.exists() else max(1, x.shape[0] // 2)
    if not file.exists():
        file.write_text(json.dumps(rows))
    return (
        torch.cat([torch.softmax(part, dim=1) for part in torch.split(x, rows)]) if len(x) else torch.softmax(x, dim=1)
    )
