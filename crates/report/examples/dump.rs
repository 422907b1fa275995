fn main() {
    for path in std::env::args().skip(1) {
        let data = std::fs::read(&path).unwrap();
        println!("=== {path}");
        match backtrail_report::parse(&data, &Default::default()) {
            Err(error) => println!("ERROR {error}"),
            Ok(report) => {
                let e = backtrail_report::explain(&report);
                let a = backtrail_report::attribute(&report);
                println!("[{}] {}\n  {}", e.rule, e.title, e.summary);
                for (n, l) in [("EV", &e.evidence), ("CAUSE", &e.causes), ("NEXT", &e.next_steps)] {
                    for x in l {
                        println!("    {n}: {x}");
                    }
                }
                println!("  => {} {:?}", a.verdict.as_str(), a.name);
                for x in &a.evidence {
                    println!("    {x}");
                }
            }
        }
    }
}
