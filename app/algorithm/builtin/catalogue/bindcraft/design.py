"""Runs BindCraft until it has accepted the requested number of designs, gives up, fails, or the
job's time is nearly over. Designs accepted by then are kept as the result; metrics.json holds the
reason for stopping."""
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
most = left - min(60, left / 10)  # the rest lets BindCraft finish writing
program = subprocess.Popen([sys.executable, "-u", script, *options], stdout=subprocess.PIPE, text=True, errors="replace")
ended = "BindCraft gave up"


def count():
    return len(list(out.glob("Accepted/*.pdb")))


def relay():
    """Relays the output of BindCraft and reports progress."""
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
            ended = "all attempts were used"


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
    ended = "all requested designs were accepted"
elif status is None:
    ended = "the time limit was reached"
elif status:
    ended = "BindCraft failed"
if accepted == 0 and status:
    sys.exit(status if status > 0 else 128 - status)
if accepted == 0 and status is None:
    sys.exit("molrun: No design was accepted within the job's time limit: increase it, or choose other hotspots or lengths.")
if accepted == 0:
    sys.exit("molrun: BindCraft gave up before it accepted a design: choose other hotspots or lengths, or crop the target to another domain.")
if accepted < asked:
    print(f"{accepted} of {asked} designs were accepted: {ended}.", flush=True)
(out / "metrics.json").write_text(json.dumps({"ended": ended}))
