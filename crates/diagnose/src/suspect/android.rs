//! Whose code a frame is on Android and in Java: by the path of its library, or by the package of its class.

use super::owner::Ownership;
use crate::names::image_of;
use backtrail_model::{Frame, OwnerKind, Process, Report};

/// Where Android keeps its own files.
const SYSTEM: [(&str, &str); 11] = [
    ("/system/", "the system's own files"),
    ("/apex/", "a module of the system"),
    ("/vendor/", "the device maker's own files"),
    ("/product/", "the device maker's own files"),
    ("/system_ext/", "the system's own files"),
    ("/odm/", "the device maker's own files"),
    ("/data/dalvik-cache/", "system code compiled on the device"),
    ("/data/misc/apexdata/", "a module of the system"),
    ("/memfd:jit", "code that the runtime made from Java"),
    ("/dev/ashmem/dalvik-", "code that the runtime made from Java"),
    ("/sbin/", "the system's own files"),
];

/// Beginnings of the names of classes that are the platform's.
const PLATFORM: [(&str, &str); 20] = [
    ("android.support.", ""),
    ("android.", "Android's framework"),
    ("com.android.", "Android's framework"),
    ("dalvik.", "Android's runtime"),
    ("libcore.", "Android's runtime"),
    ("art.", "Android's runtime"),
    ("java.", "Java's library"),
    ("javax.", "Java's library"),
    ("jdk.", "Java's library"),
    ("sun.", "Java's library"),
    ("com.sun.", "Java's library"),
    ("org.apache.harmony.", "Android's runtime"),
    ("org.apache.http.", "Android's framework"),
    ("org.chromium.", "the system's web view"),
    ("org.json.", "Android's framework"),
    ("org.xml.sax.", "Java's library"),
    ("org.w3c.dom.", "Java's library"),
    ("com.google.android.gms.dynamite.", "Google Play services"),
    ("de.robv.android.xposed.", ""),
    ("kernel.", "the kernel"),
];

/// Beginnings of the names of classes of libraries that apps ship.
const LIBRARIES: [(&str, &str); 28] = [
    ("androidx.", "AndroidX"),
    ("android.support.", "Android's support library"),
    ("kotlin.", "Kotlin"),
    ("kotlinx.", "Kotlin"),
    ("scala.", "Scala"),
    ("groovy.", "Groovy"),
    ("io.reactivex.", "RxJava"),
    ("rx.", "RxJava"),
    ("okhttp3.", "OkHttp"),
    ("okio.", "Okio"),
    ("retrofit2.", "Retrofit"),
    ("com.squareup.", "Square"),
    ("com.bumptech.glide.", "Glide"),
    ("com.google.android.", "Google's Android libraries"),
    ("com.google.firebase.", "Firebase"),
    ("com.google.common.", "Guava"),
    ("com.google.gson.", "Gson"),
    ("com.facebook.react.", "React Native"),
    ("com.facebook.", "Facebook"),
    ("io.flutter.", "Flutter"),
    ("com.unity3d.", "Unity"),
    ("dagger.", "Dagger"),
    ("org.springframework.", "Spring"),
    ("de.robv.android.xposed.", "Xposed, which injects code"),
    ("com.scottyab.rootbeer.", "RootBeer"),
    ("com.onesignal.", "OneSignal"),
    ("com.airbnb.lottie.", "Lottie"),
    ("im.crisp.client.", "Crisp"),
];

/// Libraries of runtimes and engines that apps ship, by their files' names.
const LIBRARY_FILES: [(&str, &str); 16] = [
    ("libc++_shared.so", "the C++ library that the app ships"),
    ("libgnustl_shared.so", "the C++ library that the app ships"),
    ("libflutter.so", "Flutter's engine"),
    ("libunity.so", "Unity's engine"),
    ("libil2cpp.so", "C# code that Unity compiled: the game's and Unity's own"),
    ("libmono", "Mono's runtime"),
    ("libhermes", "React Native's JavaScript engine"),
    ("libjsc.so", "React Native's JavaScript engine"),
    ("libreactnativejni.so", "React Native"),
    ("libreact", "React Native"),
    ("libsqlcipher.so", "SQLCipher"),
    ("libcrashlytics", "Crashlytics"),
    ("libsentry", "Sentry"),
    ("libbugsnag", "Bugsnag"),
    ("libxcrash", "xCrash"),
    ("libembrace", "Embrace"),
];

/// Packages that are Android's web view, which its user may update, and so lie where apps do.
const WEB_VIEWS: [&str; 8] = [
    "com.android.chrome",
    "com.chrome.beta",
    "com.chrome.dev",
    "com.chrome.canary",
    "com.google.android.webview",
    "com.google.android.trichromelibrary",
    "com.android.webview",
    "com.huawei.webview",
];

