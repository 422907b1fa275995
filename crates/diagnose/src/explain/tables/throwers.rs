//! Methods of the system that throw, by which the stack of a throw tells the reason that a report lacks.

/// Methods that throw for the same reason.
pub(crate) struct Thrower {
    /// Selectors of methods that throw, whatever class of a cluster they are of (`objectAtIndex:` of `__NSArrayM`).
    pub(crate) selectors: &'static [&'static str],
    /// What the class's name has to hold; empty for any class.
    pub(crate) class: &'static str,
    /// Functions, as a whole.
    pub(crate) functions: &'static [&'static str],
    /// The name that the exception has; empty where it varies.
    pub(crate) exception: &'static str,
    /// What happened, as the end of a title.
    pub(crate) title: &'static str,
    /// What happened, as a sentence.
    pub(crate) meaning: &'static str,
    /// Usual causes.
    pub(crate) causes: &'static [&'static str],
    /// What to do.
    pub(crate) next: &'static [&'static str],
}

const INVALID_ARGUMENT: &str = "NSInvalidArgumentException";
const RANGE: &str = "NSRangeException";
const INCONSISTENCY: &str = "NSInternalInconsistencyException";
const MAIN_CHECKER: &str = "Run with the Main Thread Checker on; it stops at the first such call.";

