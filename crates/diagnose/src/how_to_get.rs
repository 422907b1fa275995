//! How to come by the names that frames are without: the package, the server, the runtime's switch, the file.

use backtrail_core::ImageId;
use backtrail_model::{Image, Process, Report, Source, SymbolStatus};

/// What is known of the circumstances that names are looked for in.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub struct Circumstances {
    /// The system's packages, where the process ran on this machine.
    pub packages: Option<Packages>,
    /// Whether debuginfod servers were asked already.
    pub asked_servers: bool,
    /// Whether symbols are uploaded, as to a server, not named on a command line.
    pub by_upload: bool,
}

impl Circumstances {
    /// What to do with a file that has the names.
    fn give(self, file: &str) -> String {
        let verb = if self.by_upload { "upload" } else { "-s with" };
        format!("{verb} {file}")
    }
}

/// Systems by how their packages of debug info are called.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Packages {
    /// Debian, Ubuntu and what is made from them.
    Debian,
    /// Fedora, RHEL, CentOS and their like.
    Fedora,
    /// Any other, which debuginfod may know.
    Other,
}

impl Packages {
    /// By the text of `/etc/os-release`.
    pub fn of_os_release(text: &str) -> Self {
        let value = |key: &str| {
            let line = text.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix('='));
            line.unwrap_or_default().trim_matches(['"', '\'']).to_owned()
        };
        let names = format!("{} {}", value("ID"), value("ID_LIKE"));
        let is = |name: &str| names.split(' ').any(|other| other == name);
        if is("debian") || is("ubuntu") {
            Self::Debian
        } else if is("fedora") || is("rhel") {
            Self::Fedora
        } else {
            Self::Other
        }
    }
}

/// Says of each image with frames without names how to come by them.
pub fn add_how_to_get(report: &mut Report, circumstances: Circumstances) {
    let source = report.source;
    for process in report.all_processes_mut() {
        let advice: Vec<_> = process
            .images
            .iter()
            .map(|image| {
                let is_needed = image.symbols.unnamed_frames > 0;
                is_needed.then(|| of_image(image, process, source, circumstances)).flatten()
            })
            .collect();
        for (image, advice) in process.images.iter_mut().zip(advice) {
            image.symbols.how_to_get = advice;
        }
    }
}

fn of_image(
    image: &Image,
    process: &Process,
    source: Source,
    circumstances: Circumstances,
) -> Option<String> {
    // Neither is a file of its own: nobody has more of the kernel's than it exports.
    let path = image.path.as_deref().unwrap_or(&image.name);
    if path.starts_with("[v") {
        return None;
    }
    if is_made_at_run_time(image) {
        return Some(of_generated_code(process, source));
    }
    match (&image.symbols.status, image.id) {
        // All that there is to know of the build is there.
        (SymbolStatus::Found, _) => None,
        (_, Some(ImageId::Uuid(_))) => Some(of_apple(image, path, circumstances)),
        (_, Some(ImageId::BuildId(_))) => Some(of_elf(path, circumstances)),
        _ => Some(circumstances.give("the very file that ran: nothing else tells which build it was")),
    }
}

/// Code that no file has: mapped without a name, or under one that only says what it is for.
fn is_made_at_run_time(image: &Image) -> bool {
    let path = image.path.as_deref().unwrap_or(&image.name);
    let starts = ["<anonymous", "[anon", "//anon", "/memfd:", "/dev/zero", "/dev/ashmem", "/SYSV"];
    image.id.is_none() && (path.is_empty() || starts.iter().any(|start| path.starts_with(start)))
}

