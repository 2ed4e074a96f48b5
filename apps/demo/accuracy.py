"""Prints the share of rows whose largest logit is the label's.

    python3 accuracy.py OUTPUTS.npz LABELS.npz [MINIMUM]

Exits with 1 below MINIMUM (a fraction).
"""

import sys

import numpy as np


def main():
    if len(sys.argv) not in (3, 4):
        sys.exit(__doc__)
    predicted = np.load(sys.argv[1])["logits"].argmax(1)
    labels = np.load(sys.argv[2])["label"]
    if predicted.shape != labels.shape:
        sys.exit(f"{len(predicted)} outputs for {len(labels)} labels")
    right = int((predicted == labels).sum())
    share = right / len(labels)
    print(f"accuracy on the {len(labels)} held-out digits: {right} right, {share:.2%}")
    if len(sys.argv) == 4 and share < float(sys.argv[3]):
        sys.exit(f"at least {float(sys.argv[3]):.2%} expected")


if __name__ == "__main__":
    main()
