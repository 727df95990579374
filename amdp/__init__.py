"""Adversarial Markov decision processes: no-regret learners on planning oracles that prove their answers.

Plan with an oracle, play a learner in a game, compare learners:

    world = amdp.instances.river_swim(n_states=6)
    print(amdp.plan("lp", world, world.costs))

    game = amdp.Game(world, losses="bernoulli", rounds=2000, delay="fixed:50")
    print(amdp.play(game, "ftpl-shared", seed=1))

    amdp.compare("spec.toml", out="results").report()

Every name of `__init__.pyi` is imported when it is first used, so that `import amdp` is quick.
"""

from importlib import import_module

__version__ = "0.1.0"

# The lines `from home import name as name` that type checkers read; by the loader, so that it works in a zip file too.
_STUB = __loader__.get_data(__file__.removesuffix(".py") + ".pyi").decode()
_HOMES = {words[3]: words[1] for words in map(str.split, _STUB.splitlines()) if words[:1] == ["from"]}
__all__ = sorted(_HOMES)


def __getattr__(name):
    if name not in _HOMES:
        raise AttributeError(f"module 'amdp' has no attribute {name!r}")
    home = _HOMES[name]
    value = import_module(f"amdp.{name}") if home == "amdp" else getattr(import_module(home), name)
    globals()[name] = value
    return value


def __dir__():
    return [*__all__, "__version__"]