/// Files that are its code.
const WEB_VIEW_FILES: [&str; 4] =
    ["libwebviewchromium", "libmonochrome", "WebViewGoogle", "TrichromeLibrary"];

/// Whether a frame lies in Android's web view, in a process of another package.
pub(crate) fn is_web_view(report: &Report, frame: &Frame) -> bool {
    let Some(image) = image_of(report, frame) else { return false };
    let path = image.path.as_deref().unwrap_or(&image.name);
    is_web_views(&report.process, path)
}

fn is_web_views(process: &Process, path: &str) -> bool {
    let own = process.identifier.as_deref();
    // `com.android.chrome-F4ci0oyduqwVE4OQOPnP9A==`, `com.google.android.webview_677826033-x==`.
    let package = path.split('/').find_map(|part| {
        WEB_VIEWS.iter().find(|name| {
            part.strip_prefix(**name).is_some_and(|rest| rest.is_empty() || rest.starts_with(['-', '_', ':']))
        })
    });
    let file = path.rsplit(['/', '!']).next().unwrap_or(path);
    match package {
        Some(package) => own != Some(*package),
        None => WEB_VIEW_FILES.iter().any(|name| file.starts_with(name)),
    }
}

/// Whether Android keeps its own files there.
pub(super) fn is_system_path(path: &str) -> bool {
    SYSTEM.iter().any(|(part, _)| path.starts_with(part))
}

/// Tells whose the code of a frame is.
pub(super) fn owner_of(report: &Report, frame: &Frame) -> Ownership {
    if frame.language.is_some() {
        // Its obfuscated classes name the package that they come from in place of a file.
        let file = frame.reported.as_ref().and_then(|symbol| symbol.file.as_deref());
        if file.is_some_and(|file| file.starts_with("chromium-") && file.contains("WebView")) {
            return Ownership::strong(OwnerKind::System, "file", "the system's web view");
        }
        return of_class(&report.process, frame.names().next().unwrap_or_default());
    }
    if frame.image_name.as_deref() == Some("kernel") {
        return Ownership::certain(OwnerKind::System, "image name", "the frame is the kernel's");
    }
    let Some(image) = image_of(report, frame) else {
        return Ownership::unknown("the frame lies in no file that the report names");
    };
    let path = image.path.as_deref().unwrap_or(&image.name);
    let why = |what: &str| format!("{} was loaded from {path}: {what}", image.name);
    // The system's programs crash, too; the platform's own apps all run in app_process.
    let is_program = report.process.name.as_deref().is_some_and(|name| path.ends_with(&format!("/{name}")));
    if is_program && !image.name.starts_with("app_process") {
        return Ownership::likely(OwnerKind::App, "executable", why("the program itself"));
    }
    if let Some((_, what)) = SYSTEM.iter().find(|(part, _)| path.starts_with(part)) {
        return Ownership::certain(OwnerKind::System, "path", why(what));
    }
    // What has no file is the kernel's page, or memory that the runtime or the app filled.
    if path.starts_with("[vdso") || path.starts_with("<anonymous") || path.starts_with("[anon:dalvik") {
        return Ownership::strong(OwnerKind::System, "path", why("no file of the app"));
    }
    let is_of_app =
        ["/data/app/", "/data/app-lib/", "/data/data/", "/data/user/", "/mnt/asec/", "/mnt/expand/"];
    if is_of_app.iter().any(|part| path.starts_with(part)) {
        if is_web_views(&report.process, path) {
            return Ownership::strong(OwnerKind::System, "path", why("the system's web view"));
        }
        if !is_own_package(&report.process, path) {
            let what = "another package's library, which the app loaded";
            return Ownership::strong(OwnerKind::Sdk, "path", why(what));
        }
        let library = LIBRARY_FILES.iter().find(|(name, _)| image.name.starts_with(name));
        return match library {
            Some((_, what)) => Ownership::strong(OwnerKind::Sdk, "file name", why(what)),
            None => Ownership::likely(
                OwnerKind::App,
                "path",
                why(
                    "the app's package; the path alone does not tell the app's own libraries from a third party's",
                ),
            ),
        };
    }
    match path.starts_with("/data/local/") {
        true => Ownership::likely(OwnerKind::App, "executable", why("the program itself")),
        false => Ownership::unknown(why("neither the system's place nor the app's")),
    }
}

/// Whether a path below the directory of packages is of the process's own package.
fn is_own_package(process: &Process, path: &str) -> bool {
    let Some(package) = process.identifier.as_deref() else { return true };
    let mut parts = path.split('/').skip(3);
    let directories: Vec<_> = parts.by_ref().take(3).collect();
    let names_package = |part: &&str| part.contains('.') && !part.ends_with(".so") && !part.ends_with(".apk");
    let named: Vec<_> = directories.into_iter().filter(names_package).collect();
    named.is_empty() || named.iter().any(|part| part.split('-').next() == Some(package))
}

