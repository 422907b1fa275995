//! Whose an image is, by the path that it was loaded from.

use memchr::memmem::Finder;
use std::sync::LazyLock;

/// A rule for paths of the system and of Apple's tools.
pub(crate) struct PathRule {
    /// What the path begins with, or holds where `anywhere` is set.
    pub(crate) part: &'static str,
    /// Finds `part` where it may stand anywhere in the path. Kept, since making it takes longer than using it.
    pub(crate) anywhere: Option<Finder<'static>>,
    /// What lies there.
    pub(crate) what: &'static str,
}

impl PathRule {
    fn applies(&self, path: &str) -> bool {
        match &self.anywhere {
            Some(finder) => finder.find(path.as_bytes()).is_some(),
            None => path.starts_with(self.part),
        }
    }
}

fn starts(part: &'static str, what: &'static str) -> PathRule {
    PathRule { part, anywhere: None, what }
}

fn holds(part: &'static str, what: &'static str) -> PathRule {
    PathRule { part, anywhere: Some(Finder::new(part)), what }
}

/// Places where code was put by somebody who is neither the system nor the app. Asked before [`SYSTEM_PATHS`].
pub(crate) static INJECTED_PATHS: LazyLock<[PathRule; 6]> = LazyLock::new(|| {
    [
        holds("/MobileSubstrate/DynamicLibraries/", "code injected on a jailbroken device"),
        holds("/usr/lib/TweakInject/", "code injected on a jailbroken device"),
        starts("/var/jb/", "code injected on a jailbroken device"),
        starts("/private/preboot/jb/", "code injected on a jailbroken device"),
        holds("/System/Library/Extensions.thirdparty/", "a third party's extension"),
        starts("/usr/local/", "a library installed on this machine"),
    ]
});

/// The system's own places, those of simulators' systems, and Xcode's debugging libraries.
pub(crate) static SYSTEM_PATHS: LazyLock<[PathRule; 22]> = LazyLock::new(|| {
    [
        starts("/System/", "the system's own files"),
        starts("/usr/lib/", "the system's own libraries"),
        starts("/usr/lib64/", "the system's own libraries"),
        starts("/lib/", "the system's own libraries"),
        starts("/lib64/", "the system's own libraries"),
        starts("/usr/libexec/", "the system's own services"),
        starts("/usr/bin/", "the system's own tools"),
        starts("/usr/sbin/", "the system's own tools"),
        starts("/usr/appleinternal/", "the system's own files"),
        starts("/bin/", "the system's own tools"),
        starts("/sbin/", "the system's own tools"),
        starts("/Library/Apple/", "the system's own files"),
        starts("/preboot/Cryptexes/", "the system's own files"),
        starts("/Developer/", "Xcode's debugging support on a device"),
        holds("/RuntimeRoot/", "a simulator's system"),
        holds(".simruntime/Contents/", "a simulator's system"),
        holds("Simulator.sdk/", "a simulator's system"),
        holds(".app/Contents/Developer/", "a part of Xcode"),
        starts("/Library/Developer/CoreSimulator/Volumes/", "a simulator's system"),
        starts("/Library/Developer/PrivateFrameworks/", "a part of Xcode"),
        starts("/Library/Developer/CommandLineTools/", "a part of Apple's developer tools"),
        starts("/cores/dyld", "the system's own libraries"),
    ]
});

/// Files inside an app bundle that are nevertheless Apple's: what the name begins with, and what it is.
pub(crate) static APPLE_IN_BUNDLE: [(&str, &str); 14] = [
    ("libswift", "Swift's runtime, copied into the app by Xcode"),
    ("libclang_rt.", "a sanitizer's runtime, copied into the app by Xcode"),
    ("libMainThreadChecker", "Xcode's main thread checker"),
    ("libBacktraceRecording", "Xcode's debugging support"),
    ("libViewDebuggerSupport", "Xcode's debugging support"),
    ("libViewDebuggerService", "Xcode's debugging support"),
    ("libXCTestBundleInject", "Apple's test framework"),
    ("libXCTestSwiftSupport", "Apple's test framework"),
    ("XCTest", "Apple's test framework"),
    ("XCUIAutomation", "Apple's test framework"),
    ("XCUnit", "Apple's test framework"),
    ("IDEBundleInjection", "Xcode's test support"),
    ("DTDDISupport", "Xcode's debugging support"),
    ("Testing", "Apple's test framework"),
];