/// The table; the first that fits counts, so the more telling ones stand first. Source: the classes' documentation,
/// which names the exceptions; the stacks of `CrashProbe`'s and others' reports for how they look.
pub(crate) static THROWERS: [Thrower; 21] = [
    Thrower {
        selectors: &["doesNotRecognizeSelector:"],
        class: "",
        functions: &[],
        exception: INVALID_ARGUMENT,
        title: "a message that the object does not know (unrecognized selector)",
        meaning: "An object got a message that its class does not know.",
        causes: &[
            "The object is not of the class that the code expects: decoded JSON (NSNull, a number for a string), a wrong cast, a wrong outlet.",
            "The object was released and its memory reused by another one.",
        ],
        next: &["See what object the named line passes on, and of which class it is."],
    },
    Thrower {
        selectors: &[
            "initWithObjects:forKeys:count:",
            "initWithObjects:count:",
            "dictionaryWithObjects:forKeys:count:",
            "setObject:forKey:",
            "setObject:forKeyedSubscript:",
            "addObject:",
            "removeObjectForKey:",
        ],
        class: "",
        functions: &[],
        exception: INVALID_ARGUMENT,
        title: "nil put into a container",
        meaning: "nil was put into a container that takes none, or is its key.",
        causes: &["A value that is missing: absent in JSON, a failed conversion, an unset property."],
        next: &["Check each value and key of the named line before it is inserted."],
    },
    Thrower {
        selectors: &["insertObject:atIndex:", "setObject:atIndex:", "setObject:atIndexedSubscript:"],
        class: "",
        functions: &[],
        exception: "",
        title: "nil, or an index beyond the end, put into an array",
        meaning: "nil was put into an array, or at a place beyond its end; the report does not tell which.",
        causes: &[
            "A value that is missing.",
            "An array that is shorter than expected, or changed on another thread.",
        ],
        next: &["Check value and index of the named line."],
    },
    Thrower {
        selectors: &[
            "objectAtIndex:",
            "objectAtIndexedSubscript:",
            "removeObjectAtIndex:",
            "removeObjectsInRange:",
            "replaceObjectAtIndex:withObject:",
            "exchangeObjectAtIndex:withObjectAtIndex:",
            "subarrayWithRange:",
            "getObjects:range:",
        ],
        class: "",
        functions: &["_NSArrayRaiseBoundException", "__boundsFail"],
        exception: RANGE,
        title: "an index beyond the bounds of an array",
        meaning: "An index lay outside of the array.",
        causes: &[
            "The array changed between counting and reading, or on another thread.",
            "An off-by-one, or an empty array that was not expected.",
        ],
        next: &["Check the index of the named line against the count."],
    },
    Thrower {
        selectors: &[
            "substringWithRange:",
            "substringFromIndex:",
            "substringToIndex:",
            "characterAtIndex:",
            "getCharacters:range:",
            "replaceCharactersInRange:withString:",
            "deleteCharactersInRange:",
            "insertString:atIndex:",
            "attributesAtIndex:effectiveRange:",
            "attribute:atIndex:effectiveRange:",
            "addAttribute:value:range:",
            "setAttributes:range:",
            "attributedSubstringFromRange:",
            "subdataWithRange:",
            "getBytes:range:",
        ],
        class: "",
        functions: &[],
        exception: RANGE,
        title: "a range beyond the end of a text or of data",
        meaning: "A range or index lay outside of the text or data.",
        causes: &[
            "A range of another or an older text, or one counted in other units (UTF-16 against characters).",
        ],
        next: &["Check the range of the named line against the length."],
    },
    Thrower {
        selectors: &[
            "stringByAppendingString:",
            "initWithString:",
            "initWithString:attributes:",
            "appendString:",
            "initFileURLWithPath:",
            "fileURLWithPath:",
        ],
        class: "",
        functions: &[],
        exception: INVALID_ARGUMENT,
        title: "a nil argument",
        meaning: "A method got nil for an argument that must be set.",
        causes: &["A value that is missing."],
        next: &["Check the argument in the named line."],
    },
    Thrower {
        selectors: &["valueForUndefinedKey:", "setValue:forUndefinedKey:", "setNilValueForKey:"],
        class: "",
        functions: &[],
        exception: "NSUnknownKeyException",
        title: "a key that the object does not have (key-value coding)",
        meaning: "A key was set or read that the object does not have.",
        causes: &[
            "An outlet in a storyboard or XIB that no longer exists in the class.",
            "A key path with a typing error.",
        ],
        next: &["Look for the key in storyboards, XIBs and key paths."],
    },
    Thrower {
        selectors: &[
            "removeObserver:forKeyPath:",
            "removeObserver:forKeyPath:context:",
            "_removeObserver:forProperty:",
            "observeValueForKeyPath:ofObject:change:context:",
        ],
        class: "",
        functions: &["NSKVODeallocate", "NSKVODeallocateBreak"],
        exception: "",
        title: "an observer that does not fit (key-value observing)",
        meaning: "An observer was removed that was not there, was left on an object that is gone, or got a notification that it does not handle.",
        causes: &[
            "Adding and removing the observer are not paired: removed twice, or not before the object goes.",
        ],
        next: &["Pair adding and removing, or use block-based observation, which ends by itself."],
    },
    Thrower {
        selectors: &[
            "_endCellAnimationsWithContext:",
            "_endItemAnimationsWithInvalidationContext:tentativelyForReordering:animator:collectionViewAnimator:",
            "_Bug_Detected_In_Client_Of_UITableView_Invalid_Number_Of_Rows_In_Section:",
            "_Bug_Detected_In_Client_Of_UICollectionView_Invalid_Number_Of_Items_In_Section:",
        ],
        class: "",
        functions: &[],
        exception: INCONSISTENCY,
        title: "changes of a table or collection view that do not fit its data",
        meaning: "A table or collection view was told of changes that do not fit its data.",
        causes: &["The data source changed in between, or the inserts and deletes were counted wrong."],
        next: &[
            "Use a diffable data source, or reload; change data and view in one step on the main thread.",
        ],
    },
    Thrower {
        selectors: &[
            "dequeueReusableCellWithIdentifier:forIndexPath:",
            "_dequeueReusableCellWithIdentifier:forIndexPath:usingPresentationValues:",
            "_dequeueReusableViewOfKind:withIdentifier:forIndexPath:viewCategory:",
            "dequeueReusableCellWithReuseIdentifier:forIndexPath:",
        ],
        class: "",
        functions: &[],
        exception: INCONSISTENCY,
        title: "a cell whose identifier is not registered",
        meaning: "A cell was asked for whose identifier is not registered.",
        causes: &["A typing error, or the cell was not registered with the view."],
        next: &["Compare the identifier with storyboard and code."],
    },
    Thrower {
        selectors: &[
            "instantiateViewControllerWithIdentifier:",
            "instantiateViewControllerWithIdentifier:creator:",
            "storyboardWithName:bundle:",
            "performSegueWithIdentifier:sender:",
            "instantiateWithOwner:options:",
        ],
        class: "",
        functions: &[],
        exception: "",
        title: "a storyboard, controller or segue that does not exist",
        meaning: "Something was asked of a storyboard or XIB that it does not have.",
        causes: &["A typing error in an identifier, or a file that is not in the target."],
        next: &["Compare the identifier with the storyboard, and check the file's target membership."],
    },
    Thrower {
        selectors: &[
            "presentViewController:animated:completion:",
            "_presentViewController:withAnimationController:completion:",
            "_presentViewController:animated:completion:",
            "pushViewController:animated:",
            "pushViewController:transition:forceImmediate:",
        ],
        class: "",
        functions: &[],
        exception: INVALID_ARGUMENT,
        title: "a view controller presented or pushed in a wrong state",
        meaning: "A view controller was presented or pushed that is nil, or on screen already.",
        causes: &["Two presentations at once, often by a double tap."],
        next: &["Guard the presentation against a second call."],
    },
    Thrower {
        selectors: &[
            "performTransactionUsingBlock:",
            "_postWindowNeedsUpdateConstraints",
            "_optimizeWithoutRebuilding",
            "_postWindowNeedsToResetDragMarginsUnlessPostingDisabled",
        ],
        class: "",
        functions: &[
            "_AssertAutoLayoutOnAllowedThreadsOnly",
            "_NSAssertMainEventQueueIsCurrentEventQueue",
            "_UIAssertMainThread",
            "NSAssertMainThread",
        ],
        exception: INCONSISTENCY,
        title: "the interface used off the main thread",
        meaning: "The interface was used off the main thread.",
        causes: &["A completion handler that touches views on a background queue."],
        next: &[MAIN_CHECKER],
    },
    Thrower {
        selectors: &[],
        class: "",
        functions: &["__NSFastEnumerationMutationHandler", "objc_enumerationMutation"],
        exception: "NSGenericException",
        title: "a collection changed while a loop ran over it",
        meaning: "A collection was changed while a loop ran over it.",
        causes: &["The loop's body changes the collection.", "Another thread changes it."],
        next: &["Loop over a copy; keep one queue for all changes."],
    },
    Thrower {
        selectors: &["dataWithJSONObject:options:error:"],
        class: "",
        functions: &[],
        exception: INVALID_ARGUMENT,
        title: "an object that JSON has no form for",
        meaning: "An object was given to the JSON writer that JSON has no form for.",
        causes: &["A date, a URL or another object in the dictionary."],
        next: &["Convert it first; ask isValidJSONObject."],
    },
    Thrower {
        selectors: &[
            "writeData:",
            "readDataOfLength:",
            "seekToEndOfFile",
            "seekToFileOffset:",
            "synchronizeFile",
        ],
        class: "FileHandle",
        functions: &[],
        exception: "NSFileHandleOperationException",
        title: "a file handle that failed",
        meaning: "Reading or writing by a file handle failed: it was closed, the file is gone, or the disk is full.",
        causes: &[
            "A handle that is used after it was closed.",
            "A full disk, or a pipe whose other end is closed.",
        ],
        next: &["Use the methods that return an error instead of throwing."],
    },
    Thrower {
        selectors: &["setPosition:", "setBounds:", "setFrame:"],
        class: "CALayer",
        functions: &["CA::Layer::set_position", "CA::Layer::set_bounds"],
        exception: "CALayerInvalidGeometry",
        title: "a position or size that is no number",
        meaning: "A layer got a position or size that is not a number.",
        causes: &["A division by zero in the layout."],
        next: &["Look for 0/0 in the code that computes the frame or position."],
    },
    Thrower {
        selectors: &[
            "save:",
            "executeFetchRequest:error:",
            "_processRecentChanges:",
            "existingObjectWithID:error:",
            "mergeChangesFromContextDidSaveNotification:",
        ],
        class: "NSManagedObjectContext",
        functions: &["_sharedIMPL_pvfk_core", "_PFFaultHandlerLookupRow"],
        exception: "",
        title: "Core Data misused",
        meaning: "Core Data refused an operation: an object that is deleted, or of another context or thread.",
        causes: &["Managed objects that cross contexts or threads, or are used after they were deleted."],
        next: &["Run with -com.apple.CoreData.ConcurrencyDebug 1."],
    },
    Thrower {
        // RCTFatal's last call does not return, so that its frame may bear the next function's name.
        selectors: &[
            "reportFatalException:stack:exceptionId:",
            "reportFatal:stack:exceptionId:extraDataAsJSON:",
            "handleError:",
        ],
        class: "RCT",
        functions: &["RCTFatal"],
        exception: "RCTFatalException",
        title: "an error that React Native was told of, mostly one of JavaScript that nobody caught",
        meaning: "A fatal error reached React Native's bridge, which ends the app of a release build; RCTFatal only passes it on.",
        causes: &["An exception in the app's JavaScript, or in a native module that reports one."],
        next: &[
            "The JavaScript stack is not in this report: see the log, or what the JavaScript error handler recorded, and its source map.",
        ],
    },
    Thrower {
        selectors: &[],
        class: "",
        functions: &["xamarin_process_managed_exception", "xamarin_process_managed_exception_gchandle"],
        exception: "",
        title: "a .NET exception that managed code did not catch",
        meaning: "A managed exception reached the border to Objective-C, where .NET's runtime raised it as an Objective-C one.",
        causes: &[
            "An exception in a managed method that the system calls (an event handler, a delegate, startup code).",
        ],
        next: &[
            "Look in the device's log for the managed exception's type, message and stack: the exception's reason has them.",
        ],
    },
    Thrower {
        selectors: &[
            "handleFailureInMethod:object:file:lineNumber:description:",
            "handleFailureInFunction:file:lineNumber:description:",
        ],
        class: "",
        functions: &[],
        exception: INCONSISTENCY,
        title: "a failed assertion (NSAssert)",
        meaning: "An assertion of a framework or of the app failed.",
        causes: &["A method called in a state, on a thread or with an argument that it does not allow."],
        next: &["Look at the method right below NSAssertionHandler: it made the check."],
    },
];

/// `class` and `selector` of `-[class(category) selector]`.
pub(crate) fn method(name: &str) -> Option<(&str, &str)> {
    let inside = name.strip_prefix("-[").or_else(|| name.strip_prefix("+["))?;
    let (class, selector) = inside.split_once(' ')?;
    Some((class, selector.split(']').next()?))
}

impl Thrower {
    /// Whether it raises what another language's runtime told it of.
    pub(crate) fn is_bridge(&self) -> bool {
        self.functions.iter().any(|name| matches!(*name, "RCTFatal" | "xamarin_process_managed_exception"))
    }

    /// Whether it throws for a message that its receiver does not know.
    pub(crate) fn is_unknown_message(&self) -> bool {
        self.selectors.contains(&"doesNotRecognizeSelector:")
    }

    /// Whether the function of that name is one of these.
    pub(crate) fn is(&self, name: &str) -> bool {
        let is_method = |(class, selector): (&str, &str)| {
            self.selectors.contains(&selector) && (self.class.is_empty() || class.contains(self.class))
        };
        self.functions.contains(&name) || method(name).is_some_and(is_method)
    }
}
