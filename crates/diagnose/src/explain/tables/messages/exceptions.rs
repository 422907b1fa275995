//! Exceptions of Objective-C and C++.

use super::{Hint, hint};

const MAIN_CHECKER: &str = "Run with the Main Thread Checker on; it stops at the first such call.";

/// Reasons of Objective-C exceptions.
pub(crate) static REASONS: [Hint; 34] = [
    // Metal's words for a command buffer of an app in the background.
    hint(
        "to submit GPU work from background",
        "Work was given to the GPU while the app was in the background, which iOS does not permit; the library threw for it.",
        &["A computation or a render loop on the GPU that runs on after the app left the foreground."],
        &[
            "Stop work on the GPU before the app goes to the background, or ask for it by a background task that may use the GPU (iOS 26).",
        ],
    ),
    hint(
        "Unhandled JS Exception",
        "A JavaScript error reached React Native's bridge, which ends the app of a release build.",
        &["An exception in the app's JavaScript; the reason has its text and its JavaScript stack."],
        &["Map the JavaScript stack in the reason with the bundle's source map."],
    ),
    hint(
        "message sent to deallocated instance",
        "A released object was used; the zombie that took its place tells which.",
        &["An object is kept by an unowned or unsafe reference, or was released once too often."],
        &["Look at who releases objects of that class, with the Zombies instrument."],
    ),
    hint(
        "unrecognized selector sent to instance",
        "An object got a message that its class does not know.",
        &[
            "The object is not of the class that the code expects: decoded JSON (NSNull, a number for a string), a wrong cast, a wrong outlet.",
            "The object was released and its memory reused by another one.",
            "A category was not linked (-ObjC missing), or the method is newer than the system.",
        ],
        &[
            "Look at the class in the reason: is it the one that the code expects? If it is unrelated, run with Zombie Objects on.",
        ],
    ),
    hint(
        "unrecognized selector sent to class",
        "A class got a message that it does not know.",
        &[
            "A category or class extension was not linked (-ObjC missing), or the method is newer than the system.",
        ],
        &["Check the linker flags of static libraries and the method's availability."],
    ),
    hint(
        "beyond bounds",
        "An index lay outside of the container.",
        &[
            "The container changed between counting and reading, or on another thread.",
            "An off-by-one, or an empty container that was not expected.",
        ],
        &["Check the index against the count at the frame where it was thrown."],
    ),
    hint(
        "out of bounds",
        "An index or range lay outside of what exists.",
        &[
            "The data changed between counting and reading.",
            "An off-by-one, or emptiness that was not expected.",
        ],
        &["Check the index or range against the length at the frame where it was thrown."],
    ),
    hint(
        "attempt to insert nil",
        "nil was put into a container that takes none.",
        &["A value that is missing: absent in JSON, a failed conversion, an unset property."],
        &["Check the value before it is inserted; use NSNull or leave the key out."],
    ),
    hint(
        "object cannot be nil",
        "nil was put into a container that takes none.",
        &["A value that is missing."],
        &["Check the value before it is inserted."],
    ),
    hint(
        "was mutated while being enumerated",
        "A collection was changed while a loop ran over it.",
        &["The loop's body changes the collection.", "Another thread changes it."],
        &["Loop over a copy; keep one queue for all changes."],
    ),
    hint(
        "Invalid batch updates",
        "A table or collection view was told of changes that do not fit its data.",
        &["The data source changed in between, or the inserts and deletes were counted wrong."],
        &["Compare the counts in the reason; use a diffable data source, or reload."],
    ),
    hint(
        "Invalid update",
        "A table or collection view was told of changes that do not fit its data.",
        &["The data source changed in between, or the inserts and deletes were counted wrong."],
        &["Compare the counts in the reason; use a diffable data source, or reload."],
    ),
    hint(
        "not key value coding-compliant",
        "A key was set or read that the object does not have.",
        &[
            "An outlet in a storyboard or XIB that no longer exists in the class.",
            "A key path with a typing error.",
        ],
        &["Look for the key of the reason in storyboards, XIBs and key paths."],
    ),
    hint(
        "Modifications to the layout engine must not be performed from a background thread",
        "The interface was changed off the main thread.",
        &["A completion handler that touches views on a background queue."],
        &[MAIN_CHECKER],
    ),
    hint(
        "must be used from main thread only",
        "The interface was used off the main thread.",
        &["A completion handler on a background queue."],
        &[MAIN_CHECKER],
    ),
    hint(
        "from a background thread",
        "The interface was used off the main thread.",
        &["A completion handler on a background queue."],
        &[MAIN_CHECKER],
    ),
    hint(
        "Only run on the main thread",
        "Code for the main thread ran elsewhere.",
        &["A completion handler on a background queue."],
        &[MAIN_CHECKER],
    ),
    hint(
        "NSWindow should only be instantiated on the main thread",
        "The interface was used off the main thread.",
        &["A completion handler on a background queue."],
        &[MAIN_CHECKER],
    ),
    hint(
        "was deallocated while key value observers",
        "An object was released while somebody still observed it.",
        &["An observer (KVO) that is not removed before the observed object goes."],
        &["Remove the observer in time, or use block-based observation that ends by itself."],
    ),
    hint(
        "not registered as an observer",
        "An observer was removed that was not there.",
        &["Removed twice, or for another key path or object."],
        &["Pair adding and removing; use block-based observation."],
    ),
    hint(
        "with identifier",
        "An identifier has no registered cell, segue or controller.",
        &["A typing error, or the cell or identifier was not registered."],
        &["Compare the identifier in the reason with storyboard and code."],
    ),
    hint(
        "Could not load NIB in bundle",
        "An interface file was not found.",
        &["The file's name is wrong, or it is not in the target or bundle."],
        &["Check the target membership of the file."],
    ),
    hint(
        "Could not find a storyboard",
        "A storyboard was not found.",
        &["Its name is wrong, or it is not in the target or bundle."],
        &["Check the target membership of the file."],
    ),
    hint(
        "already presenting",
        "A view controller was presented that is already on screen.",
        &["Two presentations at once, often by a double tap."],
        &["Guard the presentation against a second call."],
    ),
    hint(
        "Application tried to present modally",
        "A view controller was presented that is already on screen.",
        &["Two presentations at once, often by a double tap."],
        &["Guard the presentation against a second call."],
    ),
    hint(
        "The model used to open the store is incompatible",
        "The database on the device was written with another model.",
        &["The Core Data model changed without a migration."],
        &["Add a model version and a mapping, or lightweight migration."],
    ),
    hint(
        "Illegal attempt to establish a relationship",
        "Objects of different Core Data contexts were joined.",
        &["Managed objects were passed between threads or contexts."],
        &["Pass object ids; fetch the object in the other context."],
    ),
    hint(
        "CoreData could not fulfill a fault",
        "A Core Data object was used after it had been deleted.",
        &["The object was deleted in another context while this one kept it."],
        &["Check isDeleted and managedObjectContext; merge changes between contexts."],
    ),
    hint(
        "__Multithreading_Violation_AllThatIsLeftToUsIsHonor__",
        "A managed object context was used on the wrong queue.",
        &["Core Data objects crossed threads."],
        &["Wrap the access in perform; run with -com.apple.CoreData.ConcurrencyDebug 1."],
    ),
    hint(
        "Invalid type in JSON write",
        "An object was given to the JSON writer that JSON has no form for.",
        &["A date, a URL or another object in the dictionary."],
        &["Convert it first; ask isValidJSONObject."],
    ),
    hint(
        "contains NaN",
        "A coordinate or size is not a number.",
        &["A division by zero in the layout."],
        &["Look for 0/0 in the code that computes the frame or position."],
    ),
    hint(
        "Invalid parameter not satisfying",
        "A system method got an argument that it does not take.",
        &["nil or an empty value for an argument that must be set."],
        &["Look up the named parameter at the frame where it was thrown."],
    ),
    hint(
        "nil argument",
        "A method got nil for an argument that must be set.",
        &["A value that is missing."],
        &["Check the value before the call."],
    ),
    hint(
        "mutex lock failed",
        "A mutex could not be locked: it is none any more, or the thread that asks holds it already.",
        &[
            "The object that holds the mutex was destroyed before the one that locks it: objects that are destroyed in another order, or one that another thread uses to the end (Invalid argument).",
            "The thread holds the mutex already (Resource deadlock avoided).",
        ],
        &["Look whose mutex the frame above locks, and who may have destroyed that object."],
    ),
];