/// Names by which images are known to be the system's where the report gives no path. Whole names, or a beginning
/// that ends in `.` or `_`.
pub(crate) static SYSTEM_NAMES: [&str; 131] = [
    "com.apple.",
    "libsystem_",
    "libswift",
    "libc++abi.",
    "libc++.",
    "libobjc.",
    "libdispatch.",
    "libdyld.",
    "libxpc.",
    "libSystem.",
    "libcache.",
    "liblaunch.",
    "libicucore.",
    "libsqlite3.",
    "libz.",
    "libxml2.",
    "libGPUSupport",
    "libnetwork.",
    "dyld",
    "dyld_sim",
    "UIKit",
    "UIKitCore",
    "AppKit",
    "Foundation",
    "CoreFoundation",
    "GraphicsServices",
    "QuartzCore",
    "CFNetwork",
    "CoreData",
    "WebKit",
    "WebCore",
    "WebKitLegacy",
    "JavaScriptCore",
    "FrontBoardServices",
    "BaseBoard",
    "BackBoardServices",
    "HIToolbox",
    "SwiftUI",
    "AttributeGraph",
    "Combine",
    "AVFoundation",
    "AVFAudio",
    "CoreGraphics",
    "TCC",
    // Frameworks of Apple's documentation, and those that their stacks run through.
    "AVKit",
    "Accelerate",
    "Accounts",
    "AddressBook",
    "AdSupport",
    "AppIntents",
    "AppTrackingTransparency",
    "AssetsLibrary",
    "AudioToolbox",
    "AuthenticationServices",
    "BackgroundTasks",
    "CallKit",
    "CloudKit",
    "Contacts",
    "ContactsUI",
    "CoreAudio",
    "CoreBluetooth",
    "CoreHaptics",
    "CoreImage",
    "CoreLocation",
    "CoreMedia",
    "CoreMIDI",
    "CoreML",
    "CoreMotion",
    "CoreServices",
    "CoreSpotlight",
    "CoreTelephony",
    "CoreText",
    "CoreVideo",
    "CryptoTokenKit",
    "DeviceCheck",
    "EventKit",
    "EventKitUI",
    "ExternalAccessory",
    "FileProvider",
    "GameController",
    "GameKit",
    "GLKit",
    "HealthKit",
    "HomeKit",
    "ImageIO",
    "Intents",
    "IOKit",
    "IOSurface",
    "IOSurfaceAccelerator",
    "LocalAuthentication",
    "MapKit",
    "MediaPlayer",
    "MediaToolbox",
    "MessageUI",
    "Metal",
    "MetalKit",
    "MetalPerformanceShaders",
    "MetalTools",
    "MTLSimDriver",
    "MetricKit",
    "MobileCoreServices",
    "MultipeerConnectivity",
    "NaturalLanguage",
    "Network",
    "NetworkExtension",
    "NotificationCenter",
    "OpenGLES",
    "PassKit",
    "PDFKit",
    "Photos",
    "PhotosUI",
    "PushKit",
    "QuickLook",
    "RealityKit",
    "ReplayKit",
    "SafariServices",
    "SceneKit",
    "Security",
    "SkyLight",
    "SpriteKit",
    "StoreKit",
    "SwiftUICore",
    "SystemConfiguration",
    "UIFoundation",
    "UserNotifications",
    "VideoToolbox",
    "Vision",
    "WatchConnectivity",
    "WatchKit",
    "WidgetKit",
    "RunningBoardServices",
];

/// The rule of `rules` that `path` falls under.
pub(crate) fn rule_for<'r>(rules: &'r [PathRule], path: &str) -> Option<&'r PathRule> {
    let path = without_private(path);
    rules.iter().find(|rule| rule.applies(path))
}

