"""How a game is played and measured: arenas, the loop of rounds, delays, regret."""
