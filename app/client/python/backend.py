"""PEP 517 build backend: gives pip the wheel next to this file."""

import os
import shutil


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    (wheel,) = (name for name in os.listdir() if name.endswith(".whl"))
    shutil.copy(wheel, wheel_directory)
    return wheel