/// Names of Objective-C exceptions.
pub(crate) static EXCEPTION_NAMES: [(&str, &str); 20] = [
    (
        "NSInvalidArgumentException",
        "a method was given an argument that it does not accept, or an object a message that it does not know",
    ),
    ("NSRangeException", "an index or range lay outside of what exists"),
    (
        "NSInternalInconsistencyException",
        "an assertion of a framework or of the app failed: something was used in a way that it does not allow",
    ),
    ("NSGenericException", "a library or the app raised a general exception"),
    ("NSMallocException", "memory could not be allocated"),
    ("NSUnknownKeyException", "a key was used that the object does not have"),
    ("NSUndefinedKeyException", "a key was used that the object does not have"),
    ("NSObjectInaccessibleException", "a Core Data object could not be loaded any more"),
    ("NSObjectNotAvailableException", "an object is not available"),
    ("NSDestinationInvalidException", "the receiver of a message is not valid any more"),
    ("NSInvalidUnarchiveOperationException", "archived data could not be read back"),
    ("NSInvalidArchiveOperationException", "an object could not be archived"),
    ("NSFileHandleOperationException", "a file handle failed: closed, or the file is gone"),
    ("NSDecimalNumberOverflowException", "a decimal number became too large"),
    ("NSDecimalNumberDivideByZeroException", "a decimal number was divided by zero"),
    ("NSPortTimeoutException", "another process did not answer in time"),
    ("NSParseErrorException", "a text could not be parsed"),
    (
        "UIViewControllerHierarchyInconsistency",
        "a view was put under a controller that it does not belong to",
    ),
    ("CALayerInvalidGeometry", "a layer got a position or size that is no number"),
    ("_NSCoreDataOptimisticLockingException", "Core Data objects changed in two places"),
];

