use crate::{Limits, documents, parse};
use backtrail_core::{Avma, FileOffset, FrameAddress};
use backtrail_model::{Report, Source};

fn read(text: &str) -> Report {
    let report = parse(text.as_bytes(), &Limits::default()).unwrap();
    assert_eq!(report.source, Source::KernelLog, "{text}");
    report
}

fn pc(report: &Report) -> Option<u64> {
    report.process.threads[0].frames.first()?.address.map(|address| address.raw().get())
}

#[test]
fn faults_of_x86() {
    for (text, name, signal, kind, address, at) in [
        (
            "shopd[4321]: segfault at 18 ip 00007f12a4c3b1d2 sp 00007ffe3c1a2b40 error 4 in libledger.so.2[b1d2,7f12a4c30000+5e000] likely on CPU 3 (core 1, socket 0)\nCode: 48 89 e5 <8b> 43 18\n",
            "shopd",
            "SIGSEGV",
            "segfault",
            Some(0x18),
            Some(0x7f12_a4c3_b1d2),
        ),
        (
            "[  812.345678] shop worker 1[4321]: segfault at 0 ip 0000000000000000 sp 00007ffe3c1a2b40 error 14 in shopd[400000+2000]\n",
            "shop worker 1",
            "SIGSEGV",
            "segfault",
            Some(0),
            Some(0),
        ),
        (
            "Nov  3 12:00:00 depot kernel: [  812.345678] shopd[7]: segfault at bf794ef0 ip 0805130b sp bf794ef0 error 6 in shopd[8048000+24000]\n",
            "shopd",
            "SIGSEGV",
            "segfault",
            Some(0xbf79_4ef0),
            Some(0x0805_130b),
        ),
        (
            "2024-11-03T12:00:00+0100 depot kernel: shopd[7]: segfault at 10 rip 7f0010 rsp 7f0020 error 4\n",
            "shopd",
            "SIGSEGV",
            "segfault",
            Some(0x10),
            Some(0x7f_0010),
        ),
        (
            "<6>[  812.345678] traps: shopd[7] general protection fault ip:55d0c0a1b1d2 sp:7ffe3c1a2b40 error:0 in shopd[55d0c0a1a000+3000]\n",
            "shopd",
            "SIGSEGV",
            "general protection fault",
            None,
            Some(0x55d0_c0a1_b1d2),
        ),
        (
            "kernel: traps: shopd[7] trap divide error ip:55d0c0a1b1d2 sp:7ffe3c1a2b40 error:0\n",
            "shopd",
            "SIGFPE",
            "divide error",
            None,
            Some(0x55d0_c0a1_b1d2),
        ),
        (
            "shopd[7] trap invalid opcode ip:55d0c0a1b1d2 sp:7ffe3c1a2b40 error:0 in shopd[55d0c0a1a000+3000]\n",
            "shopd",
            "SIGILL",
            "invalid opcode",
            None,
            Some(0x55d0_c0a1_b1d2),
        ),
    ] {
        let report = read(text);
        let exception = report.exception.as_ref().unwrap();
        assert_eq!(report.process.name.as_deref(), Some(name), "{text}");
        assert_eq!((exception.signal.as_deref(), exception.kind.as_deref()), (Some(signal), Some(kind)));
        assert_eq!(exception.address.map(Avma::get), address, "{text}");
        assert_eq!(pc(&report), at, "{text}");
        assert!(matches!(report.process.threads[0].frames[0].address, Some(FrameAddress::Exact(_))));
    }
}

