"""Mirror descent and the regularized leader over occupancy measures."""
