"""What both machines of the simulator share: watching, shadows, order, costs."""
