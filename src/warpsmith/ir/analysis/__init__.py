"""What is known of IR without changing it."""
