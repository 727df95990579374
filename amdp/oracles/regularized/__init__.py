"""Which occupancy measure is cheapest after a regularizer is added: the regularizers, one interface, two backends."""
