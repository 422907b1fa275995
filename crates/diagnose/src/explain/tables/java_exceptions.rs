//! Exceptions of Java and Android, and what they stand for.
//!
//! Source: their documentation in the JDK and in Android's reference.

/// What to know of exceptions that are common.
pub(in crate::explain) const EXCEPTIONS: [(&str, &str); 34] = [
    (
        "java.lang.NullPointerException",
        "A method was called on, or a field read of, a reference that is null.",
    ),
    (
        "java.lang.OutOfMemoryError",
        "No memory was left on the Java heap, for a thread, or for a bitmap. The stack shows who asked last, which is often not who holds the memory.",
    ),
    ("java.lang.StackOverflowError", "The stack of the thread is used up: a recursion without an end."),
    ("java.lang.ClassCastException", "An object is of another class than the code takes it for."),
    ("java.lang.IllegalStateException", "A call came at a time when the object does not allow it."),
    ("java.lang.IllegalArgumentException", "An argument has a value that the method does not take."),
    ("java.lang.IndexOutOfBoundsException", "An index lies outside of the list or array."),
    ("java.lang.ArrayIndexOutOfBoundsException", "An index lies outside of the array."),
    (
        "java.lang.UnsatisfiedLinkError",
        "A native library or method was not found: not packaged for this processor, or renamed.",
    ),
    ("java.lang.NoClassDefFoundError", "A class is missing at run time: shrunk away, or not packaged."),
    (
        "java.lang.NoSuchMethodError",
        "A method is missing at run time: shrunk away, or of another version of the library.",
    ),
    (
        "java.lang.ExceptionInInitializerError",
        "The static initialiser of a class failed; the cause says why, and the class cannot be used any more.",
    ),
    ("java.lang.SecurityException", "A permission is missing."),
    (
        "java.util.ConcurrentModificationException",
        "A collection was changed while it was iterated, by the loop itself or by another thread.",
    ),
    ("android.os.NetworkOnMainThreadException", "The network was used on the main thread."),
    (
        "android.os.TransactionTooLargeException",
        "More was sent to another process at once than the limit of about 1 MB.",
    ),
    ("android.os.DeadObjectException", "The process that was called is gone."),
    (
        "android.os.DeadSystemException",
        "The system's own process is gone: the device is about to restart. No app does that.",
    ),
    (
        "android.os.FileUriExposedException",
        "A file: address was handed to another app, which Android allows no more: a content provider has to hand it out.",
    ),
    (
        "android.view.WindowManager$BadTokenException",
        "A window or dialogue was to be shown for an activity that is gone or not there yet, or without the permission to draw over others.",
    ),
    (
        "android.view.ViewRootImpl$CalledFromWrongThreadException",
        "A view was touched on another thread than the one that made it.",
    ),
    (
        "android.view.InflateException",
        "A layout could not be built: a view's class is missing or its constructor failed; the cause says which.",
    ),
    (
        "android.content.res.Resources$NotFoundException",
        "No resource has that id in this configuration, or a number was taken for one.",
    ),
    (
        "android.content.ActivityNotFoundException",
        "No app on the device answers that intent, or an activity is not in the manifest.",
    ),
    (
        "android.app.BackgroundServiceStartNotAllowedException",
        "A service was started while the app was in the background.",
    ),
    (
        "android.app.ForegroundServiceStartNotAllowedException",
        "A foreground service was started while the app was in the background, which Android 12 allows no more but for exceptions.",
    ),
    (
        "android.app.MissingForegroundServiceTypeException",
        "A foreground service has no type in the manifest, which Android 14 asks for.",
    ),
    (
        "android.app.RemoteServiceException",
        "The system ended the app for what it did with a service or a notification; the message says what.",
    ),
    (
        "android.app.RemoteServiceException$ForegroundServiceDidNotStartInTimeException",
        "A service was started as one in the foreground, and did not call startForeground in time.",
    ),
    (
        "android.app.RemoteServiceException$BadForegroundServiceNotificationException",
        "The notification of a foreground service is broken, or its channel is missing.",
    ),
    (
        "android.app.RemoteServiceException$CannotDeliverBroadcastException",
        "The app did not take the system's messages in time: its process was stuck or frozen.",
    ),
    (
        "android.database.CursorWindowAllocationException",
        "No memory was left for the rows of a query: cursors that are not closed, mostly.",
    ),
    ("android.database.sqlite.SQLiteFullException", "The device has no room left for the database."),
    (
        "java.lang.IncompatibleClassChangeError",
        "A class is another than the one that this code was built with: of another version of a library, or changed by the shrinker.",
    ),
];

/// Messages of libraries that say more than their class: what they begin with, and what is behind it.
pub(in crate::explain) const SAID_BY_LIBRARIES: [(&str, &str); 5] = [
    // Android's ContextImpl.startServiceCommon; "Background Execution Limits" of Android 8.
    (
        "Not allowed to start service",
        "A service was started while the app was in the background, which Android 8 and later forbid: the app had gone there, or was woken by an event that gives it no turn.",
    ),
    // ForegroundServiceStartNotAllowedException of Android 12.
    (
        "startForegroundService() not allowed due to mAllowStartForeground false",
        "A foreground service was started while the app was in the background, which Android 12 and later forbid.",
    ),
    // kotlinx.coroutines, "Module with the Main dispatcher is missing", and its page on R8.
    (
        "Module with the Main dispatcher is missing",
        "The library kotlinx-coroutines-android is not in the app, is of another version than kotlinx-coroutines-core, or the shrinker took away the class that it is found by.",
    ),
    // androidx.fragment's and the framework's FragmentManager.
    (
        "Can not perform this action after onSaveInstanceState",
        "Fragments were changed when the activity had saved its state already: an answer that came late, mostly.",
    ),
    // firebase-common's FirebaseApp.getInstance.
    (
        "Default FirebaseApp is not initialized in this process",
        "Firebase was used before it was set up in this process: a content provider that was taken out, or a process of its own.",
    ),
];
