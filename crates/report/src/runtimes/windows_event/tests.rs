use crate::{Limits, documents, parse};
use backtrail_core::FrameAddress;
use backtrail_model::{Report, Source};

const EVENT: &str = "Faulting application name: shop.exe, version: 2.1.0.7, time stamp: 0x60000001\n\
    Faulting module name: cart.dll, version: 1.0.0.0, time stamp: 0x60000002\n\
    Exception code: 0xc0000005\n\
    Fault offset: 0x0000000000001234\n\
    Faulting process id: 0x0x1A2B\n\
    Faulting application start time: 0x0x1DB0000000000\n\
    Faulting application path: C:\\Program Files\\Shop\\shop.exe\n\
    Faulting module path: C:\\Program Files\\Shop\\cart.dll\n\
    Report Id: 11111111-2222-3333-4444-555555555555\n\
    Faulting package full name: \n\
    Faulting package-relative application ID: \n";

fn read(text: &str) -> Report {
    parse(text.as_bytes(), &Limits::default()).unwrap()
}

fn all(text: &str) -> Vec<Report> {
    documents(text.as_bytes())
        .iter()
        .map(|document| parse(&document.bytes, &Limits::default()).unwrap())
        .collect()
}

/// Module, offset, code and process id.
fn facts(report: &Report) -> (String, Option<u64>, Vec<u64>, Option<u64>) {
    let frame = &report.process.threads[0].frames[0];
    let module = frame.image_name.clone().unwrap_or_default();
    (module, frame.image_offset, report.exception.as_ref().unwrap().raw_codes.clone(), report.process.pid)
}

fn expected() -> (String, Option<u64>, Vec<u64>, Option<u64>) {
    ("cart.dll".to_owned(), Some(0x1234), vec![0xc000_0005], Some(0x1a2b))
}

#[test]
fn an_event_with_all_that_it_says() {
    let report = read(EVENT);
    assert_eq!((report.source, facts(&report)), (Source::WindowsEvent, expected()));
    assert_eq!(report.process.name.as_deref(), Some("shop.exe"));
    assert_eq!(report.process.version.as_deref(), Some("2.1.0.7"));
    assert_eq!(report.process.path.as_deref(), Some("C:\\Program Files\\Shop\\shop.exe"));
    assert_eq!(report.process.images[1].version.as_deref(), Some("1.0.0.0"));
    assert_eq!(report.incident.as_deref(), Some("11111111-2222-3333-4444-555555555555"));
    assert_eq!(report.exception.unwrap().kind.as_deref(), Some("EXCEPTION_ACCESS_VIOLATION"));
    assert!(report.sections[0].text.contains("start time: 0x0x1DB"), "the text is kept");
}

#[test]
fn the_same_event_in_other_forms() {
    let joined = EVENT.replace('\n', " ");
    let wrapped = EVENT.replace("stamp: ", "stamp: \n").replace("Files\\Shop", "Files\n\\Shop");
    let marked =
        format!("`{}`", EVENT.replace("Exception code: 0xc0000005", "**Exception code: 0xc0000005**"));
    // German, and the Chinese comma and colon: the order of the lines is that of English.
    let mut german = EVENT.to_owned();
    for (english, other) in [
        ("Faulting application name", "Name der fehlerhaften Anwendung"),
        ("Faulting module name", "Name des fehlerhaften Moduls"),
        ("version", "Version"),
        ("time stamp", "Zeitstempel"),
        ("Exception code", "Ausnahmecode"),
        ("Fault offset", "Fehleroffset"),
        ("Faulting process id", "ID des fehlerhaften Prozesses"),
        ("Faulting application start time", "Startzeit"),
        ("Faulting application path", "Pfad"),
        ("Faulting module path", "Pfad des Moduls"),
        ("Report Id", "Berichtskennung"),
    ] {
        german = german.replace(english, other);
    }
    let wide = german.replace(", ", "\u{ff0c}").replacen("Ausnahmecode: ", "Ausnahmecode\u{ff1a}", 1);
    for text in [&joined, &wrapped, &marked, &german, &wide] {
        assert_eq!(facts(&read(text)), expected(), "{text}");
    }
}

#[test]
fn the_sentence_of_older_systems() {
    let report = read(
        "Faulting application shop.exe, version 2.1.0.7, faulting module cart.dll, version 1.0.0.0, fault address 0x00001234.\n",
    );
    assert_eq!(report.process.threads[0].frames[0].image_offset, Some(0x1234));
    assert_eq!(report.process.version.as_deref(), Some("2.1.0.7"));
}

