"""Learning from clicks: does it help to tell where documents were shown? Clicks are simulated, so the truth is known.

    python examples/position_bias.py

Users look at rank r with probability 1 / r^eta and click on what they like. What they were shown was ranked by chance,
by a weak model, by a better one, or by the worst feature. The rankers learn from the clicks, with and without
positions, and are measured by the true labels of other queries.
"""

import numpy as np

import rankwood as rw
from rankwood.lab.clicks import PositionModel

SETTINGS = {"n_trees": 100, "n_leaves": 8, "learning_rate": 0.1}
SHOWN, SEEDS = 15, range(3)

train, test = rw.make_ranking(n_queries=500, docs_per_query=25, n_features=12, seed=1).split(0.6)
first, second = (
    rw.LambdaMART(n_trees=trees, n_leaves=4).fit(train.select_queries(range(n))) for trees, n in ((3, 5), (50, 100))
)
qualities = [rw.evaluate(-train.X[:, feature].astype(float), train, "nDCG@10")["nDCG@10"] for feature in range(12)]
shown_by = {
    "chance": np.random.default_rng(0).random(train.n_docs),
    "a weak model": first.predict(train),
    "a better model": second.predict(train),
    "the worst feature": -train.X[:, int(np.argmin(qualities))].astype(float),
}

print(f"true labels: {rw.LambdaMART(**SETTINGS).fit(train).score(test):.4f}")
print(f"{'shown by':20}{'eta':>5}{'old ranking':>13}{'clicks':>9}{'positions':>11}{'bias off by':>13}")
for name, scores in shown_by.items():
    old = rw.evaluate(scores, train, "nDCG@10")["nDCG@10"]
    for eta in (0.5, 1.0, 2.0):
        model = PositionModel.power(SHOWN, eta)
        plain, informed, off = [], [], []
        for seed in SEEDS:
            clicks = model.clicked(train, scores, n_sessions=10, seed=seed)
            plain.append(rw.LambdaMART(**SETTINGS).fit(clicks.replace(position=None)).score(test))
            ranker = rw.LambdaMART(**SETTINGS).fit(clicks)
            informed.append(ranker.score(test))
            found, truth = ranker.position_biases_, np.log(model.propensities)
            off.append(np.abs((found - found.mean()) - (truth - truth.mean())).mean())
        print(f"{name:20}{eta:>5}{old:>13.4f}{np.mean(plain):>9.4f}{np.mean(informed):>11.4f}{np.mean(off):>13.2f}")
