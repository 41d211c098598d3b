"""`python -m fedre_audit.figures [NAME ...]`: measure figures; without a name, all of them."""

import sys

from fedre_audit.figures import FIGURES, measure

if __name__ == "__main__":
    for figure in sys.argv[1:] or list(FIGURES):
        print(measure(figure))