#[test]
fn xml_and_signatures() {
    let xml = "- <Event xmlns=\"http://schemas.microsoft.com/win/2004/08/events/event\">\n<Provider Name=\"Application Error\" />\n\
        <TimeCreated SystemTime=\"2026-01-05T01:24:44Z\" />\n<EventData>\n<Data>shop.exe</Data>\n<Data>2.1.0.7</Data>\n<Data>60000001</Data>\n\
        <Data Name=\"ModuleName\">cart.dll</Data>\n<Data>1.0.0.0</Data>\n<Data>60000002</Data>\n<Data>c0000005</Data>\n\
        <Data>0000000000001234</Data>\n<Data>1a2b</Data>\n<Data />\n</EventData>\n</Event>\n";
    let report = read(xml);
    assert_eq!(facts(&report), expected());
    assert_eq!(report.time.as_deref(), Some("2026-01-05T01:24:44Z"));
    // The same event once more is no second report.
    assert_eq!(all(&format!("{EVENT}Event Xml:\n{xml}")).len(), 1);
    let signature = "Fault bucket , type 0\nEvent Name: BEX64\nCab Id: 0\nProblem signature:\nP1: shop.exe\nP2: 2.1.0.7\nP3: 60000001\n\
        P4: ucrtbase.dll\nP5: 10.0.1.2\nP6: 60000002\nP7: 0000000000001234\nP8: c0000409\nP9: 0000000000000007\nP10:\n";
    let report = read(signature);
    assert_eq!(facts(&report).2, [0xc000_0409]);
    assert!(report.fields.iter().any(|field| field.key == "exception data" && field.value.ends_with('7')));
    let dialogue = "Problem Event Name:\tAPPCRASH\nApplication Name:\tshop.exe\nFault Module Name:\tStackHash_0a9e\n\
        Exception Code:\tc0000374\nException Offset:\t000ce6c3\nOS Version:\t6.1.7601\n";
    let report = read(dialogue);
    assert!(report.process.threads.is_empty(), "a hash of the stack is no module");
    assert_eq!(report.os.as_deref(), Some("6.1.7601"));
}

#[test]
fn a_module_that_is_unknown_is_an_address() {
    let report = read(&EVENT.replace("cart.dll, version: 1.0.0.0", "unknown, version: 0.0.0.0"));
    let frame = &report.process.threads[0].frames[0];
    assert!(matches!(frame.address, Some(FrameAddress::Exact(address)) if address.get() == 0x1234));
    assert_eq!(frame.image, None);
}

const RUNTIME: &str = "Application: shop.exe\nFramework Version: v4.0.30319\nDescription: The process was terminated due to an unhandled exception.\n\
    Exception Info: System.IO.IOException\n   at Shop.Store.Open(System.String)\n\nException Info: System.Reflection.TargetInvocationException\n\
    \x20  at System.RuntimeMethodHandle.InvokeMethod()\n   at Shop.Program.Main()\n\n";

/// .NET Framework writes the innermost exception first.
#[test]
fn an_exception_of_dot_net_and_the_event_of_the_same_crash() {
    for text in [format!("{RUNTIME}{EVENT}"), format!("{EVENT}{RUNTIME}")] {
        let [report] = all(&text).try_into().unwrap();
        assert_eq!(report.source, Source::DotNetException);
        assert_eq!(report.process.version.as_deref(), Some("2.1.0.7"));
        let exception = report.exception.as_ref().unwrap();
        assert_eq!(exception.kind.as_deref(), Some("System.Reflection.TargetInvocationException"));
        let stacks: Vec<_> =
            report.process.backtraces.iter().map(|it| (it.title.as_str(), it.is_exception)).collect();
        assert_eq!(
            stacks,
            [
                ("System.Reflection.TargetInvocationException", false),
                ("Inner exception: System.IO.IOException", true)
            ]
        );
    }
    assert_eq!(all(&format!("{EVENT}{EVENT}")).len(), 2);
    assert_eq!(all(&format!("{RUNTIME}{EVENT}{RUNTIME}{EVENT}")).len(), 2);
}

#[test]
fn an_exception_in_one_line() {
    let report = read(
        "<Data>Application: shop.exe CoreCLR Version: 8.0.1 Description: The process was terminated due to an unhandled exception. \
         Exception Info: System.IO.IOException: no file ---> System.ArgumentException: look at it at Shop.Store.Open(String path) --- End of inner exception stack trace --- at Shop.Program.Main()</Data>\n",
    );
    assert_eq!(
        report.app_info[0].lines,
        ["System.IO.IOException: no file", "System.ArgumentException: look at it"]
    );
    let names: Vec<_> = report
        .process
        .backtraces
        .iter()
        .flat_map(|it| &it.frames)
        .flat_map(backtrail_model::Frame::names)
        .collect();
    assert_eq!(names, ["Shop.Program.Main", "Shop.Store.Open"]);
    assert_eq!(report.process.name.as_deref(), Some("shop.exe"));
}

#[test]
fn errors_of_the_runtime_itself() {
    let report = read(
        "Application: shop.exe\nCoreCLR Version: 8.0.1\nDescription: The process was terminated due to an internal error in the .NET Runtime at IP 00007FFC0001C5E4 (00007FFC00010000) with exit code c0000005.\n",
    );
    let frame = &report.process.threads[0].frames[0];
    assert_eq!((frame.image_offset, report.exception.unwrap().raw_codes), (Some(0xc5e4), vec![0xc000_0005]));
    let report = read(
        "Application: shop.exe\nCoreCLR Version: 8.0.1\nDescription: The application requested process termination through System.Environment.FailFast.\nMessage: broken\nStack:\n   at Shop.Store.Check()\n",
    );
    assert_eq!(report.exception.unwrap().message.as_deref(), Some("broken"));
    assert_eq!(report.process.backtraces[0].frames.len(), 1);
}

/// Nothing of it stops the reader, however it is cut.
#[test]
fn cuts() {
    let text = format!("{RUNTIME}{EVENT}");
    for end in (0..text.len()).filter(|end| text.is_char_boundary(*end)) {
        for document in documents(&text.as_bytes()[..end]) {
            let _ = parse(&document.bytes, &Limits::default());
        }
    }
}
