"""How fast SentenceEncoder is beside the encoder's own `encode`, in CPU time, on one thread, without the cache.

python experiments/encoder_throughput.py [--quick]
"""

import argparse
import json
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch
from text_tables import RESULTS, encoder

from evenhand.counterfactuals import TokenSwap, identity_tokens
from evenhand.datasets import templates
from evenhand.text import SentenceEncoder

ROUNDS, TEXTS, COMMENTS = 5, 64, 2
SENTENCE = "the dog sleeps in a garden while rain falls on old roofs and people walk home"


def seconds(run: Callable[[list[str]], object], texts: list[str]) -> float:
    start = time.process_time()
    run(texts)
    return time.process_time() - start


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="one round on few texts, to see that it runs")
    parser.add_argument("--out", type=Path, default=RESULTS)
    given = parser.parse_args()
    rounds, number, comments = (1, 8, 1) if given.quick else (ROUNDS, TEXTS, COMMENTS)
    torch.set_num_threads(1)
    embed = SentenceEncoder(encoder().name, cache=False, progress=False)
    rng = np.random.default_rng(0)
    different = [" ".join(rng.choice(SENTENCE.split(), size=n)) for n in rng.integers(3, 40, size=number)]
    swapped = TokenSwap(identity_tokens())(templates(seed=0).texts).values[:comments].ravel().tolist()

    def own(texts: list[str]) -> None:
        embed.model.encode(texts, show_progress_bar=False)

    own(different[:8]), embed(different[:8])
    ratios = {"ratio": [], "ratio versions": []}
    for _ in range(rounds):
        for name, texts in (("ratio", different), ("ratio versions", swapped)):
            ratios[name].append(seconds(own, texts) / seconds(embed, texts))
    measured = {name: round(float(np.median(all_rounds)), 3) for name, all_rounds in ratios.items()}
    measured |= {"rounds": rounds, "texts": number, "comments": comments}
    (given.out / "encoder_throughput.json").write_text(json.dumps(measured, indent=1) + "\n")
    print(measured)


if __name__ == "__main__":
    main()
