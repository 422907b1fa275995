#![allow(clippy::all, clippy::unwrap_used, clippy::print_stdout, missing_docs)]
use backtrail_object::Object;
use backtrail_symbolize::Symbolizer;
use backtrail_symbolize::convert::{ConvertOptions, convert};
use std::time::Instant;
fn main() {
    let args: Vec<String> = std::env::args().collect();
    let jobs: usize = args[1].parse().unwrap();
    for path in &args[2..] {
        let data = std::fs::read(path).unwrap();
        let start = Instant::now();
        let symbolizer = Symbolizer::new(vec![Object::parse(&data).unwrap()]).unwrap();
        let mut out = std::io::Cursor::new(Vec::new());
        let options = ConvertOptions { jobs: Some(jobs), ..Default::default() };
        let result = convert(&symbolizer, &options, &mut out);
        println!("{path}: {:?} {} bytes", start.elapsed(), out.get_ref().len());
        match result {
            Ok(s) => println!("{s:#?}"),
            Err(e) => println!("{e}"),
        }
        for p in symbolizer.problems() {
            println!("{p}");
        }
    }
}