#[test]
fn places_in_files() {
    let old =
        read("a[1]: segfault at 18 ip 7f12a4c3b1d2 sp 7ffe3c1a2b40 error 4 in libx.so[7f12a4c30000+5e000]\n");
    let mapping = old.process.images[0].code_mapping.unwrap();
    assert_eq!((mapping.start().get(), mapping.size()), (0x7f12_a4c3_0000, 0x5_e000));
    assert_eq!(old.process.threads[0].frames[0].file_offset, None);
    let bare =
        read("segfault at 18 ip 7f12a4c3b1d2 sp 7ffe3c1a2b40 error 4 in libx.so[7f12a4c30000+5e000]\n");
    assert_eq!((bare.process.name, bare.process.threads[0].id), (None, None));
    let new = read(
        "a[1]: segfault at 18 ip 7f12a4c3b1d2 sp 7ffe3c1a2b40 error 4 in libx.so[2b1d2,7f12a4c30000+5e000]\nCode: Unable to access opcode bytes at 0x7f12a4c3b1a8.\n",
    );
    assert_eq!(new.process.images[0].code_mapping, None);
    assert_eq!(new.process.threads[0].frames[0].file_offset.map(FileOffset::get), Some(0x2_b1d2));
    assert!(new.fields.iter().any(|field| field.key == "code" && field.value.starts_with("Unable")));
}

#[test]
fn faults_of_other_processors() {
    let new = read(
        "[   31.5] shopd[210]: unhandled exception: DABT (lower EL), ESR 0x0000000092000006, level 2 translation fault in shopd[aaaab0c10000+2000]\n\
         [   31.6] CPU: 1 PID: 210 Comm: shopd Not tainted 6.1.0 #1\n\
         [   31.6] pstate: 60001000 (nZCv daif -PAN -UAO -TCO -DIT +SSBS BTYPE=--)\n\
         [   31.6] pc : 0000aaaab0c10754\n[   31.6] lr : 0000aaaab0c1078c\n[   31.6] sp : 0000ffffd5c3f0a0\n\
         [   31.6] x29: 0000ffffd5c3f0a0 x28: 0000000000000000 x27: 0000000000000000\n",
    );
    let exception = new.exception.as_ref().unwrap();
    assert_eq!(exception.codes.as_deref(), Some("esr 0x92000006"));
    assert_eq!(pc(&new), Some(0xaaaa_b0c1_0754));
    let frames = &new.process.threads[0].frames;
    assert_eq!((frames.len(), frames[1].image), (2, Some(0)));
    assert_eq!(new.process.threads[0].registers.len(), 6);
    let old = read(
        "shopd[210]: unhandled level 2 translation fault (11) at 0x00000010, esr 0x92000006, in shopd[400000+1000]\n",
    );
    assert_eq!(old.exception.unwrap().address.map(Avma::get), Some(0x10));
    let riscv = read(
        "shopd[9]: unhandled signal 11 code 0x1 at 0x0000000000000008 in shopd[10000+1000]\nepc : 0000000000010444 ra : 0000000000010460 sp : 0000003fffb2e8d0\n",
    );
    assert_eq!(pc(&riscv), Some(0x1_0444));
    let arm = read("shopd: unhandled page fault (11) at 0x00000010, code 0x017\n");
    assert_eq!(arm.exception.unwrap().signal.as_deref(), Some("SIGSEGV"));
    let ppc =
        read("shopd[9]: segfault (11) at 10 nip 10000abc lr 10000ab0 code 1 in shopd[10000000+10000]\n");
    assert_eq!(pc(&ppc), Some(0x1000_0abc));
}

const OOM: &str = "\
[  100.1] indexer invoked oom-killer: gfp_mask=0xcc0(GFP_KERNEL), order=0, oom_score_adj=0\n\
[  100.1] CPU: 3 PID: 167 Comm: indexer Not tainted 5.15.0 #80\n\
[  100.1] Call Trace:\n\
[  100.1]  dump_stack+0x6d/0x8b\n\
[  100.1] memory: usage 524288kB, limit 524288kB, failcnt 141\n\
[  100.1] Tasks state (memory values in pages):\n\
[  100.1] [  pid  ]   uid  tgid total_vm      rss pgtables_bytes swapents oom_score_adj name\n\
[  100.1] [    150]     0   150      242       10    28672        0          -998 pause\n\
[  100.1] [    160]  1000   160   226026   119603  1314816        0           500 search server\n\
[  100.1] oom-kill:constraint=CONSTRAINT_MEMCG,nodemask=(null),cpuset=c1,mems_allowed=0,oom_memcg=/pods/p1,task_memcg=/pods/p1/c1,task=search server,pid=160,uid=1000\n\
[  100.1] Memory cgroup out of memory: Killed process 160 (search server) total-vm:904104kB, anon-rss:470000kB, file-rss:8412kB, shmem-rss:0kB, UID:1000 pgtables:1284kB oom_score_adj:500\n";

