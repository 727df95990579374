"""Points and domains that the tests of projections share."""

import numpy as np
from worlds import box_around, kernel_inside, random_kernel, random_policies

from amdp import BernsteinBox, MarkovPolicies, Projector, bind_projection
from amdp.arrays import Floats
from amdp.model.segments import Shape
from amdp.model.transitions import SingleKernel
from amdp.oracles.projection.base import point_shape

KINDS = ("dense", "homogeneous", "sparse", "deterministic", "layered")
BOXES = ("box", "vacuous")
POINTS = ("mild", "wide", "measure", "one-hot", "three states", "tiny", "thousands", "holes")


def random_domain(kind: str, shape: Shape, rng: np.random.Generator) -> MarkovPolicies:
    """A kernel of some kind; `box`: all kernels around one; `vacuous`: all kernels."""
    if kind == "vacuous":
        return MarkovPolicies(BernsteinBox.vacuous(shape))
    if kind == "box":
        width = rng.choice((0.05, 0.3, 1.0))
        return MarkovPolicies(box_around(random_kernel("dense", shape, rng), width, rng))
    return MarkovPolicies(random_kernel(kind, shape, rng))


def random_measure(domain: MarkovPolicies, rng: np.random.Generator) -> Floats:
    """A random occupancy measure of a domain, in the shape of its points."""
    policy = random_policies(1, domain.shape, rng)
    dynamics = domain.dynamics
    if not isinstance(dynamics, BernsteinBox):
        assert isinstance(dynamics, SingleKernel)
        occupied: Floats = dynamics.occupancy(policy, domain.initial)[0]
        return occupied
    kernel = kernel_inside(dynamics, rng)
    measure: Floats = kernel.occupancy(policy, domain.initial)[0][..., None] * kernel.p
    measure[-1, :, :, 0], measure[-1, :, :, 1:] = measure[-1].sum(axis=-1), 0.0
    return measure


def random_point(kind: str, domain: MarkovPolicies, rng: np.random.Generator) -> Floats:
    """The logarithms of weights of one of `POINTS`; the hard ones are an update by losses of up to 1e4."""
    shape = point_shape(domain)
    if kind == "mild":
        return rng.normal(size=shape)
    if kind == "wide":
        return 10.0 * rng.normal(size=shape)
    with np.errstate(divide="ignore"):
        measure = np.log(random_measure(domain, rng))
    loss = np.zeros(domain.shape)
    if kind == "one-hot":
        loss[tuple(rng.integers(domain.shape))] = 1e4
    if kind == "three states":
        loss[rng.integers(domain.shape[0]), rng.integers(domain.shape[1], size=3)] = 1e4
    if kind == "tiny":
        loss[rng.random(domain.shape) < 0.5] = 690.0
    if kind == "thousands":
        loss = 1e4 * rng.random(domain.shape)
    if kind == "holes":
        loss[..., 1:][rng.random(loss[..., 1:].shape) < 0.3] = np.inf
    return measure - (loss if measure.ndim == 3 else loss[..., None])


def bound(name: str, domain: MarkovPolicies) -> Projector:
    """A projector by name."""
    return bind_projection(name, domain)
