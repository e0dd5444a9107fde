"""The package as a user meets it: `import crown`, and what tab completion shows."""

from __future__ import annotations

import subprocess
import sys

import crown


def run(program: str) -> str:
    finished = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert finished.returncode == 0, finished.stderr
    return finished.stdout


def test_spark_is_an_attribute_that_loads_no_pyspark() -> None:
    program = "import sys, crown; print(crown.spark.__name__, 'maintain' in dir(crown.spark), 'pyspark' in sys.modules)"
    assert run(program).split() == ["crown.spark", "True", "False"]


def test_importing_crown_loads_neither_kernel_nor_arrow() -> None:
    program = "import sys, crown; dir(crown); print({*sys.modules} & {'pyarrow', 'crown._kernel', 'pyspark'})"
    assert run(program).strip() == "set()"


def test_dir_shows_every_public_name_and_each_is_there() -> None:
    assert {"View", "spark", "CrownError", "__version__"} <= set(dir(crown))
    assert set(crown.__all__) <= set(dir(crown))
    for name in crown.__all__:
        assert getattr(crown, name) is not None
    for name in crown.spark.__all__:
        assert name in dir(crown.spark)
        assert getattr(crown.spark, name) is not None


def test_unknown_names_are_attribute_errors() -> None:
    assert not hasattr(crown, "sparkk")
    assert not hasattr(crown.spark, "maintian")
