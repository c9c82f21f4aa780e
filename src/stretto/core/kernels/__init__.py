"""What all compiled code shares: the kernel cache, record types, random numbers, heaps."""
