//! Runtimes of languages whose code Apple's reports do not name.

/// A runtime.
pub(crate) struct Runtime {
    /// Its name, as a clause after "runs through".
    pub(crate) name: &'static str,
    /// Images that are it, as a whole or up to a dot.
    pub(crate) images: &'static [&'static str],
    /// What its functions begin with.
    pub(crate) functions: &'static [&'static str],
    /// How to get at the names of the code that it runs.
    pub(crate) next: &'static str,
}

/// The table; the first that fits counts. Sources: the names of the projects' libraries and exported functions (Mono
/// `mono/metadata`, Unity's IL2CPP `libil2cpp`, Flutter's engine, React Native's `React/Base` and Hermes, .NET's
/// `libcoreclr`, Xamarin's `xamarin-macios/runtime`).
pub(crate) static RUNTIMES: [Runtime; 6] = [
    Runtime {
        name: "Unity's engine (IL2CPP: C# compiled to C++)",
        images: &["UnityFramework", "GameAssembly", "UnityPlayer"],
        functions: &["il2cpp_", "il2cpp::", "UnityAppController", "-[UnityAppController", "UnityRepaint"],
        next: "Get the names of the C# methods from the symbols of UnityFramework of that build; a C# exception stands in Unity's own log.",
    },
    Runtime {
        name: "Xamarin's or .NET's bridge to Objective-C",
        images: &["libxamarin", "libxamarin-dotnet"],
        functions: &["xamarin_", "native_to_managed_trampoline_"],
        next: "Look for the managed exception and its stack in the device's log: the report shows the bridge only.",
    },
    Runtime {
        name: "Mono, which runs .NET code",
        images: &["libmonosgen-2", "libmono", "libmonoboehm-2", "Mono"],
        functions: &["mono_"],
        next: "Look for the managed exception and its stack in the app's log; code that Mono made at run time has no names here.",
    },
    Runtime {
        name: ".NET's runtime (CoreCLR)",
        images: &["libcoreclr", "libclrjit"],
        functions: &["coreclr_", "ProcessCLRException"],
        next: "Look for the managed exception and its stack in the app's log; code made at run time has no names here.",
    },
    Runtime {
        name: "Flutter's engine and the app's Dart code",
        images: &["Flutter", "FlutterMacOS"],
        functions: &["dart::", "Dart_", "fml::", "flutter::"],
        next: "Get the names of Dart functions with `flutter symbolize` and the build's debug info; a Dart exception stands in the app's log.",
    },
    Runtime {
        name: "React Native, which runs JavaScript",
        images: &["React", "hermes", "ReactNativeDependencies"],
        functions: &[
            "facebook::react::",
            "facebook::jsi::",
            "facebook::hermes::",
            "hermes::vm::",
            "RCTFatal",
            "-[RCT",
            "reactnative::",
        ],
        next: "Map JavaScript frames with the bundle's source map; an error of JavaScript stands in the exception's reason or in the app's log.",
    },
];
