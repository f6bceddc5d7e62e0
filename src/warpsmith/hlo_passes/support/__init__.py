"""What several HLO passes share, beside the kit."""
