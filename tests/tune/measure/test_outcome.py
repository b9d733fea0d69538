"""Outcomes: their classes, their messages, and their form in files."""

from __future__ import annotations

import math

import pytest

from tri_apsp.tune.measure.measurement import kind_of, outcome_of
from tri_apsp.tune.measure.outcome import Kind, Outcome, Times
from tri_apsp.tune.measure.problems import WrongResultError


def test_kinds_of_errors() -> None:
    assert kind_of(WrongResultError("")) is Kind.wrong_result
    assert kind_of(RuntimeError("PassManager::run failed")) is Kind.compile_error
    assert kind_of(RuntimeError("CUDA error: unspecified launch failure")) is Kind.runtime_error
    errors = pytest.importorskip("triton.runtime.errors")
    assert kind_of(errors.OutOfResources(2, 1, "registers")) is Kind.does_not_fit
    assert kind_of(errors.PTXASError("no")) is Kind.compile_error
    compiler = pytest.importorskip("triton.compiler.errors")
    assert kind_of(compiler.CompilationError("x = 1", None, "no")) is Kind.compile_error
    assert kind_of(compiler.CompileTimeAssertionFailure("x = 1", None, "no")) is Kind.compile_error


def test_an_error_becomes_one_line() -> None:
    outcome = outcome_of(
        RuntimeError("CUDA error: misaligned address\nSearch for ...\n" + 500 * "x")
    )
    assert outcome == Outcome(
        Kind.runtime_error, message="RuntimeError: CUDA error: misaligned address"
    )
    assert len(outcome_of(ValueError(1000 * "x")).message) == 300
    assert outcome_of(ValueError()).message == "ValueError: "


def test_the_reason_of_a_compiler_is_at_the_end_of_the_chain() -> None:
    compiler = pytest.importorskip("triton.compiler.errors")
    try:
        try:
            raise RuntimeError("shape must be a power of two")
        except RuntimeError as error:
            raise compiler.CompilationError("x = f()", None, None) from error
    except compiler.CompilationError as error:
        outcome = outcome_of(error)
    assert (outcome.kind, outcome.message) == (
        Kind.compile_error,
        "RuntimeError: shape must be a power of two",
    )


def test_outcomes_as_json() -> None:
    outcome = Outcome(Kind.correct, Times(1.0, 2.0, 3.0), "m", True)
    assert Outcome.from_dict(outcome.to_dict()) == outcome
    assert outcome.to_dict() == {
        "kind": "correct",
        "p20_ms": 1.0,
        "p50_ms": 2.0,
        "p80_ms": 3.0,
        "message": "m",
        "throttled": True,
    }
    failed = Outcome(Kind.timeout, message="m")
    assert Outcome.from_dict(failed.to_dict()) == failed
    assert (failed.to_dict()["p50_ms"], failed.median_ms, outcome.median_ms) == (
        None,
        math.inf,
        2.0,
    )
    assert [kind for kind in Kind if kind.deterministic] == [
        Kind.correct,
        Kind.compile_error,
        Kind.does_not_fit,
    ]