/// Types of C++ exceptions.
pub(crate) static CPP_TYPES: [Hint; 14] = [
    hint(
        "std::bad_alloc",
        "Memory could not be allocated.",
        &["A size that is wrong (negative, or not checked), or memory that ran out."],
        &["Look at the size that is asked for at the frame where it was thrown."],
    ),
    hint(
        "std::out_of_range",
        "An index or key does not exist in the container.",
        &["at() with an index or key that is not there, or a number too large for its type."],
        &["Check the index at the frame where it was thrown."],
    ),
    hint(
        "std::length_error",
        "A container was asked to become larger than possible.",
        &["A negative or garbage size."],
        &["Look at the size at the frame where it was thrown."],
    ),
    hint(
        "std::invalid_argument",
        "An argument is not valid, often a text that is no number.",
        &["std::stoi and the like on unchecked text."],
        &["Check the text before converting it."],
    ),
    hint(
        "std::bad_function_call",
        "An empty std::function was called.",
        &["A callback that was never set, or was moved away."],
        &["Check the function before the call."],
    ),
    hint(
        "std::bad_optional_access",
        "The value of an empty std::optional was read.",
        &["A value that is missing."],
        &["Check has_value() first."],
    ),
    hint(
        "std::bad_variant_access",
        "A std::variant was read as a type that it does not hold.",
        &["An alternative that was not expected."],
        &["Use std::visit or get_if."],
    ),
    hint(
        "std::bad_weak_ptr",
        "shared_from_this was called on an object that no shared_ptr owns.",
        &["A call in the constructor or destructor."],
        &["Make sure that a shared_ptr owns the object first."],
    ),
    hint(
        "std::bad_cast",
        "A dynamic_cast to a reference failed.",
        &["The object is of another type."],
        &["Use a pointer cast and check it."],
    ),
    hint(
        "std::__1::system_error",
        "The operating system refused something.",
        &["A thread that joins itself or is joined twice; a lock misused; a resource that ran out."],
        &["Read the text for the error."],
    ),
    hint(
        "std::system_error",
        "The operating system refused something.",
        &["A thread that joins itself or is joined twice; a lock misused; a resource that ran out."],
        &["Read the text for the error."],
    ),
    hint(
        "std::logic_error",
        "A library's precondition was not met.",
        &["Often a std::string made from a null pointer."],
        &["Look at the frame where it was thrown."],
    ),
    hint(
        "std::runtime_error",
        "A library or the app reported an error that nobody handled.",
        &["An error that the code does not catch."],
        &["Catch it where it can be handled, or keep it from leaving noexcept functions and callbacks."],
    ),
    hint(
        "NSException",
        "An Objective-C exception came through C++ code.",
        &[],
        &["Look for the exception's name and reason in the device's log."],
    ),
];