#[test]
fn kills_for_want_of_memory() {
    let report = read(OOM);
    assert_eq!((report.process.name.as_deref(), report.process.pid), (Some("search server"), Some(160)));
    let fields = |key: &str| -> Vec<&str> {
        report.fields.iter().filter(|field| field.key == key).map(|field| field.value.as_str()).collect()
    };
    assert_eq!(
        fields("task"),
        ["pid=150 rss=10 swap=0 adj=-998 name=pause", "pid=160 rss=119603 swap=0 adj=500 name=search server"]
    );
    assert_eq!(fields("anon-rss"), ["470000kB"]);
    assert_eq!(fields("oom_score_adj"), ["500"]);
    assert_eq!(fields("memory"), ["usage 524288kB, limit 524288kB, failcnt 141"]);
    for (text, name, scope) in [
        (
            "Out of memory: Killed process 12 (shopd) total-vm:1kB, anon-rss:2kB, file-rss:0kB, shmem-rss:0kB, UID:0 pgtables:3kB oom_score_adj:0\n",
            Some("shopd"),
            Some("machine"),
        ),
        (
            "Out of memory: Kill process 12 (shopd) score 974 or sacrifice child\nKilled process 12 (shopd) total-vm:1kB, anon-rss:2kB, file-rss:0kB\n",
            Some("shopd"),
            Some("machine"),
        ),
        (
            "oom-kill:constraint=CONSTRAINT_NONE,nodemask=(null),cpuset=/,mems_allowed=0,global_oom,task_memcg=/a,task=shopd,pid=12,uid=0\n",
            Some("shopd"),
            Some("machine"),
        ),
        (
            "Nov 22 17:00:00 depot systemd[1]: shop.service: A process of this unit has been killed by the OOM killer.\n",
            Some("shop.service"),
            None,
        ),
        (
            "Killed /user.slice/user-1000.slice/app.scope due to memory pressure for /user.slice being 62.71% > 50.00% for > 20s with reclaim activity\n",
            Some("app.scope"),
            Some("oomd"),
        ),
        (
            "    Last State:     Terminated\n      Reason:       OOMKilled\n      Exit Code:    137\n",
            None,
            Some("container"),
        ),
    ] {
        let report = read(text);
        assert_eq!(report.process.name.as_deref(), name, "{text}");
        assert_eq!(report.exception.unwrap().subtype.as_deref(), scope, "{text}");
    }
}

#[test]
fn each_event_of_a_log_is_a_report() {
    let fault = "Nov  3 12:00:00 depot kernel: shopd[7]: segfault at 10 ip 7f0010 sp 7f0020 error 4 in shopd[7f0000+1000]\nNov  3 12:00:00 depot kernel: Code: 48 89\n";
    let two = "Out of memory: Killed process 12 (shopd) total-vm:1kB, anon-rss:2kB, file-rss:0kB\noom_reaper: reaped process 12 (shopd), now anon-rss:0kB\n\
        Out of memory: Killed process 13 ((shop)) total-vm:1kB, anon-rss:2kB, file-rss:0kB\nshop.service: Failed with result 'oom-kill'.\n";
    let pids: Vec<_> = documents(two.as_bytes())
        .iter()
        .map(|it| read(&String::from_utf8_lossy(&it.bytes)).process.pid)
        .collect();
    assert_eq!(pids, [Some(12), Some(13)]);
    let text = format!("words\n{fault}{OOM}{fault}{OOM}{OOM}");
    let documents = documents(text.as_bytes());
    let kinds: Vec<_> = documents
        .iter()
        .map(|document| read(&String::from_utf8_lossy(&document.bytes)).exception.unwrap().kind.unwrap())
        .collect();
    assert_eq!(kinds, ["segfault", "out of memory", "segfault", "out of memory", "out of memory"]);
}