/// `/private/var/…` and `/var/…` are the same place on Apple's systems.
pub(crate) fn without_private(path: &str) -> &str {
    path.strip_prefix("/private").filter(|rest| rest.starts_with('/')).unwrap_or(path)
}

/// The outermost bundle that `path` lies in, without a slash at its end: `…/Demo.app` of `…/Demo.app/PlugIns/X.appex/X`.
pub(crate) fn bundle_root(path: &str) -> Option<&str> {
    let ends = [".app/", ".appex/", ".xctest/", ".xpc/"];
    let end = ends.iter().filter_map(|end| path.find(end).map(|at| at + end.len() - 1)).min()?;
    path.get(..end)
}

/// Whether `name` is one of the system's, by [`SYSTEM_NAMES`].
pub(crate) fn is_system_name(name: &str) -> bool {
    // Every frame of a log is asked about.
    let first = name.bytes().next();
    SYSTEM_NAMES.iter().filter(|known| known.bytes().next() == first).any(|known| {
        let open = known.ends_with(['.', '_']) || known.starts_with("lib");
        if open { name.starts_with(known) } else { name == *known }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn system_places_of_every_platform_are_known() {
        for path in [
            "/System/Library/Frameworks/UIKit.framework/UIKit",
            "/System/iOSSupport/System/Library/PrivateFrameworks/UIKitCore.framework/Versions/A/UIKitCore",
            "/System/DriverKit/System/Library/Frameworks/DriverKit.framework/DriverKit",
            "/usr/lib/system/libdispatch.dylib",
            "/private/preboot/Cryptexes/OS/usr/lib/libobjc.A.dylib",
            "/Developer/usr/lib/libMainThreadChecker.dylib",
            "/Applications/Xcode-beta.app/Contents/Developer/usr/lib/libMainThreadChecker.dylib",
            "/Applications/Xcode.app/Contents/Developer/Platforms/iPhoneSimulator.platform/Developer/SDKs/iPhoneSimulator.sdk/usr/lib/dyld_sim",
            "/Library/Developer/CoreSimulator/Volumes/iOS_21A328/Library/Developer/CoreSimulator/Profiles/Runtimes/iOS 17.0.simruntime/Contents/Resources/RuntimeRoot/System/Library/Frameworks/UIKit.framework/UIKit",
        ] {
            assert!(rule_for(&*SYSTEM_PATHS, path).is_some(), "{path}");
        }
    }

    #[test]
    fn other_places_are_not() {
        for path in [
            "/private/var/containers/Bundle/Application/8B/Demo.app/Demo",
            "/Users/me/Library/Developer/CoreSimulator/Devices/8B/data/Containers/Bundle/Application/9C/Demo.app/Demo",
            "/Users/USER/*/Demo.app/Contents/MacOS/Demo",
            "/opt/homebrew/lib/libfoo.dylib",
            "/usr/local/lib/libfoo.dylib",
            "",
        ] {
            assert!(rule_for(&*SYSTEM_PATHS, path).is_none(), "{path}");
        }
        assert!(rule_for(&*INJECTED_PATHS, "/usr/lib/TweakInject/Foo.dylib").is_some());
    }

    #[test]
    fn the_outermost_bundle_counts() {
        assert_eq!(bundle_root("/a/Demo.app/PlugIns/X.appex/X"), Some("/a/Demo.app"));
        assert_eq!(bundle_root("/a/Demo.app/Watch/W.app/W"), Some("/a/Demo.app"));
        assert_eq!(bundle_root("/a/Tests.xctest/Contents/MacOS/Tests"), Some("/a/Tests.xctest"));
        assert_eq!(bundle_root("/a/my.apple/x"), None);
    }

    #[test]
    fn names_stand_in_for_paths() {
        assert!(is_system_name("libsystem_kernel.dylib") && is_system_name("com.apple.Foundation"));
        assert!(is_system_name("UIKit") && !is_system_name("UIKitPlus") && !is_system_name("Demo"));
    }
}
