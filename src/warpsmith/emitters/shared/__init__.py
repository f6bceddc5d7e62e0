"""What the emitters of both machines share, hero by hero."""
