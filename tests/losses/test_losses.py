"""Losses: the formulas of the adversaries, random access, refusals, and files."""

import builtins
import pickle
from collections.abc import Callable
from functools import partial
from math import cos, exp, pi, sin
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from worlds import all_policies, kernel_worlds, random_kernel, seeds, shapes

from amdp import InvalidInput, MarkovPolicies, MissingDependency, SpecError, evaluate, losses
from amdp.arrays import Floats
from amdp.losses import CalledLosses, FixedLosses, GeneratedLosses, LossSequence
from amdp.losses.base import AHEAD, UniformlyDrawn, round_rng
from amdp.losses.by_name import standard
from amdp.model.segments import Shape

SHAPE: Shape = (2, 6, 3)
NAMES = list(standard())
TABLE = np.random.default_rng(5).random(SHAPE)


def made(k: int, rng: np.random.Generator) -> Floats:
    return rng.random(SHAPE) / (k + 1)


def called(k: int) -> Floats:
    return np.full(SHAPE, 1.0 / (k + 1))


KINDS: dict[str, LossSequence] = {
    **{name: losses.named(name, SHAPE, 40, seed=3, costs=TABLE) for name in NAMES},
    "fixed": FixedLosses(np.random.default_rng(1).random((40, *SHAPE))),
    "generated": GeneratedLosses(40, SHAPE, 8, made),
    "called": CalledLosses(40, SHAPE, called),
}
every_kind = pytest.mark.parametrize("kind", KINDS)


# --- what all sequences promise -------------------------------------------------------------------------------------


@every_kind
def test_every_round_is_a_table_of_losses_that_cannot_be_changed(kind: str) -> None:
    sequence = KINDS[kind]
    assert isinstance(sequence, LossSequence)
    assert (len(sequence), sequence.shape) == (40, SHAPE)
    for table in sequence:
        assert table.shape == SHAPE
        assert table.dtype == np.float64
        assert table.flags.c_contiguous
        assert 0.0 <= table.min() <= table.max() <= 1.0
        with pytest.raises(ValueError, match="read-only"):
            table[0, 0, 0] = 0.5


@every_kind
def test_the_order_of_reading_does_not_matter(kind: str) -> None:
    sequence = KINDS[kind]
    forward = np.stack(list(sequence))
    for k in np.random.default_rng(2).permutation(40):
        assert_array_equal(sequence[k], forward[k])
    assert_array_equal(sequence.batch(0, 40), forward)
    assert_array_equal(sequence.batch(7, 19), forward[7:19])
    assert sequence.batch(5, 5).shape == (0, *SHAPE)
    assert not sequence.batch(7, 19).flags.writeable


@every_kind
def test_a_pickle_reads_the_same(kind: str) -> None:
    again: LossSequence = pickle.loads(pickle.dumps(KINDS[kind]))
    assert_array_equal(again.batch(0, 40), KINDS[kind].batch(0, 40))
    assert not again[0].flags.writeable
    assert isinstance(hash(again), int)


@every_kind
@pytest.mark.parametrize("k", [-1, 40, 1.0, slice(0, 3), "0"])
def test_a_round_that_is_not_there_is_refused(kind: str, k: Any) -> None:
    with pytest.raises(InvalidInput, match=r"was asked for; rounds are 0 \.\. 39"):
        KINDS[kind][k]


@every_kind
@pytest.mark.parametrize(("low", "high"), [(-1, 3), (4, 3), (0, 41)])
def test_a_block_that_is_not_there_is_refused(kind: str, low: int, high: int) -> None:
    with pytest.raises(InvalidInput, match="there are 40"):
        KINDS[kind].batch(low, high)


@pytest.mark.parametrize("name", NAMES)
def test_the_same_seed_gives_the_same_losses_and_another_seed_others(name: str) -> None:
    one, same, other = (losses.named(name, SHAPE, 40, seed) for seed in (3, 3, 4))
    assert_array_equal(one.batch(0, 40), same.batch(0, 40))
    assert (one.batch(0, 40) != other.batch(0, 40)).any()