fn of_generated_code(process: &Process, source: Source) -> String {
    let loads = |name: &str| {
        let file =
            |image: &Image| image.path.as_deref().unwrap_or(&image.name).rsplit('/').next() == Some(name);
        process.images.iter().any(file)
    };
    // The map of a process is of use while it runs.
    let is_live = source == Source::Process;
    let pid = process.pid.filter(|_| is_live).map_or_else(|| "PID".to_owned(), |pid| pid.to_string());
    let when = if is_live { ", then capture again" } else { " before the capture" };
    if loads("libjvm.so") {
        format!("jcmd {pid} Compiler.perfmap{when} (JDK 17 or later; interpreted code has no names)")
    } else if loads("node") || loads("nodejs") || ["libnode.so", "libv8.so"].into_iter().any(loads) {
        "start node with --perf-basic-prof".to_owned()
    } else if loads("libcoreclr.so") {
        "start .NET with DOTNET_PerfMapEnabled=1".to_owned()
    } else {
        format!("code made at run time: its runtime has to write /tmp/perf-{pid}.map")
    }
}

fn of_apple(image: &Image, path: &str, circumstances: Circumstances) -> String {
    let is_system = image.source.as_deref() == Some("S")
        || ["/usr/lib/", "/System/"].iter().any(|start| path.starts_with(start));
    let id = image.id.map(|id| id.to_string()).unwrap_or_default();
    match is_system {
        true => circumstances
            .give("the symbols of that very system version (Xcode keeps them below DeviceSupport)"),
        false if circumstances.by_upload => circumstances.give(&format!("the dSYM that has UUID {id}")),
        false => circumstances.give(&format!("the directory of the dSYM that has UUID {id}")),
    }
}

