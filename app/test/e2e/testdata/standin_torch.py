"""Stands for PyTorch, as far as torch_device.py asks it. A file gpu-error beside it has the words in which
no GPU is found."""
import pathlib

words = pathlib.Path(__file__).with_name("gpu-error")


class Tensor:
    def cuda(self):
        raise RuntimeError(words.read_text().strip())

    def sum(self):
        return self

    def item(self):
        return 8.0


class cuda:
    is_available = staticmethod(lambda: not words.exists())
    get_device_name = staticmethod(lambda: "stand-in")


zeros = ones = lambda size, device="cpu": Tensor()
