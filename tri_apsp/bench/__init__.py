"""Operations per second of the public calls."""
