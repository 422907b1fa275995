"""A Python program that loads the library: LIBRARY DIRECTORY KIND."""
import ctypes
import os
import sys
import threading
import time


class Options(ctypes.Structure):
    _fields_ = [
        ("size", ctypes.c_uint32),
        ("requests", ctypes.c_uint32),
        ("directory", ctypes.c_char_p),
        ("numbers", ctypes.c_uint32 * 6),
    ]


library = ctypes.CDLL(sys.argv[1])
options = Options(ctypes.sizeof(Options), 0, sys.argv[2].encode())
assert library.backtrail_crash_install(ctypes.byref(options)) == 0
threading.Thread(target=time.sleep, args=(600,), daemon=True).start()
kind = sys.argv[3]
if kind == "segv":
    ctypes.string_at(0x18)
elif kind == "abort":
    os.abort()
elif kind == "fork":
    if os.fork() == 0:
        ctypes.string_at(0x18)
    sys.exit(os.WTERMSIG(os.wait()[1]))
