"""What studies measure, keep and draw."""
