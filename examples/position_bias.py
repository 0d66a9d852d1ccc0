"""Learning from clicks: does it help to tell where documents were shown? Clicks are simulated, so the truth is known.

    python examples/position_bias.py

Users look at rank r with probability 1 / r^eta and click on what they like. What they were shown was ranked by chance,
by a weak model, by a better one, or by the worst feature. The rankers learn from the clicks, with and without
positions, and are measured by the true labels of other queries.
"""

import numpy as np

import rankwood as rw
from rankwood.lab.clicks import PositionModel

SHOWN, SEEDS = 15, range(3)


def old_rankings(train: rw.Dataset) -> dict[str, np.ndarray]:
    """Scores by which the training queries were shown."""
    weak = rw.LambdaMART(n_trees=3, n_leaves=4).fit(train.select_queries(range(5)))
    better = rw.LambdaMART(n_trees=50, n_leaves=4).fit(train.select_queries(range(min(100, train.n_queries))))
    by_feature = [-column.astype(float) for column in train.X.T]
    return {
        "chance": np.random.default_rng(0).random(train.n_docs),
        "a weak model": weak.predict(train),
        "a better model": better.predict(train),
        "the worst feature": min(by_feature, key=lambda scores: rw.evaluate(scores, train, "nDCG@10")["nDCG@10"]),
    }


def main(n_queries: int = 500, n_trees: int = 100) -> None:
    train, test = rw.make_ranking(n_queries=n_queries, docs_per_query=25, n_features=12, seed=1).split(0.6)
    settings = {"n_trees": n_trees, "n_leaves": 8, "learning_rate": 0.1}
    print(f"true labels: {rw.LambdaMART(**settings).fit(train).score(test):.4f}")
    print(f"{'shown by':20}{'eta':>5}{'old ranking':>13}{'clicks':>9}{'positions':>11}{'bias off by':>13}")
    for name, scores in old_rankings(train).items():
        old = rw.evaluate(scores, train, "nDCG@10")["nDCG@10"]
        for eta in (0.5, 1.0, 2.0):
            model = PositionModel.power(SHOWN, eta)
            plain, informed, off = [], [], []
            for seed in SEEDS:
                clicks = model.clicked(train, scores, n_sessions=10, seed=seed)
                plain.append(rw.LambdaMART(**settings).fit(clicks.replace(position=None)).score(test))
                ranker = rw.LambdaMART(**settings).fit(clicks)
                informed.append(ranker.score(test))
                found, truth = ranker.position_biases_, np.log(model.propensities)
                off.append(np.abs((found - found.mean()) - (truth - truth.mean())).mean())
            print(f"{name:20}{eta:>5}{old:>13.4f}{np.mean(plain):>9.4f}{np.mean(informed):>11.4f}{np.mean(off):>13.2f}")


if __name__ == "__main__":
    main()
