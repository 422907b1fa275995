fn main() {
    for path in std::env::args().skip(1) {
        let data = std::fs::read(&path).unwrap();
        let mut r = backtrail_report::parse(&data, &Default::default()).unwrap();
        for t in &mut r.threads {
            t.frames.truncate(3);
            if !t.crashed {
                t.registers.clear();
            }
        }
        r.threads.truncate(2);
        r.images.truncate(2);
        for b in &mut r.backtraces {
            b.frames.truncate(2);
        }
        for s in &mut r.sections {
            let n = s.text.len().min(300);
            s.text = String::from_utf8_lossy(&s.text.as_bytes()[..n]).into_owned();
        }
        println!("{r:#?}");
    }
}
