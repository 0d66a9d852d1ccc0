"""The stopwatch, with a clock that a test sets: what is called, what is counted, and what a busy machine changes."""

from __future__ import annotations

import math
import warnings
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import rankwood as rw
from rankwood.scoring import timing
from rankwood.scoring.engines import ENGINES, Engine, Limits
from rankwood.scoring.timing import BATCH, Budget, Timing, interval_ranks, speed_up, time_models, warn_if_busy
from strategies.ensembles import big_ensemble

SIX = Budget(calls=6, seconds=0.0, most_seconds=math.inf)
X = np.arange(9000, dtype=np.float32)[:, None]


class FakeTime:
    """Clocks that go when they are told to. Reading that of the CPU takes some CPU time, as it does."""

    def __init__(self, tick=1):
        self.wall = self.cpu = 0
        self.tick = tick  # of the CPU clocks
        self.reads = []

    def perf_counter_ns(self):
        return self.wall

    def thread_time_ns(self):
        return self._read("thread")

    def process_time_ns(self):
        return self._read("process")

    def _read(self, which):
        self.reads.append(which)
        self.cpu += 500
        return self.cpu // self.tick * self.tick

    def perf_counter(self):
        return self.wall / 1e9


class Kernel:
    """Scores nothing, but takes so many nanoseconds of CPU time; from call to call it waits for `waits` more."""

    n_bytes = 1

    def __init__(self, clock, cpu, waits=(0,), n_cpus=1):
        self.clock, self.cpu, self.waits, self.n_cpus, self.calls = clock, cpu, waits, n_cpus, []

    def score(self, X, scores, single, n_threads):
        self.clock.cpu += self.cpu
        self.clock.wall += self.cpu // self.n_cpus + self.waits[len(self.calls) % len(self.waits)]
        self.calls.append((len(X), float(X[0, 0]), single, n_threads))


@pytest.fixture
def clock(monkeypatch):
    clock = FakeTime()
    monkeypatch.setattr(timing, "time", clock)
    monkeypatch.setattr(timing, "BUSY", 0.2)
    return clock


def prepared(kernel):
    model = rw.Ensemble.from_trees([(0, 0.5, 1.0, 2.0)])
    return Engine("fake", "for a test", Limits(), lambda model: kernel).prepare(model)


def measure(*kernels, **how):
    return time_models([(prepared(kernel), X) for kernel in kernels], **{"budget": SIX, **how})


# ------------------------------------------------------------------------------------------------ what is called