fn of_elf(path: &str, circumstances: Circumstances) -> String {
    let mut ways = Vec::new();
    // Whoever types the command takes the path from a stranger's report.
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "/._+-".contains(c);
    let is_of_system = ["/usr/", "/lib", "/bin/", "/sbin/"].iter().any(|start| path.starts_with(start))
        && !path.starts_with("/usr/local/");
    if is_of_system && path.chars().all(is_plain) {
        let file = path.rsplit('/').next().unwrap_or(path);
        let is_libc =
            file.starts_with("libc.so") || file.starts_with("libc-2") || file.starts_with("ld-linux");
        let debian = match is_libc {
            true => "apt install libc6-dbg".to_owned(),
            false => format!("the -dbgsym package of what `dpkg -S {path}` names"),
        };
        let fedora = format!("dnf debuginfo-install \"$(rpm -qf {path})\"");
        match circumstances.packages {
            Some(Packages::Debian) => ways.push(debian),
            Some(Packages::Fedora) => ways.push(fedora),
            Some(Packages::Other) => {}
            None => ways.extend([format!("Debian, Ubuntu: {debian}"), format!("Fedora: {fedora}")]),
        }
    }
    if !circumstances.asked_servers && !circumstances.by_upload {
        ways.push("--debuginfod".to_owned());
    }
    if !is_of_system {
        ways.push(circumstances.give("its debug file or unstripped binary"));
    }
    if ways.is_empty() {
        ways.push(circumstances.give("its debug file"));
    }
    ways.join("; or ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use backtrail_model::ImageSymbols;

    fn image(path: &str, id: Option<ImageId>, status: SymbolStatus) -> Image {
        let symbols = ImageSymbols { status, unnamed_frames: 1, ..ImageSymbols::default() };
        Image { path: Some(path.to_owned()), id, symbols, ..Image::default() }
    }

    fn advice(images: Vec<Image>, source: Source, packages: Option<Packages>) -> Vec<Option<String>> {
        let process = Process { pid: Some(7), images, ..Process::default() };
        let mut report = Report { process, source, ..Report::default() };
        add_how_to_get(&mut report, Circumstances { packages, ..Circumstances::default() });
        report.process.images.into_iter().map(|image| image.symbols.how_to_get).collect()
    }

    fn build_id() -> Option<ImageId> {
        ImageId::from_build_id(&[1; 20])
    }

    #[test]
    fn packages_and_servers_have_the_debug_info_of_systems() {
        let of = |path: &str, packages| {
            advice(vec![image(path, build_id(), SymbolStatus::Stripped)], Source::Process, packages)
                .remove(0)
                .unwrap()
        };
        let debian = Some(Packages::Debian);
        assert_eq!(of("/lib/x86_64-linux-gnu/libc.so.6", debian), "apt install libc6-dbg; or --debuginfod");
        assert!(of("/usr/lib/libz.so.1", debian).contains("`dpkg -S /usr/lib/libz.so.1`"));
        assert!(of("/usr/bin/ls", Some(Packages::Fedora)).contains("dnf debuginfo-install"));
        let unknown = of("/usr/bin/ls", None);
        assert!(unknown.contains("Debian, Ubuntu: ") && unknown.contains("Fedora: "), "{unknown}");
        assert_eq!(
            of("/srv/app/server", debian),
            "--debuginfod; or -s with its debug file or unstripped binary"
        );
        let hostile = of("/usr/lib/$(reboot)/x.so", debian);
        assert!(!hostile.contains("reboot"), "no command has a stranger's words in it: {hostile}");
    }

    #[test]
    fn a_server_gets_its_symbols_by_uploads() {
        let uuid = Some(ImageId::Uuid([0xab; 16]));
        let images = ["/private/var/App", "/srv/app", "/srv/other"].into_iter().zip([uuid, build_id(), None]);
        let images = images.map(|(path, id)| image(path, id, SymbolStatus::Missing)).collect();
        let mut report = Report { process: Process { images, ..Process::default() }, ..Report::default() };
        add_how_to_get(&mut report, Circumstances { by_upload: true, ..Circumstances::default() });
        let told: Vec<_> =
            report.process.images.iter().filter_map(|image| image.symbols.how_to_get.clone()).collect();
        assert!(told[0].starts_with("upload the dSYM that has UUID ABAB"), "{}", told[0]);
        assert_eq!(told[1], "upload its debug file or unstripped binary");
        assert!(told[2].starts_with("upload the very file"), "{}", told[2]);
    }

    #[test]
    fn runtimes_write_the_names_of_what_they_make() {
        let code = || image("<anonymous:7f0000>", None, SymbolStatus::Missing);
        let with = |library: &str, source| {
            let library = image(library, build_id(), SymbolStatus::Found);
            advice(vec![code(), library], source, None).remove(0).unwrap()
        };
        assert!(
            with("/opt/jdk/lib/server/libjvm.so", Source::Process)
                .starts_with("jcmd 7 Compiler.perfmap, then")
        );
        assert!(with("/jdk/libjvm.so", Source::ElfCore).starts_with("jcmd PID Compiler.perfmap before"));
        assert!(with("/usr/bin/node", Source::Process).contains("--perf-basic-prof"));
        assert!(with("/app/libcoreclr.so", Source::Process).contains("DOTNET_PerfMapEnabled"));
        assert!(with("/app/other", Source::Process).contains("/tmp/perf-7.map"));
    }

    #[test]
    fn apple_images_are_asked_for_by_uuid_and_what_is_complete_by_nobody() {
        let uuid = Some(ImageId::Uuid([0xab; 16]));
        let images = vec![
            image("/private/var/App", uuid, SymbolStatus::Missing),
            image("/usr/lib/libobjc.A.dylib", uuid, SymbolStatus::Missing),
            image("/srv/app", build_id(), SymbolStatus::Found),
            image("[vdso]", None, SymbolStatus::ExportsOnly),
            image("/srv/app", None, SymbolStatus::Missing),
        ];
        let advice = advice(images, Source::default(), None);
        assert!(advice[0].as_deref().is_some_and(|how| how.contains("UUID ABABABAB")), "{advice:?}");
        assert!(advice[1].as_deref().is_some_and(|how| how.contains("DeviceSupport")));
        assert_eq!((&advice[2], &advice[3]), (&None, &None));
        assert!(advice[4].as_deref().is_some_and(|how| how.contains("the very file")));
    }

    #[test]
    fn systems_are_told_by_their_release_file() {
        for (text, packages) in [
            ("ID=debian\n", Packages::Debian),
            ("NAME=x\nID=linuxmint\nID_LIKE=\"ubuntu debian\"\n", Packages::Debian),
            ("ID=\"rocky\"\nID_LIKE=\"rhel centos fedora\"\n", Packages::Fedora),
            ("ID=arch\n", Packages::Other),
            ("", Packages::Other),
        ] {
            assert_eq!(Packages::of_os_release(text), packages, "{text}");
        }
    }
}