#[test]
fn sentences_about_them_are_none() {
    for text in [
        "my program[1]: segfault at startup, error 4 is shown\n",
        "The log says segfault at 10 ip 7f0010 sp 7f0020 error 4, what is that?\n",
        "prog[1]: segfault at 10 ip 7f0010 sp 7f0020 error 4 in the library that I wrote\n",
        "Out of memory: Killed process is what I see\n",
        "It was Killed process 12 (a) total-vm:1kB\n",
        "Killed /dev/null due to a typo\n",
        "The reason: OOMKilled, I think\n",
        "traps: prog[1] trap of mine ip:1 sp:2 error:0\n",
        "an unhandled exception: see below\n",
    ] {
        assert!(parse(text.as_bytes(), &Limits::default()).is_err(), "{text}");
    }
}

#[test]
fn every_cut_is_read_without_harm() {
    for end in 0..OOM.len() {
        let _ = parse(&OOM.as_bytes()[..end], &Limits::default());
    }
    let line = "shopd[4321]: segfault at 18 ip 00007f12a4c3b1d2 sp 00007ffe3c1a2b40 error 4 in libledger.so.2[b1d2,7f12a4c30000+5e000] likely on CPU 3";
    for end in 0..line.len() {
        let _ = parse(&line.as_bytes()[..end], &Limits::default());
    }
}

#[test]
fn mips_and_audit() {
    let text = "Tue Apr  1 17:46:36 2025 kern.info kernel: [   88.917197] do_page_fault(): sending SIGSEGV to shop#1 for invalid write access to 0008a200\nTue Apr  1 17:46:36 2025 kern.info kernel: [   88.926144] epc = 77d9b0b0 in libshop.so[570b0,77d44000+b2000]\nTue Apr  1 17:46:36 2025 kern.info kernel: [   88.931298] ra  = 77d9b570 in libshop.so[77d44000+b2000]\n";
    let report = parse(text.as_bytes(), &Limits::default()).unwrap();
    let exception = report.exception.as_ref().unwrap();
    assert_eq!((exception.subtype.as_deref(), exception.address), (Some("write"), Some(Avma::new(0x8_a200))));
    let frames = &report.crashed().unwrap().frames;
    assert_eq!((frames[0].file_offset.map(FileOffset::get), frames.len()), (Some(0x5_70b0), 2));
    for (text, kind, signal) in [
        (
            "type=ANOM_ABEND msg=audit(1.2:3): auid=1 uid=1 pid=12 comm=\"shop\" exe=\"/usr/bin/shop\" sig=11 res=1\n",
            "audited end",
            "SIGSEGV",
        ),
        (
            "audit: type=1326 audit(1.2:3): auid=1 pid=12 comm=\"shop\" exe=\"/usr/bin/shop\" sig=31 arch=c000003e syscall=41 compat=0 ip=0x7f12 code=0x0\n",
            "seccomp",
            "SIGSYS",
        ),
    ] {
        let report = parse(text.as_bytes(), &Limits::default()).unwrap();
        let exception = report.exception.as_ref().unwrap();
        assert_eq!(
            (exception.kind.as_deref(), exception.signal.as_deref()),
            (Some(kind), Some(signal)),
            "{text}"
        );
        assert_eq!(report.process.path.as_deref(), Some("/usr/bin/shop"));
    }
    assert!(parse(b"type=ANOM_ABEND is what audit calls it\n", &Limits::default()).is_err());
}