# --- refusals -------------------------------------------------------------------------------------------------------


def spoiled(bad: float, k: int) -> Floats:
    """Fine until round 7."""
    table = np.full(SHAPE, 0.5)
    table[1, 4, 2] = bad if k == 7 else 0.5
    return table


@pytest.mark.parametrize("bad", [-1e-9, 1.0000000000000002, np.nan, np.inf, -np.inf])
def test_a_bad_loss_is_refused_when_its_round_is_read(bad: float) -> None:
    sequence = CalledLosses(10, SHAPE, partial(spoiled, bad))
    assert_array_equal(sequence[6], 0.5)
    with pytest.raises(InvalidInput) as refusal:
        sequence[7]
    assert str(refusal.value) == f"round 7: loss[h=1, s=4, a=2] = {bad!r}; a loss must be between 0 and 1"
    with pytest.raises(InvalidInput, match="round 7"):
        sequence.batch(5, 9)


def test_an_array_with_a_bad_loss_is_refused_at_once() -> None:
    array = np.zeros((4, *SHAPE))
    array[2, 1, 0, 2] = 3.0
    with pytest.raises(InvalidInput, match=r"round 2: loss\[h=1, s=0, a=2\] = 3.0; a loss must be between 0 and 1"):
        FixedLosses(array)


@pytest.mark.parametrize("table", [np.zeros((2, 6)), np.zeros((2, 6, 4)), [[[0.0], [0.0, 1.0]]], "text", None])
def test_a_table_of_another_shape_is_refused_with_its_round(table: Any) -> None:
    with pytest.raises(InvalidInput, match="losses of round 3"):
        CalledLosses(10, SHAPE, lambda k: table)[3]


def test_an_adversary_may_reuse_its_buffer() -> None:
    buffer = np.zeros(SHAPE)

    def rewrite(k: int) -> Floats:
        buffer[:] = k / 10
        return buffer

    sequence = CalledLosses(10, SHAPE, rewrite)
    first = sequence[1]
    assert sequence[2][0, 0, 0] == 0.2
    assert_array_equal(first, 0.1)
    assert buffer.flags.writeable


BAD_SETTINGS: list[tuple[Callable[[], LossSequence], str]] = [
    (lambda: FixedLosses(np.zeros((2, 2, 2))), r"expected axes \[k, h, s, a\]"),
    (lambda: CalledLosses(0, SHAPE, called), "rounds = 0"),
    (lambda: CalledLosses(5, (2, 6), called), r"shape = \(2, 6\)"),  # type: ignore[arg-type]
    (lambda: CalledLosses(5, (2, 0, 3), called), r"shape\[s\] = 0"),
    (lambda: GeneratedLosses(5, SHAPE, -1, made), "seed = -1"),
    (lambda: losses.corrupted(losses.repeated(TABLE, 5), 2, -1), "seed = -1"),
    (lambda: losses.repeated(TABLE + 1.0, 5), r"table\[h=0, s=0, a=0\] = 1\."),
    (lambda: losses.seasonal(TABLE, 5, period=0.0), "period = 0.0"),
    (lambda: losses.seasonal(TABLE, 5, period=3.0, amplitude=1.5), "amplitude = 1.5"),
    (lambda: losses.beta(losses.repeated(TABLE, 5), 0.0, 1), "concentration = 0.0"),
    (lambda: losses.switching(losses.repeated(TABLE, 5), 0, 5), "every = 0"),
    (lambda: losses.sinusoid(TABLE, 5, float("nan"), 1), "period = nan"),
    (lambda: losses.swap(TABLE, 5, first=0), "first = 0"),
    (lambda: losses.swap(TABLE, 5, growth=0.5), "growth = 0.5"),
    (lambda: losses.spikes(losses.repeated(TABLE, 5), 37, 1), "places = 37; it must be at most 36"),
    (lambda: losses.corrupted(losses.repeated(TABLE, 5), 6, 1), "budget = 6; it must be at most 5"),
    (lambda: losses.corrupted_at(losses.repeated(TABLE, 5), [2, 9]), "a corrupted round = 9"),
    (lambda: losses.congestion(TABLE, 5, 4, 2, 10.0), "a grid of 4 x 2 cells does not fit 6 states"),
    (lambda: losses.congestion(TABLE, 5, 3, 2, 10.0, radius=0.0), "radius = 0.0"),
    (lambda: losses.congestion(TABLE, 5, 3, 2, 10.0, weight=-0.1), "weight = -0.1"),
    (lambda: losses.named("bernuli", SHAPE, 5, 1), r"did you mean 'bernoulli'\? known names: nominal, .*congestion"),
    (lambda: losses.named("swap", SHAPE, 5, 1, np.zeros((1, 6, 3))), r"costs has shape \(1, 6, 3\)"),
    (lambda: losses.named("swap", SHAPE, 5, 1, TABLE - 1.0), "a loss must be between 0 and 1"),
]  # fmt: skip


