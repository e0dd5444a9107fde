"""Ctrl-C while another Ctrl-C is being handled."""

from __future__ import annotations

import os
import subprocess
import sys

# The first Ctrl-C comes while the work waits. The second comes at the first, second, third ... call
# or return in the main thread since the first one's handler was called.
PROGRAM = """
import os, signal, sys, time
from crown.cli.interrupt import Interrupted, supervise

def events_of_two(moment):
    passed = 0

    def follow(frame, event, value):
        nonlocal passed
        if passed or frame.f_code is handler.__code__:
            passed += 1
            if passed == moment:
                signal.raise_signal(signal.SIGINT)

    def work(stop):
        nonlocal handler
        handler = signal.getsignal(signal.SIGINT)
        time.sleep(0.02)
        os.kill(os.getpid(), signal.SIGINT)
        stop.wait()

    def handler(*event): ...

    signal.signal(signal.SIGINT, handler)
    sys.setprofile(follow)
    try:
        supervise(work, last_line="stopped", give_up=lambda: None)
    except Interrupted as error:
        sys.setprofile(None)
        assert str(error) == "stopped"
    return passed

for moment in range(1, 26):
    while (passed := events_of_two(moment)) == 0: ...  # the first came while `follow` ran
    assert passed >= moment
"""


def test_ctrl_c_inside_of_another_ones_handler() -> None:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    subprocess.run([sys.executable, "-c", PROGRAM], env=environment, timeout=300, check=True)
