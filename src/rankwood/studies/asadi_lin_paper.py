"""What Asadi & Lin (2013) report."""

from __future__ import annotations

# Table 1 of the paper, MSLR-WEB10K: d_avg, T_avg, p_avg, n_avg, NDCG@1, 3, 5, 10, 20, latency and half its interval.
PAPER: dict[str, tuple[float, ...]] = {
    "baseline": (17.8, 321.2, 5716, 44115, 0.471, 0.456, 0.461, 0.480, 0.511, 42.2, 1.5),
    "lambda 0.4": (15.7, 327.1, 5178, 45462, 0.471, 0.457, 0.461, 0.480, 0.511, 42.7, 1.5),
    "lambda 0.8": (12.3, 317.8, 3945, 44173, 0.471, 0.457, 0.461, 0.480, 0.511, 41.7, 1.4),
    "lambda 0.95": (11.7, 325.8, 3796, 44421, 0.472, 0.457, 0.461, 0.480, 0.511, 41.6, 1.4),
    "alpha 0.05": (9.1, 395.3, 3592, 30554, 0.471, 0.457, 0.461, 0.479, 0.510, 32.4, 1.1),
    "alpha 0.1": (7.8, 432.2, 3211, 26228, 0.472, 0.456, 0.460, 0.479, 0.510, 28.8, 1.1),
    "alpha 0.2": (6.4, 474.0, 3005, 22372, 0.471, 0.456, 0.460, 0.478, 0.509, 25.7, 0.8),
    "alpha 0.4": (4.8, 567.2, 2706, 17524, 0.469, 0.454, 0.458, 0.476, 0.507, 22.5, 0.7),
    "alpha 0.6": (3.6, 675.8, 2483, 13660, 0.467, 0.452, 0.456, 0.474, 0.505, 18.5, 0.5),
}
# Of NDCG@1, 3, 5, 10, 20: the last so many are significantly below the baseline.
PAPER_STARS = {"alpha 0.05": 1, "alpha 0.1": 1, "alpha 0.2": 2, "alpha 0.4": 5, "alpha 0.6": 5}
PAPER_TOUCHED = 0.956  # share of the features that scoring an instance looks at, plain LambdaMART
