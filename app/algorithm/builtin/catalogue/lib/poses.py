"""Splits files of docked poses, as docking programs write them."""
import pathlib
import re
import subprocess
import sys

MOST = 100


def refuse(sentence):
    """Ends the program with a sentence that the user reads."""
    sys.exit("molrun: " + sentence)


def split(path):
    """Writes pose1.sdf, pose2.sdf and so on, and returns them in this order; refuses a file of which a part can't be read."""
    subprocess.run(["obabel", path, "-osdf", "-O", "pose.sdf", "-m"], capture_output=True, check=False)
    files = sorted(pathlib.Path().glob("pose[0-9]*.sdf"), key=lambda file: int(re.sub(r"\D", "", file.name)))
    if not files:
        refuse("The file of poses has no molecule that can be read.")
    text = pathlib.Path(path).read_text(encoding="utf-8", errors="replace")
    there = len(re.findall(r"(?m)V[23]000\s*$|^@<TRIPOS>MOLECULE", text))
    if there > len(files):
        refuse(f"Only {len(files)} of {there} poses in the file can be read: it breaks off, or a molecule in it is damaged.")
    if len(files) > MOST:
        refuse(f"The file has {len(files)} poses; at most {MOST} can be taken: split it.")
    return files


def check_places(number, places):
    """Refuses a pose that is drawn in a plane."""
    if len(places) > 1 and not any(place[2] for place in places):
        refuse(f"Pose {number} has no coordinates in space: give poses as a docking program writes them.")