fn of_class(process: &Process, name: &str) -> Ownership {
    let begins = |(part, _): &&(&str, &str)| name.starts_with(part);
    let platform = PLATFORM.iter().find(begins).filter(|(_, what)| !what.is_empty());
    let library = LIBRARIES.iter().find(begins);
    // An app may be named as a part of the platform is: the system's own apps are.
    let own = process
        .identifier
        .as_deref()
        .filter(|package| name.strip_prefix(package).is_some_and(|rest| rest.starts_with('.')));
    if let Some(package) = own {
        let why = format!("{name} is in the app's package {package}");
        return Ownership::strong(OwnerKind::App, "class name", why);
    }
    if let Some((part, what)) = platform {
        let why = format!("classes of {part}* are {what}");
        return Ownership::strong(OwnerKind::System, "class name", why);
    }
    if let Some((part, what)) = library {
        let why = format!("classes of {part}* are {what}, which the app ships");
        return Ownership::strong(OwnerKind::Sdk, "class name", why);
    }
    if is_obfuscated(name) {
        let why = format!("the name {name} is a shrinker's: the mapping file of the build tells whose it is");
        return Ownership::unknown(why);
    }
    let why = format!(
        "{name} is neither the platform's nor a library's that backtrail knows, so it is taken for the app's"
    );
    Ownership::likely(OwnerKind::App, "class name", why)
}

/// Whether a shrinker gave a class its name and its package: `k.j0.f.a`.
fn is_obfuscated(method: &str) -> bool {
    const SHORT: usize = 2;
    let (class, _) = method.rsplit_once('.').unwrap_or((method, ""));
    !class.is_empty() && class.split(['.', '$']).all(|part| part.len() <= SHORT)
}

#[cfg(test)]
mod tests {
    use super::*;
    use backtrail_model::{Image, Language, ReportedSymbol, Source};

    fn report() -> Report {
        let mut report = Report { source: Source::AndroidTombstone, ..Report::default() };
        report.process.identifier = Some("com.example.shop".to_owned());
        report
    }

    fn native(path: &str) -> OwnerKind {
        let mut report = report();
        let name = path.rsplit(['/', '!']).next().unwrap().to_owned();
        report.process.images = vec![Image { name, path: Some(path.to_owned()), ..Image::default() }];
        owner_of(&report, &Frame { image: Some(0), ..Frame::new(0) }).owner
    }

    fn java(name: &str) -> OwnerKind {
        let reported = Some(ReportedSymbol { name: name.to_owned(), ..ReportedSymbol::default() });
        owner_of(&report(), &Frame { reported, language: Some(Language::Java), ..Frame::new(0) }).owner
    }

    #[test]
    fn files_by_their_place() {
        for (path, expected) in [
            ("/apex/com.android.runtime/lib64/bionic/libc.so", OwnerKind::System),
            ("/system/lib64/libart.so", OwnerKind::System),
            ("/memfd:jit-cache (deleted)", OwnerKind::System),
            ("/data/app/~~x==/com.example.shop-y==/lib/arm64/libshop.so", OwnerKind::App),
            ("/data/app/com.example.shop-1/base.apk!libshop.so", OwnerKind::App),
            ("/data/app/com.example.shop-1/lib/arm64/libflutter.so", OwnerKind::Sdk),
            ("/data/app/com.google.android.webview-1/base.apk", OwnerKind::System),
            ("/data/app/com.android.chrome-F4ci0oyduqwVE4OQOPnP9A==/base.apk", OwnerKind::System),
            ("/data/app/com.example.browser-1/base.apk", OwnerKind::Sdk),
            ("/data/local/tmp/test", OwnerKind::App),
        ] {
            assert_eq!(native(path), expected, "{path}");
        }
    }

    #[test]
    fn classes_by_their_package() {
        for (name, expected) in [
            ("android.os.Handler.dispatchMessage", OwnerKind::System),
            ("android.support.v4.app.Fragment.x", OwnerKind::Sdk),
            ("androidx.appcompat.app.X.y", OwnerKind::Sdk),
            ("com.example.shop.Cart.total", OwnerKind::App),
            ("com.example.shopping.Cart.total", OwnerKind::App),
            ("java.util.ArrayList.get", OwnerKind::System),
            ("a.b.c.d", OwnerKind::Unknown),
            ("k.j0.f.<clinit>", OwnerKind::Unknown),
            ("a.b.Cart.total", OwnerKind::App),
        ] {
            assert_eq!(java(name), expected, "{name}");
        }
    }
}
