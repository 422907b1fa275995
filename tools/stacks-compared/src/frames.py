# For gdb: every thread's frames, one a line, as `xtask cores` reads them.
import re
import gdb


def number(command, pattern):
    """The number that a command of gdb's says."""
    try:
        found = re.search(pattern, gdb.execute(command, to_string=True))
    except gdb.error:
        return None
    return int(found[1], 16) if found else None


# Of cores of qemu gdb does not find out where a position-independent program was.
begun, stated = number("info auxv", r"AT_ENTRY .*(0x[0-9a-f]+)"), number("info files", r"Entry point: (0x[0-9a-f]+)")
# By whole pages: of Thumb code one of the two has the lowest bit.
bias = (begun or 0) - (stated or 0) & ~0xFFF
if begun and stated and bias:
    program = gdb.current_progspace().filename
    gdb.execute(f"add-symbol-file '{program}' -o {bias:#x}", to_string=True)
    gdb.execute("sharedlibrary", to_string=True)
for command in ["set pagination off", "set backtrace past-main on", "set width 0"]:
    gdb.execute(command)
kinds = {gdb.NORMAL_FRAME: "normal", gdb.INLINE_FRAME: "inline", gdb.TAILCALL_FRAME: "tailcall", gdb.SIGTRAMP_FRAME: "signal"}
for thread in gdb.selected_inferior().threads():
    thread.switch()
    print("@thread", thread.ptid[1] or thread.ptid[0])
    try:
        frame = gdb.newest_frame()
        while frame is not None:
            print("@frame", hex(frame.pc()), kinds.get(frame.type(), "other"), frame.name())
            last = frame
            frame = frame.older()
        print("@end", gdb.frame_stop_reason_string(last.unwind_stop_reason()))
    except gdb.error as problem:
        print("@end", problem)
