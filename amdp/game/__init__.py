"""How a game is played and measured.

`games` describes one (`amdp.Game`), `match` puts a learner into it, plays it and measures it (`amdp.play`). Below
them: `arenas`, where policies are played (a new kind of arena is a class with the methods of `Arena`); `loop`, the loop
of rounds; `rounds`, what happened in one; `delays` (a new one is a function, and a form in `FORMS`); `regret`;
`dynamic_regret` for policies and kernels that change; `seeding`; `environment`, the same for agents of Gymnasium.
"""
