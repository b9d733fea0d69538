"""The seconds that a solve spends in products."""

from __future__ import annotations

import time

import pytest
import torch

from tri_apsp import engines
from tri_apsp.bench.cases import Case
from tri_apsp.bench.products import seconds_in_products
from tri_apsp.bench.solves import plan_of
from tri_apsp.configs import Config
from tri_apsp.engines.cpu import CpuEngine
from tri_apsp.engines.stripes import multiply_in_stripes
from tri_apsp.semirings import SIGNS

CPU = torch.device("cpu")


@pytest.mark.parametrize(
    "case", [Case(96), Case(96, batch=2), Case(96, sign=SIGNS[1])], ids=["one", "batch", "signed"]
)
def test_products_of_panels_count(monkeypatch, case):
    """Every product sleeps for a while, so the seconds show how many of them were timed."""

    class Slow(CpuEngine):
        calls = 0

        def product(self, *updates):
            Slow.calls += 1
            time.sleep(0.002)
            super().product(*updates)

        def panels(self, d, row, column, skip=(0, 0)):
            multiply_in_stripes(self, d, row, column)

    made = []

    def make(name, weights, config):
        made.append(Slow(weights, config))
        return made[-1]

    monkeypatch.setattr(engines, "make", make)
    weights = case.weights(CPU)
    plan = plan_of(weights, "kleene", Config(cutoff=64))
    start = time.perf_counter()
    inside = seconds_in_products(weights, plan)
    total = time.perf_counter() - start
    assert made[-1].spec.n == 96
    assert made[-1].spec.nonnegative == case.nonnegative
    assert Slow.calls > 2, "the panels made no product"
    assert 0.002 * Slow.calls <= inside <= total
    assert torch.equal(weights, case.weights(CPU)), "the weights were changed"
