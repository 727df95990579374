"""What the world is: transition kernels, domains of policies, confidence sets, and facts about them."""
