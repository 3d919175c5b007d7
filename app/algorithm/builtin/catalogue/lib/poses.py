"""Splits files of docked poses."""
import pathlib
import re
import subprocess
import sys

MOST = 100


def refuse(sentence):
    """Ends the program with a sentence for the user."""
    sys.exit("molrun: " + sentence)


def split(path):
    """Writes pose1.sdf, pose2.sdf and so on, and returns them in this order; rejects a file with unreadable poses."""
    subprocess.run(["obabel", path, "-osdf", "-O", "pose.sdf", "-m"], capture_output=True, check=False)
    files = sorted(pathlib.Path().glob("pose[0-9]*.sdf"), key=lambda file: int(re.sub(r"\D", "", file.name)))
    if not files:
        refuse("The pose file has no readable molecule.")
    text = pathlib.Path(path).read_text(encoding="utf-8", errors="replace")
    there = len(re.findall(r"(?m)V[23]000\s*$|^@<TRIPOS>MOLECULE", text))
    if there > len(files):
        refuse(f"Only {len(files)} of {there} poses in the file can be read: it is truncated, or a molecule in it is damaged.")
    if len(files) > MOST:
        refuse(f"The file has {len(files)} poses, and at most {MOST} are allowed: split it.")
    return files


def check_places(number, places):
    """Rejects a pose with 2D coordinates."""
    if len(places) > 1 and not any(place[2] for place in places):
        refuse(f"Pose {number} has no 3D coordinates: give poses as written by a docking program.")
