"""Speaks a GPU worker's part without a GPU, so that what the parent decides can be tried anywhere.

A library's machine code is JSON: {case key: behaviour}. Behaviours: ok, other (ok with other bits), unsteady (every other time), fault, timeout, hang (says nothing), die, zone (a red zone is overwritten), input, far (resident contents
change and nothing says so), refused, shared fault (faults unless the process has served nothing else), shared zone, memory. Every process appends lines to the file FAKE_LOG.
"""

import itertools
import json
import os
import signal
import sys
import time
from pathlib import Path

from truekernel.execution.cuda.wire import Channel, ClosedError

ANSWER = {
    "status": "ok",
    "seconds": 0.001,
    "digest": "00000000000000aa",
    "hazards": [],
    "code": 0,
    "text": "",
    "launch": 0,
    "outputs": [],
    "values": None,
}


turns = itertools.count(1)


def log(text: str) -> None:
    with Path(os.environ["FAKE_LOG"]).open("a") as file:
        file.write(f"{os.getpid()} {text}\n")


def serve(channel: Channel) -> None:
    contents: dict[str, bytes] = {}
    cases: dict[str, dict] = {}
    libraries: dict[int, dict[str, str]] = {}
    changed = None
    runs = 0
    while True:
        request, payload = channel.receive()
        ask = request["ask"]
        if ask == "open":
            hello = {"name": "fake", "arch": "sm_90", "driver": 13000, "total": 1 << 30, "free": 1 << 30}
            channel.send(json.loads(os.environ.get("FAKE_HELLO", "null")) or hello | {"most_shared": 1})
        elif ask == "support":
            channel.send({"healthy": os.environ.get("FAKE_SICK") is None, "free": 1 << 30})
        elif ask == "contents":
            at = 0
            for name, size in zip(request["names"], request["sizes"], strict=True):
                contents[name] = bytes(payload[at : at + size])
                at += size
            channel.send({})
        elif ask == "drop":
            for name in request["names"]:
                del contents[name]
            log(f"drop {len(request['names'])}")
            channel.send({})
        elif ask == "cases":
            for case in request["cases"]:
                assert all(b.get("content", next(iter(contents))) in contents for b in case["buffers"])
                cases[case["key"]] = case
        elif ask == "library":
            libraries[request["number"]] = json.loads(payload)
        elif ask in ("forget", "release"):
            pass
        elif ask == "verify":
            channel.send({"changed": changed})
        elif ask == "run":
            end, stray = run(channel, request, cases, libraries[request["library"]], runs == 0)
            runs += 1
            changed = changed or stray
            channel.send({"changed": changed if request["verify"] else None, **end})
        else:
            channel.send({})


def run(channel: Channel, request: dict, cases: dict, library: dict[str, str], alone: bool) -> tuple[dict, str | None]:
    ended, stray = request["ended"], None
    for number, execution in enumerate(request["executions"]):
        if execution["series"] and not execution["series"] & ~ended:
            continue
        behaviour = library[execution["key"]]
        log(f"{behaviour} {execution['key']} {'alone' if alone else 'shared'}")
        if behaviour.startswith("shared"):
            behaviour = "ok" if alone else behaviour.removeprefix("shared ")
        answer = {**ANSWER, "execution": number}
        if behaviour == "other" or (behaviour == "unsteady" and next(turns) % 2):
            answer["digest"] = "00000000000000bb"
        elif behaviour in ("fault", "timeout", "refused"):
            answer |= {"status": behaviour, "code": 700 if behaviour == "fault" else 1, "seconds": 0.5}
        elif behaviour in ("zone", "input"):
            answer["hazards"] = [["behind" if behaviour == "zone" else "input", 1, 16]]
        elif behaviour == "hang":
            time.sleep(600)
        elif behaviour == "die":
            os.kill(os.getpid(), signal.SIGKILL)
        elif behaviour == "far":
            stray = "a content"
        outputs = []
        if execution["outputs"] and answer["status"] == "ok":
            case = cases[execution["key"]]
            outputs = [bytes(case["buffers"][n]["nbytes"]) for n in case["outputs"]]
            answer["outputs"] = [len(o) for o in outputs]
        channel.send(answer, outputs)
        if answer["status"] in ("fault", "timeout"):
            return {"spoiled": [], "fatal": True}, stray
        if answer["status"] != "ok":
            ended |= execution["series"]
        if answer["hazards"] and not request["mend"]:
            break
    return {"spoiled": [], "fatal": False}, stray


if __name__ == "__main__":
    log("start")
    try:
        serve(Channel(0, 1))
    except ClosedError:
        sys.exit(0)