@pytest.mark.parametrize(("n_docs", "batch", "size"), [(10, 3, 3), (10, 100, 10), (9000, BATCH, BATCH)])
def test_calls_are_of_one_size_and_go_round_the_rows(clock, n_docs, batch, size):
    kernel = Kernel(clock, 100_000)
    (found,) = time_models([(prepared(kernel), X[:n_docs])], batch=batch, budget=SIX)
    assert (found.batch, found.n_calls) == (size, 6)
    assert {n for n, *_ in kernel.calls} == {size}
    firsts = [first for _, first, *_ in kernel.calls]
    assert firsts == [size * (i % (n_docs // size)) for i in range(len(firsts))]


def test_models_are_called_in_turn(clock):
    order, kernels = [], [Kernel(clock, 100_000) for _ in range(3)]
    for number, kernel in enumerate(kernels):
        kernel.score = lambda *given, number=number, score=kernel.score: (order.append(number), score(*given))
    assert [found.n_calls for found in measure(*kernels)] == [6, 6, 6]
    assert order == [0, 0, 0, 1, 1, 1, 2, 2, 2] + [0, 1, 2] * 6  # first each is warmed up


def test_short_calls_are_made_several_to_a_turn(clock):
    """Reading the CPU clock takes as long as they do."""
    kernel = Kernel(clock, 2_000)
    (found,) = measure(kernel, budget=Budget(calls=50, seconds=0.0, most_seconds=1.0), batch=1)
    assert found.n_calls == 50
    assert clock.reads == ["thread"] * 2 * 2  # turns of 25 calls
    assert found.us_per_doc == found.low == found.high == 2.0
    assert not found.busy


def test_a_slow_model_ends_early_and_a_fast_one_goes_on_with_the_others(clock):
    slow, fast, middle = Kernel(clock, 10**9), Kernel(clock, 10**5), Kernel(clock, 10**8)
    done = []
    found = measure(slow, fast, middle, budget=Budget(20, 0.01, 3.0), on_model=done.append)
    assert [one.n_calls for one in found] == [6, 100, 30]  # as many as make up 3 s, 0.01 s and 3 s
    assert done == sorted(set(done))
    assert done[-1] == 3


def test_what_is_done_before_a_call_is_done_before_each_and_not_timed(clock):
    kernel, order = Kernel(clock, 2_000), []

    def before():
        order.append(len(kernel.calls))
        clock.wall, clock.cpu = clock.wall + 10**6, clock.cpu + 10**6

    (found,) = measure(kernel, before=before, batch=10)
    assert order == list(range(6))
    assert found.us_per_doc == 0.2


def test_the_result_states_what_was_measured(clock):
    kernel = Kernel(clock, 100_000)
    (found,) = measure(kernel, batch=1000)
    assert found.conditions == {
        "batch": 1000, "engine": "fake", "precision": "double", "n_threads": 1, "busy": False,
    }  # fmt: skip
    assert {call[2:] for call in kernel.calls} == {(False, 1)}
    kernel = Kernel(clock, 100_000)
    (found,) = measure(kernel, precision="single", n_threads=2)
    assert (found.precision, found.n_threads) == ("single", 2)
    assert {call[2:] for call in kernel.calls} == {(True, 2)}


def test_engines_are_named_or_chosen(monkeypatch):
    model = big_ensemble(5, n_trees=6, n_leaves=8, n_features=4)
    rows = np.zeros((50, 4), np.float32)
    monkeypatch.setitem(ENGINES, "fake", Engine("fake", "for a test", Limits(), lambda model: Kernel(FakeTime(), 10)))
    chosen = [time_models([(model, rows)], batch=batch, budget=SIX)[0].engine for batch in (1, 50)]
    assert chosen == ["traverse", "bitslice"]
    assert time_models([(model, rows)], "fake", budget=SIX)[0].engine == "fake"
    with pytest.raises(rw.RankwoodError, match="no engine 'warp'"):
        time_models([(model, rows)], "warp")


# ------------------------------------------------------------------------------------------------ a busy machine


def test_other_work_does_not_change_times_and_ratios(clock):
    """The machine gives most calls of the larger model to others for a while."""
    large, small = Kernel(clock, 4 * 10**6, waits=(30 * 10**6, 30 * 10**6, 0)), Kernel(clock, 2 * 10**6)
    first, second = measure(large, small, batch=1000, budget=Budget(20, 0.0, math.inf))
    assert first.us_per_doc / second.us_per_doc == pytest.approx(2.0, rel=1e-3)
    assert first.us_per_doc == pytest.approx(4.0, rel=1e-3)
    assert first.wall_us == 34.0
    assert (first.busy, second.busy) == (True, False)
    assert first.waited == pytest.approx(1 - 4 / 24, abs=0.05)


@given(waits=st.lists(st.integers(0, 10**8), min_size=1, max_size=30), cpu=st.integers(10**5, 10**8))
def test_waiting_never_shows_on_one_thread(waits, cpu):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(timing, "time", clock := FakeTime())
        (found,) = measure(Kernel(clock, cpu, waits), batch=1000)
    assert found.us_per_doc == pytest.approx(cpu / 10**6, abs=1e-3)
    assert found.low <= found.us_per_doc <= found.high <= cpu / 10**6 + 1e-3
    assert 0.0 <= found.waited < 1.0


def test_several_threads_take_wall_clock_time(clock):
    """CPU times of threads add up. How much of it there is beside each other, the best turns show."""
    (found,) = measure(Kernel(clock, 4 * 10**6, n_cpus=2), n_threads=2, batch=1000)
    assert set(clock.reads) == {"process"}
    assert found.us_per_doc == 2.0
    assert not found.busy
    waits = (0, 0, 0, *[8 * 10**6] * 4, 0, 0)  # the first three warm up
    (found,) = measure(Kernel(clock, 4 * 10**6, waits, n_cpus=2), n_threads=2, batch=1000)
    assert found.us_per_doc == 2.0
    assert found.waited == pytest.approx(1 - 12 / 44, abs=0.01)
    assert found.busy


def test_a_cpu_clock_that_ticks_coarsely_is_not_taken(clock):
    clock.tick = 10**7
    (found,) = measure(Kernel(clock, 3 * 10**6), batch=1000, budget=Budget(100, 0.0, math.inf))
    assert found.us_per_doc == 3.0
    assert not found.busy


def test_a_busy_machine_is_told_in_a_sentence(monkeypatch):
    monkeypatch.setattr(timing, "BUSY", 0.2)
    quiet, busy = (Timing(1.0, 0.9, 1.1, 20, 100, "fake", waited=waited) for waited in (0.1, 0.3))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warn_if_busy([quiet, quiet])
        warn_if_busy([])
    with pytest.warns(UserWarning, match="the machine was busy while this was timed: ") as said:
        warn_if_busy([quiet, busy, busy])
    assert [warning.filename for warning in said] == [__file__]
    inside = {"__name__": "rankwood.somewhere", "warn_if_busy": warn_if_busy, "busy": busy}
    exec("def outer(): inner()\ndef inner(): warn_if_busy([busy])", inside)
    with pytest.warns(UserWarning, match="the machine was busy") as said:
        inside["outer"]()
    assert [warning.filename for warning in said] == [__file__]  # where rankwood was called


# ------------------------------------------------------------------------------------------------ statistics


def test_ranks_of_the_interval_are_the_binomial_ones():
    for n in (*range(6, 70), 100, 301):
        chances = [Fraction(math.comb(n, i) * 3 ** (n - i), 4**n) for i in range(n + 1)]  # of i calls below a quarter
        below = [sum(chances[:k]) for k in range(n + 1)]  # fewer than k
        low, high = interval_ranks(n)
        assert low == max((k for k in range(1, n + 1) if below[k] <= Fraction(25, 1000)), default=1), n
        assert high == min((k for k in range(1, n + 1) if below[k] >= Fraction(975, 1000)), default=n), n
    assert interval_ranks(40_000) == (9_831, 10_171)  # 10,000 and 1.96 * 86.6 to either side


def test_the_figure_is_the_lower_quartile_with_two_of_the_calls_around_it(clock):
    kernel = Kernel(clock, 0, waits=[10**6 * n for n in (1, 1, 1, 7, 1, 2, 3, 4, 5, 6, 8, 9, 100, 10, 11)])
    (found,) = measure(kernel, batch=1000, n_threads=2, budget=Budget(12, 0.0, math.inf))
    assert (found.low, found.us_per_doc, found.high) == (1.0, 3.0, 7.0)
    assert found.wall_us == 6.5


def test_a_budget_asks_for_calls_and_time_but_ends():
    budget = Budget(calls=20, seconds=0.2, most_seconds=2.0)
    assert not budget.is_spent(19, 10**8)
    assert not budget.is_spent(1000, 10**8)
    assert budget.is_spent(20, 2 * 10**8)
    assert not budget.is_spent(5, 10**10)  # too few for a quartile
    assert budget.is_spent(6, 2 * 10**9)
    assert not budget.is_spent(7, 19 * 10**8)


def timed(us, down, up) -> Timing:
    return Timing(us, us / down, us * up, 20, BATCH, "traverse")


factors = st.floats(1.0, 4.0)
timings = st.builds(timed, st.floats(1e-3, 1e3), factors, factors)


@given(timings, timings)
def test_a_speed_up_lies_in_its_interval_which_is_that_of_the_slow_down_turned_round(one, other):
    value, low, high = speed_up(one, other)
    assert value == one.us_per_doc / other.us_per_doc
    assert low <= value * (1 + 1e-12)
    assert high >= value * (1 - 1e-12)
    back = speed_up(other, one)
    assert back == pytest.approx((1 / value, 1 / high, 1 / low))
    # Wider than that of either time, narrower than if both were at their worst together.
    assert low <= min(one.low / other.us_per_doc, one.us_per_doc / other.high) * (1 + 1e-12)
    assert low >= one.low / other.high * (1 - 1e-12)


def test_a_speed_up_over_a_time_that_may_be_zero_has_no_interval():
    none = Timing(0.5, 0.0, 1.0, 20, BATCH, "traverse")
    assert speed_up(timed(1.0, 1.0, 1.0), none) == (2.0, None, None)


def test_intervals_of_speed_ups_hold_as_often_as_they_say():
    """Log-normal times whose intervals hold in 95 % of all cases: the quotient's does, too."""
    rng = np.random.default_rng(0)
    reach, n_held, n = math.exp(1.96 * 0.1), 0, 4000
    for a, b in np.exp(rng.normal(0.0, 0.1, (n, 2))):
        _, low, high = speed_up(timed(3.0 * a, reach, reach), timed(b, reach, reach))
        n_held += low <= 3.0 <= high
    assert 0.935 < n_held / n < 0.965
