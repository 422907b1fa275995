//! macOS and iOS: Mach ports. Type-checked and linked for these targets; nobody has run it yet.
