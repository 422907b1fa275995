"""A program in Python that crashes in C: LIBRARY KIND [DIRECTORY]."""
import ctypes
import sys

library = ctypes.CDLL(sys.argv[1])
kind, directory = (sys.argv[2:] + [""])[:2]
sys.exit(library.host_run(kind.encode(), directory.encode()))
