"""Print a run's summary as JSON without its long lists (survivors, quarantined, hazards, per-rule tables).

python benchmarks/condense.py runs/full > results/audit_summary.json
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from truekernel.audit import summarise

LONG = ("survivors", "quarantined", "hazards", "kill_matrix", "curves", "rules")


def main() -> None:
    summary = summarise(Path(sys.argv[1]))
    document = summary.model_dump(mode="json", exclude=set(LONG))
    document["run"]["directory"] = Path(sys.argv[1]).name
    for checker in document["checkers"]:
        checker["miss_by_rule"] = []
        checker["false_rejection_by_rule"] = []
    document["counts"]["survivors"] = len(summary.survivors)
    document["counts"]["unconfirmed_witnesses"] = sum(not s.witness.confirmed for s in summary.survivors)
    json.dump(document, sys.stdout, indent=1)
    print()


if __name__ == "__main__":
    main()
