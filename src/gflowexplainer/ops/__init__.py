"""Operations on flat tensors: segments, sorting, hashed random numbers, sparse rows."""
