"""LLVM IR as text, and LLVM in processes of its own: what the back ends that go through LLVM share."""
