"""Turn the pickled client files of PFLlib and HtFLlib (0.npz, 1.npz, ...) into plain arrays for `audit import`.

    python examples/convert_pickled_npz.py --i-made-these-files dataset/Cifar10/train plain/

RISK: these files hold pickled Python objects. Reading a pickle runs whatever code its author put into it, with your
rights, on your machine. Convert only files that you generated yourself. fedre-audit itself never unpickles anything.
"""

import sys
from pathlib import Path

import numpy as np


def convert(source: Path, target: Path) -> int:
    """Files converted: {'x': ..., 'y': ...} under the key `data` becomes two plain arrays x and y."""
    target.mkdir(parents=True, exist_ok=True)
    files = sorted(source.glob("*.npz"))
    for path in files:
        data = np.load(path, allow_pickle=True)["data"].item()
        np.savez(target / path.name, x=np.asarray(data["x"]), y=np.asarray(data["y"]))
    return len(files)


if __name__ == "__main__":
    if len(sys.argv) != 4 or sys.argv[1] != "--i-made-these-files":
        sys.exit(__doc__)
    print(f"{convert(Path(sys.argv[2]), Path(sys.argv[3]))} files converted")
