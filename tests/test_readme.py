"""The README's example runs and prints what the README says."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

README = Path(__file__).parent.parent / "README.md"


def test_the_example_prints_what_it_says() -> None:
    blocks = re.findall(r"```(\w*)\n(.*?)```", README.read_text(encoding="utf-8"), flags=re.DOTALL)
    position = next(i for i, (language, text) in enumerate(blocks) if language == "python" and "crown.View(" in text)
    program, promised = blocks[position][1], blocks[position + 1][1]
    finished = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert finished.returncode == 0, finished.stderr
    assert finished.stdout == promised
