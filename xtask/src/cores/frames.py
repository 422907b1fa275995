# For gdb: every thread's frames, one a line, as `xtask cores` reads them.
import gdb

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
