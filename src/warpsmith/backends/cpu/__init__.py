"""This computer's processor: LLVM IR, machine code, loaded and called."""