@pytest.mark.parametrize(("make", "message"), BAD_SETTINGS)
def test_settings_that_make_no_sense_are_refused(make: Callable[[], LossSequence], message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        make()


# --- generators of rounds -------------------------------------------------------------------------------------------


def test_the_generator_of_a_round_is_philox_under_its_key() -> None:
    key = np.random.SeedSequence(12, spawn_key=tuple(b"beta")).generate_state(1, np.uint64)[0]
    plain = np.random.Generator(np.random.Philox(key=np.array([key, 345], dtype=np.uint64)))
    assert_array_equal(round_rng(12, "beta", 345).random(9), plain.random(9))


def test_rounds_seeds_and_streams_are_unrelated() -> None:
    # Correlations of 4000 uniforms, 15 pairs: 6 standard errors, a false alarm once in 3e7.
    keys = [(1, "a", 0), (1, "a", 1), (1, "a", 2), (2, "a", 0), (1, "b", 0), (1, "", 0)]
    drawn = np.array([round_rng(seed, stream, k).random(4000) for seed, stream, k in keys])
    correlations = np.corrcoef(drawn)[np.triu_indices(len(keys), 1)]
    assert np.abs(correlations).max() < 6 / np.sqrt(4000)


def test_rounds_of_one_place_look_independent() -> None:
    # The first uniform of 4000 successive rounds: catches streams of neighboring rounds that overlap or repeat.
    first = losses.uniform(4000, (1, 1, 1), seed=0).batch(0, 4000).reshape(-1)
    assert abs(first.mean() - 0.5) < 6 / np.sqrt(12 * 4000)
    assert abs(np.corrcoef(first[1:], first[:-1])[0, 1]) < 6 / np.sqrt(4000)
    assert len(np.unique(first)) == 4000


# --- formulas -------------------------------------------------------------------------------------------------------


def test_repeated_losses_are_the_table_in_each_round() -> None:
    table = np.array(TABLE)
    sequence = losses.repeated(table, 3)
    table[:] = 0.0
    assert_array_equal(sequence.batch(0, 3), np.stack([TABLE] * 3))


def test_seasonal_losses_follow_their_price() -> None:
    sequence = losses.seasonal(TABLE, 30, period=8.0, amplitude=0.25)
    for k in range(30):
        assert_allclose(sequence[k], TABLE * (1 + 0.25 * sin(2 * pi * k / 8)) / 1.25, rtol=1e-13)
    dearest = losses.seasonal(np.ones(SHAPE), 30, period=8.0, amplitude=1.0)
    assert_allclose([dearest[2][0, 0, 0], dearest[6][0, 0, 0]], [1.0, 0.0], atol=1e-15)


def test_bernoulli_losses_are_zero_or_one_with_their_means() -> None:
    # 36 means over 4000 rounds, 6 standard errors: a false alarm once in 1e7. Catches P(l = 0) = mean.
    table = np.array(TABLE)
    table[0, 0, 0], table[0, 0, 1] = 0.0, 1.0
    drawn = losses.bernoulli(losses.repeated(table, 4000), seed=1).batch(0, 4000)
    assert set(np.unique(drawn)) == {0.0, 1.0}
    assert (np.abs(drawn.mean(axis=0) - table) <= 6 * np.sqrt(table * (1 - table) / 4000)).all()


def test_beta_losses_have_their_means_and_variances() -> None:
    # Means as above; a sample variance has a standard error below 1 / (2 sqrt(n)) for entries in [0, 1].
    table = np.array(TABLE)
    table[0, 0, 0], table[0, 0, 1] = 0.0, 1.0
    drawn = losses.beta(losses.repeated(table, 4000), concentration=3.0, seed=1).batch(0, 4000)
    variances = table * (1 - table) / 4.0
    assert (np.abs(drawn.mean(axis=0) - table) <= 6 * np.sqrt(variances / 4000)).all()
    assert_allclose(drawn.var(axis=0), variances, atol=6 / (2 * np.sqrt(4000)) / 4)
    assert_array_equal(drawn[:, 0, 0, :2], np.stack([[0.0, 1.0]] * 4000))


@pytest.mark.parametrize("mean", [1e-300, 1e-12, 1 - 1e-12, 5e-324])
@pytest.mark.parametrize("concentration", [1e-9, 1.0, 1e9])
def test_beta_losses_stay_in_bounds_at_the_edges(mean: float, concentration: float) -> None:
    sequence = losses.beta(losses.repeated(np.full(SHAPE, mean), 20), concentration, seed=0)
    assert abs(sequence.batch(0, 20).mean() - round(mean)) < 0.01


def test_noise_does_not_share_luck_with_the_table_of_the_same_seed() -> None:
    # If the noise reused the uniforms of the table, round 0 would be all zeros.
    means = losses.uniform(1, (10, 10, 10), seed=3)
    drawn = losses.bernoulli(losses.repeated(means[0], 1), seed=3)[0]
    assert abs(drawn.mean() - 0.5) < 6 * 0.5 / np.sqrt(1000)


def test_switching_shows_each_table_for_a_while_and_starts_again() -> None:
    tables = FixedLosses(np.random.default_rng(0).random((3, *SHAPE)))
    sequence = losses.switching(tables, every=4, rounds=30)
    for k in range(30):
        assert_array_equal(sequence[k], tables[[0, 1, 2, 0, 1, 2, 0, 1][k // 4]])


def test_the_sinusoid_returns_after_its_period_and_has_its_mean() -> None:
    sequence = losses.sinusoid(TABLE, 40, period=20.0, seed=2, amplitude=0.5)
    assert_allclose(sequence.batch(0, 20), sequence.batch(20, 40), atol=1e-13)
    assert_allclose(sequence.batch(0, 20).mean(axis=0), 0.5 * TABLE + 0.25, atol=1e-13)


def test_the_sinusoid_obeys_its_difference_equation() -> None:
    # A sum of waves of one period: x[k + 1] + x[k - 1] = 2 cos(2 pi / period) x[k] around the mean, of height 1/4.
    waves = losses.sinusoid(TABLE, 40, period=20.0, seed=2, amplitude=0.5).batch(0, 40) - 0.5 * TABLE - 0.25
    assert_allclose(waves[2:] + waves[:-2], 2 * cos(2 * pi / 20) * waves[1:-1], atol=1e-13)
    assert_allclose(2 * np.mean(waves[:20] ** 2, axis=0), 0.25**2, atol=1e-13)


@pytest.mark.parametrize("amplitude", [0.0, 0.1, 0.3, 0.7, 1.0])
def test_mixtures_never_leave_the_bounds_by_rounding(amplitude: float) -> None:
    ones = losses.sinusoid(np.ones(SHAPE), 60, period=4.0, seed=0, amplitude=amplitude).batch(0, 60)
    crowd = losses.congestion(np.ones(SHAPE), 60, 3, 2, period=4.0, weight=amplitude).batch(0, 60)
    assert max(ones.max(), crowd.max()) <= 1.0


@pytest.mark.parametrize(
    ("first", "growth", "lengths"), [(1, 2.0, [1, 2, 4, 8, 5]), (6, 1.0, [6, 6, 6, 2]), (3, 1.5, [3, 4, 6, 7])]
)
def test_a_swap_turns_the_table_over_in_each_phase(first: int, growth: float, lengths: list[int]) -> None:
    sequence = losses.swap(TABLE, 20, first, growth)
    expected = [TABLE if i % 2 == 0 else 1.0 - TABLE for i, length in enumerate(lengths) for _ in range(length)]
    assert_array_equal(sequence.batch(0, 20), np.stack(expected))


@given(seeds)
def test_after_a_swap_the_best_policy_is_the_worst(seed: int) -> None:
    shape = (2, 3, 2)
    rng = np.random.default_rng(seed)
    domain = MarkovPolicies(random_kernel("dense", shape, rng), 0)
    policies = all_policies(shape)
    sequence = losses.swap(rng.random(shape), 3, first=1)
    before, after = (evaluate(domain, policies, np.broadcast_to(sequence[k], (len(policies), *shape))) for k in (0, 1))
    assert_allclose(before + after, shape[0])
    assert after[np.argmin(before)] == pytest.approx(after.max())


def test_spikes_cost_one_at_so_many_places_that_differ_from_round_to_round() -> None:
    sequence = losses.spikes(losses.repeated(np.zeros(SHAPE), 2000), places=3, seed=4).batch(0, 2000)
    assert_array_equal(np.unique(sequence), [0.0, 1.0])
    assert_array_equal(sequence.sum(axis=(1, 2, 3)), 3.0)
    chance = 3 / 36
    assert np.abs(sequence.mean(axis=0) - chance).max() < 6 * np.sqrt(chance * (1 - chance) / 2000)


def test_spikes_leave_the_other_places_alone() -> None:
    base = losses.uniform(20, SHAPE, seed=1)
    spiked = losses.spikes(base, places=5, seed=1)
    for k in range(20):
        assert np.count_nonzero(spiked[k] != base[k]) == np.count_nonzero(spiked[k] == 1.0) == 5


@given(st.integers(0, 30), seeds)
def test_corruption_spends_exactly_its_budget(budget: int, seed: int) -> None:
    base = losses.repeated(np.full((1, 1, 1), 0.25), 30)
    shown = losses.corrupted(base, budget, seed).batch(0, 30).reshape(-1)
    assert np.count_nonzero(shown == 0.75) == budget
    assert np.count_nonzero(shown == 0.25) == 30 - budget


def test_corruption_may_strike_in_chosen_rounds() -> None:
    base = losses.uniform(6, SHAPE, seed=1)
    shown = losses.corrupted_at(base, range(2))
    for k in range(6):
        assert_array_equal(shown[k], 1.0 - base[k] if k < 2 else base[k])


def test_congestion_is_a_bump_around_its_moving_center() -> None:
    width, height, period, radius, weight = 4, 3, 12.0, 1.5, 0.3
    table = np.random.default_rng(3).random((2, width * height, 2))
    sequence = losses.congestion(table, 24, width, height, period, radius, weight)
    for k in range(24):
        center = (1.5 * (1 + cos(2 * pi * k / period)), 1.0 * (1 + sin(2 * pi * k / period)))
        for x in range(width):
            for y in range(height):
                bump = exp(-((x - center[0]) ** 2 + (y - center[1]) ** 2) / (2 * radius**2))
                s = y * width + x
                assert_allclose(sequence[k][:, s], 0.7 * table[:, s] + 0.3 * bump, rtol=1e-12)


def test_congestion_passes_through_the_grid() -> None:
    sequence = losses.congestion(np.zeros((1, 25, 1)), 40, 5, 5, period=40.0, radius=1.0, weight=1.0)
    worst = {int(np.argmax(sequence[k])) for k in range(40)}
    assert {2 * 5 + 4, 4 * 5 + 2, 2 * 5 + 0, 0 * 5 + 2} <= worst  # the middles of the four sides


@given(shapes(), st.integers(1, 5), seeds, st.sampled_from(NAMES))
def test_every_name_suits_every_shape_and_length(shape: Shape, rounds: int, seed: int, name: str) -> None:
    sequence = losses.named(name, shape, rounds, seed)
    assert sequence.batch(0, rounds).shape == (rounds, *shape)


@given(kernel_worlds(n=1))
def test_nominal_losses_are_the_costs(world: Any) -> None:
    costs = np.abs(world.costs[0]) / max(1.0, np.abs(world.costs[0]).max())
    assert_array_equal(losses.named("nominal", world.domain.shape, 4, 0, costs)[3], costs)


# --- files ----------------------------------------------------------------------------------------------------------

ARRAY = np.random.default_rng(11).random((3, 2, 2, 2))


def columns(array: Floats = ARRAY) -> dict[str, Any]:
    """One row for each entry, shuffled."""
    order = np.random.default_rng(0).permutation(array.size)
    places = [axis.reshape(-1)[order] for axis in np.indices(array.shape)]
    return dict(zip(("round", "step", "state", "action"), places, strict=True)) | {"loss": array.reshape(-1)[order]}


def write_csv(file: Path, table: dict[str, Any], header: str | None = None) -> Path:
    rows = zip(*(np.asarray(column).tolist() for column in table.values()), strict=True)
    lines = [",".join(table) if header is None else header, *(",".join(map(repr, row)) for row in rows)]
    file.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return file


def without(table: dict[str, Any], row: int) -> dict[str, Any]:
    return {name: np.delete(column, row) for name, column in table.items()}


def test_a_csv_file_is_read_back_exactly(tmp_path: Path) -> None:
    assert_array_equal(losses.load(write_csv(tmp_path / "l.csv", columns())).array, ARRAY)


def test_a_csv_file_may_have_other_columns_quotes_and_a_byte_order_mark(tmp_path: Path) -> None:
    table = columns()
    reordered = {name: table[name] for name in ("loss", "action", "round", "state", "step")} | {"note": table["step"]}
    file = write_csv(tmp_path / "l.csv", reordered, '\ufeff"loss", action,round,"state",step,note')
    assert_array_equal(losses.load(file, (2, 2, 2)).array, ARRAY)


def test_an_archive_is_read_back_as_columns_or_as_one_array(tmp_path: Path) -> None:
    np.savez(tmp_path / "long.npz", **columns())
    np.savez(tmp_path / "dense.npz", losses=ARRAY)
    for name in ("long.npz", "dense.npz"):
        assert_array_equal(losses.load(tmp_path / name, (2, 2, 2)).array, ARRAY)
        with pytest.raises(InvalidInput, match=name):
            losses.load(tmp_path / name, (2, 2, 1))


def test_a_parquet_file_is_read_back_exactly(tmp_path: Path) -> None:
    pyarrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    parquet.write_table(pyarrow.table(columns() | {"note": ["x"] * ARRAY.size}), tmp_path / "l.parquet")
    assert_array_equal(losses.load(tmp_path / "l.parquet").array, ARRAY)
    (tmp_path / "damaged.parquet").write_bytes(b"PAR1 but not really")
    with pytest.raises(SpecError, match=r"damaged.parquet: cannot be read"):
        losses.load(tmp_path / "damaged.parquet")


def test_without_pyarrow_a_parquet_file_names_the_extra(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(name: str) -> Any:
        raise ModuleNotFoundError(name)

    monkeypatch.setattr("amdp.losses.readers.import_module", refuse)
    (tmp_path / "l.parquet").touch()
    with pytest.raises(MissingDependency, match=r'needs pyarrow: pip install "amdp\[frames\]"'):
        losses.load(tmp_path / "l.parquet")


def test_a_missing_place_is_refused_or_filled() -> None:
    table = columns()
    row = 5
    place = tuple(int(table[name][row]) for name in ("round", "step", "state", "action"))
    with pytest.raises(InvalidInput) as refusal:
        losses.from_columns(without(table, row))
    k, h, s, a = place
    assert f"no row for round {k} [h={h}, s={s}, a={a}]" in str(refusal.value)
    filled = losses.from_columns(without(table, row), default=0.5)
    expected = np.array(ARRAY)
    expected[place] = 0.5
    assert_array_equal(filled.array, expected)


def test_the_last_place_may_be_the_missing_one() -> None:
    with pytest.raises(InvalidInput, match=r"no row for round 0 \[h=0, s=1, a=1\]"):
        losses.from_columns(
            {"round": [0, 0, 0], "step": [0] * 3, "state": [0, 0, 1], "action": [0, 1, 0], "loss": [0] * 3}
        )


def test_files_that_count_from_one_are_told_so() -> None:
    table = columns()
    with pytest.raises(InvalidInput, match=r"no row for round 0 \[h=0, s=0, a=0\]; counting is from 0"):
        losses.from_columns(table | {"round": table["round"] + 1})


def test_a_shape_fills_places_that_the_file_never_meets() -> None:
    wide = losses.from_columns(columns(), shape=(2, 3, 2), default=1.0)
    assert wide.shape == (2, 3, 2)
    assert_array_equal(wide.array[:, :, :2], ARRAY)
    assert_array_equal(wide.array[:, :, 2], 1.0)


def edited(name: str, row: int, value: float) -> dict[str, Any]:
    table = columns()
    column = np.array(table[name], dtype=np.float64)
    column[row] = value
    return table | {name: column}


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ({name: column for name, column in columns().items() if name != "state"}, "no column 'state'; expected round"),
        (edited("step", 4, 0.5), r"step\[m=4\] = 0.5; it must be a whole number"),
        (edited("round", 4, -1.0), r"round\[m=4\] = -1"),
        (edited("action", 4, np.nan), r"action\[m=4\] = nan"),
        (edited("round", 4, 1e9), r"no row for round"),
        (edited("round", 4, 1e12), "span 1000000000001 x 2 x 2 x 2 places"),
        ({name: np.append(column, column[3]) for name, column in columns().items()}, "two rows for round"),
        (columns() | {"round": [0, 1]}, "round has 2 rows; loss has 24"),
        (columns(3.0 * ARRAY), "a loss must be between 0 and 1"),
    ],
)
def test_columns_that_are_wrong_are_refused(table: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        losses.from_columns(table)


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("l.txt", b"", "unknown suffix '.txt'; known are .csv, .parquet, .npz"),
        ("l.csv", b"", "no header"),
        ("l.csv", b"0,0,0,0,0.5\n", "no header; the first line must name round, step, state, action, loss"),
        ("l.csv", b"round,step,state,action,loss\n0,0,0,0,\n", "cannot be read"),
        ("l.csv", b"round,step,state,action,loss\n0,0,0,0,cheap\n", "cannot be read"),
        ("l.csv", b"round,step,state,action,loss\n0,0,0\n", "cannot be read"),
        ("l.csv", b"\xff\xfe\x00", "cannot be read"),
        ("l.npz", b"", "cannot be read"),
        ("l.npz", b"PK\x03\x04 but not really", "cannot be read"),
        ("l.npz", pickle.dumps([1, 2]), "cannot be read"),
    ],
)
def test_files_that_are_wrong_are_refused(tmp_path: Path, name: str, content: bytes, message: str) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(SpecError, match=message) as refusal:
        losses.load(tmp_path / name)
    assert str(tmp_path / name) in str(refusal.value)


def test_files_with_wrong_losses_are_refused_by_name(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match=r"l.csv: round \d: loss\[h=\d, s=\d, a=\d\] = nan"):
        losses.load(write_csv(tmp_path / "l.csv", edited("loss", 0, np.nan)))
    (tmp_path / "empty.csv").write_text("round,step,state,action,loss\n", encoding="utf-8")
    with pytest.raises(InvalidInput, match=r"empty.csv: loss is empty"):
        losses.load(tmp_path / "empty.csv")
    with pytest.raises(SpecError, match="cannot be read"):
        losses.load(tmp_path / "absent.csv")


def test_pickles_in_an_archive_are_never_loaded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    np.savez(tmp_path / "l.npz", losses=np.array([print], dtype=object))
    monkeypatch.setattr(builtins, "print", lambda *_: pytest.fail("loaded"))
    with pytest.raises(SpecError, match="losses: holds Python objects"):
        losses.load(tmp_path / "l.npz")
    np.save(tmp_path / "single.npy", ARRAY)
    (tmp_path / "single.npy").rename(tmp_path / "single.npz")
    with pytest.raises(SpecError, match="holds a single array"):
        losses.load(tmp_path / "single.npz")


@pytest.mark.parametrize("shape", [(3, 3, 2), (2, 1, 1), (1, 1, 5), (4, 30, 9)])
def test_uniform_losses_of_many_rounds_are_those_of_numpys_generator_for_each_round(shape: Shape) -> None:
    sequence = losses.uniform(2**40 + 7, shape, 11)
    for low in (0, 5, 2**32 - 3, 2**40):
        block = sequence.batch(low, low + 7)
        for i in range(7):
            assert_array_equal(block[i], round_rng(11, "uniform", low + i).random(shape))
            assert_array_equal(block[i], sequence[low + i])


def made_rounds(shape: tuple[int, int, int] = (2, 3, 2), rounds: int = 200) -> tuple[UniformlyDrawn, list[int]]:
    """Losses that note how many rounds are made at a time."""
    sizes: list[int] = []

    def make(low: int, numbers: Floats) -> Floats:
        sizes.append(len(numbers))
        return numbers

    return UniformlyDrawn(rounds, shape, 1, make, stream="noted"), sizes


def test_rounds_are_made_ahead_only_where_they_are_read_one_after_the_other() -> None:
    losses, sizes = made_rounds()
    tables = [losses[k].copy() for k in range(150)]
    assert sizes == [1, AHEAD, AHEAD, AHEAD]
    sizes.clear()
    assert_array_equal(losses[20], tables[20])  # read again: alone, and what is ahead stays
    assert_array_equal(losses[150], losses.batch(150, 151)[0])
    assert sizes == [1, 1]
    sizes.clear()
    assert_array_equal([losses[k] for k in range(150)], tables)  # another game from the begin
    assert sizes == [1, AHEAD, AHEAD, AHEAD]
    losses, sizes = made_rounds((10, 100, 100), 9)
    for k in range(9):
        losses[k]
    assert set(sizes) == {1}


def test_any_whole_number_names_a_round_and_a_wrong_table_is_refused() -> None:
    losses, _ = made_rounds()
    small: Any = np.arange(127, dtype=np.int8)
    for k in small:
        losses[k]
    wrong = UniformlyDrawn(5, (2, 3, 2), 1, lambda low, numbers: numbers[:, :1], stream="wrong")
    with pytest.raises(InvalidInput, match=r"shape \(1, 3, 2\); expected \(2, 3, 2\)"):
        wrong[0]
