"""What all command lines share: arguments, output, progress."""
