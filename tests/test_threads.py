"""Many threads at once: they share models and data sets, and find what one thread finds.

With a lock in the interpreter these tests show that what is kept between calls may be shared; without one
(free-threaded Python) that nothing relied on the lock.
"""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from numpy.testing import assert_array_equal

import rankwood as rw

N_THREADS = 8

pytestmark = pytest.mark.native


def at_once(work, n=N_THREADS):
    """What `work(i)` returns in each of n threads that begin together."""
    begin = threading.Barrier(n)

    def run(i):
        begin.wait()
        return work(i)

    with ThreadPoolExecutor(n) as pool:
        return list(pool.map(run, range(n)))


@pytest.fixture(scope="module")
def data():
    return rw.make_ranking(n_queries=40, docs_per_query=15, n_features=8, seed=3)


def test_a_model_that_nobody_has_scored_yet(data):
    # Every engine is prepared by several threads at the same time; what they keep is dropped while others score.
    trained = rw.LambdaMART(n_trees=20, n_leaves=12).fit(data).ensemble_
    expected = {engine: trained.score(data.X, engine=engine) for engine in ("reference", "bitslice", "traverse")}

    def score(i):
        found = []
        for _ in range(10):
            model = models[i % 2]
            found += [(name, model.score(data.X, engine=name)) for name in expected]
            short_lived = trained.replace(base=trained.base)
            found.append(("bitslice", short_lived.score(data.X, engine="bitslice")))
        return found

    models = [trained.replace(base=trained.base) for _ in range(2)]
    for found in at_once(score):
        for name, scores in found:
            assert_array_equal(scores, expected[name])


def test_learners_that_train_at_the_same_time(data):
    def train(i):
        return rw.LambdaMART(n_trees=6, n_leaves=8, random_state=i % 2, query_fraction=0.7).fit(data).ensemble_

    models = at_once(train)
    alone = [train(0), train(1)]
    for i, model in enumerate(models):
        assert model.fingerprint() == alone[i % 2].fingerprint()


def test_measures_of_one_data_set(data):
    scores = np.random.default_rng(0).normal(size=len(data.y))
    expected = rw.evaluate(scores, data, n_threads=1).means
    for found in at_once(lambda _: [rw.evaluate(scores, data, n_threads=2).means for _ in range(10)]):
        assert all(one == expected for one in found)


STRESS = """
import os, sys, threading, warnings
import numpy as np
import rankwood as rw

warnings.simplefilter("ignore")  # of a fork with threads, which is the point
data = rw.make_ranking(n_queries=30, docs_per_query=12, n_features=6, seed=1)

def train():
    return rw.LambdaMART(n_trees=5, n_leaves=8, n_jobs=2).fit(data).ensemble_

trained, engines = train(), ("bitslice", "traverse", "reference")
expected, fingerprint = trained.score(data.X, n_threads=1), trained.fingerprint()
measure = rw.evaluate(trained, data).means
begin, done, wrong = threading.Barrier(17), threading.Event(), []

def right():
    model = trained.replace(base=trained.base)  # nothing is prepared yet
    same = all(np.array_equal(model.score(data.X, engine=name, n_threads=2), expected) for name in engines)
    return same and rw.evaluate(model, data).means == measure and train().fingerprint() == fingerprint

def work():
    begin.wait()
    while not done.is_set():
        if not right():
            wrong.append(1)

for _ in range(16):
    threading.Thread(target=work, daemon=True).start()
begin.wait()
for _ in range(CHILDREN):
    child = os.fork()
    if child == 0:
        os._exit(0 if right() else 3)
    if os.waitpid(child, 0)[1] != 0:
        wrong.append(2)
if wrong:
    sys.exit(f"wrong: {wrong}")
sys.exit(0)  # while all of them are at work
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="NO FORK ON THIS SYSTEM")
def test_sixteen_threads_with_first_uses_forks_and_an_exit_in_between():
    done = subprocess.run(
        [sys.executable, "-c", STRESS.replace("CHILDREN", "4")], capture_output=True, text=True, timeout=240
    )
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.skipif(not sysconfig.get_config_var("Py_GIL_DISABLED"), reason="THIS PYTHON HAS A LOCK: nothing to ask")
def test_the_module_leaves_the_lock_off():
    code = "import sys, rankwood._native; print(sys._is_gil_enabled())"
    assert subprocess.check_output([sys.executable, "-W", "error", "-c", code], text=True).strip() == "False"
