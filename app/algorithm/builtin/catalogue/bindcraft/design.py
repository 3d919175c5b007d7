"""Runs BindCraft until it has accepted as many designs as are asked for, gives up, fails, or the
job's time is nearly over. Designs that were accepted by then are a result: metrics.json says
why there are no more of them."""
import json
import os
import pathlib
import subprocess
import sys
import threading
import time

begin = time.monotonic()
out, asked, script, *options = sys.argv[1:]
out, asked = pathlib.Path(out), int(asked)
left = float(os.environ.get("MOLRUN_SECONDS", "inf"))
most = left - min(60, left / 10)  # the rest is for what BindCraft has begun to write
program = subprocess.Popen([sys.executable, "-u", script, *options], stdout=subprocess.PIPE, text=True, errors="replace")
ended = "BindCraft gave up"


def count():
    return len(list(out.glob("Accepted/*.pdb")))


def relay():
    """Shows what BindCraft says, and how far it is."""
    global ended
    attempts = 0
    for line in program.stdout:
        print(line, end="", flush=True)
        if line.startswith("Starting trajectory: "):
            attempts += 1
            print(f"molrun:progress {min(count() / asked, 0.99):.2f} {count()} of {asked} accepted, attempt {attempts}", flush=True)
        elif line.startswith("The ratio of successful designs is lower"):
            ended = "too few attempts succeeded"
        elif "trajectories reached, stopping" in line:
            ended = "all attempts were made"


reader = threading.Thread(target=relay, daemon=True)
reader.start()
try:
    status = program.wait(None if most == float("inf") else max(0, most - (time.monotonic() - begin)))
except subprocess.TimeoutExpired:
    status = None
    program.terminate()
    try:
        program.wait(10)
    except subprocess.TimeoutExpired:
        program.kill()
        program.wait()
reader.join(10)

accepted = count()
if accepted >= asked:
    ended = "as many as asked for"
elif status is None:
    ended = "the time was up"
elif status:
    ended = "BindCraft failed"
if accepted == 0 and status:
    sys.exit(status if status > 0 else 128 - status)
if accepted == 0 and status is None:
    sys.exit("molrun: No design was accepted in the job's time: give it more, or choose other hotspots or lengths.")
if accepted == 0:
    sys.exit("molrun: BindCraft gave up before it accepted a design: choose other hotspots or lengths, or cut the target to another domain.")
if accepted < asked:
    print(f"{accepted} of {asked} designs were accepted: {ended}.", flush=True)
(out / "metrics.json").write_text(json.dumps({"ended": ended}))
