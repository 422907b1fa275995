//! Wordings: nodes that print as a fixed text around their children.

/// Declares [`Phrase`] and the text of each; `$0` to `$9` in it stand for the children.
macro_rules! phrases {
    ($($name:ident = $text:literal,)*) => {
        /// A fixed wording.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub(super) enum Phrase { $($name,)* }

        const TEXTS: &[&str] = &[$($text,)*];

        const FIRST_CHILDREN: &[usize] = &[$(first_child($text),)*];
    };
}

/// Where the first `$` is; past the end if there is none.
const fn first_child(text: &str) -> usize {
    let mut rest = text.as_bytes();
    while let [byte, after @ ..] = rest {
        if *byte == b'$' {
            break;
        }
        rest = after;
    }
    text.len() - rest.len()
}

phrases! {
    // Entities and what is said of them.
    CurryThunk = "curry thunk of $0",
    IdentityThunk = "identity thunk of $0",
    DispatchThunk = "dispatch thunk of $0",
    MethodDescriptor = "method descriptor for $0",
    EnumCase = "enum case for $0",
    DirectFieldOffset = "direct field offset for $0",
    IndirectFieldOffset = "indirect field offset for $0",
    PropertyDescriptor = "property descriptor for $0",
    VTableThunk = "vtable thunk for $1 dispatching to $0",
    ProtocolWitness = "protocol witness for $1 in conformance $0",
    SelfConformanceWitness = "protocol self-conformance witness for $0",
    ThunkWithGlobalActor = "$0 with global actor constraint $1",
    CoroutinePrototype = "coroutine continuation prototype for $0",

    // Type metadata.
    TypeMetadata = "type metadata for $0",
    FullTypeMetadata = "full type metadata for $0",
    MetadataAccessor = "type metadata accessor for $0",
    CanonicalAccessor = "canonical specialized generic type metadata accessor for $0",
    CanonicalMetaclass = "specialized generic metaclass for $0",
    CanonicalOnceToken = "flag for loading of canonical specialized generic type metadata for $0",
    DemanglingCache = "demangling cache variable for type metadata for $0",
    DemanglingReference = "mangled name reference for type metadata for $0",
    InstantiationFunction = "type metadata instantiation function for $0",
    InstantiationCache = "type metadata instantiation cache for $0",
    AnyInstantiationCache = "metadata instantiation cache for $0",
    SingletonCache = "type metadata singleton initialization cache for $0",
    CompletionFunction = "type metadata completion function for $0",
    LazyCache = "lazy cache variable for type metadata for $0",
    MetadataPattern = "generic type metadata pattern for $0",
    NoncanonicalMetadata = "noncanonical specialized generic type metadata for $0",
    NoncanonicalCache = "cache variable for noncanonical specialized generic type metadata for $0",
    Metaclass = "metaclass for $0",
    NominalDescriptor = "nominal type descriptor for $0",
    NominalRecord = "nominal type descriptor runtime record for $0",
    ClassMetadataBaseOffset = "class metadata base offset for $0",
    MethodLookup = "method lookup function for $0",
    ObjCMetadataUpdate = "ObjC metadata update function for $0",
    ObjCResilientStub = "ObjC resilient class stub for $0",
    FullObjCResilientStub = "full ObjC resilient class stub for $0",
    Uniquable = "uniquable $0",
    ValueWitnessTable = "value witness table for $0",

    // Reflection and context descriptors.
    ReflectionAssociatedTypes = "reflection metadata associated type descriptor $0",
    ReflectionBuiltin = "reflection metadata builtin descriptor $0",
    ReflectionFields = "reflection metadata field descriptor $0",
    ReflectionSuperclass = "reflection metadata superclass descriptor $0",
    ModuleDescriptor = "module descriptor $0",
    ExtensionDescriptor = "extension descriptor $0",
    AnonymousDescriptor = "anonymous descriptor $0",
    AssociatedTypeParam = "generic parameter reference for associated type $0$1",

    // Opaque types.
    OpaqueDescriptor = "opaque type descriptor for $0",
    OpaqueRecord = "opaque type descriptor runtime record for $0",
    OpaqueAccessor = "opaque type descriptor accessor for $0",
    OpaqueAccessorImpl = "opaque type descriptor accessor impl for $0",
    OpaqueAccessorKey = "opaque type descriptor accessor key for $0",
    OpaqueAccessorVar = "opaque type descriptor accessor var for $0",

    // Protocols, conformances, witness tables.
    ProtocolDescriptor = "protocol descriptor for $0",
    ProtocolRecord = "protocol descriptor runtime record for $0",
    RequirementsBase = "protocol requirements base descriptor for $0",
    SelfConformanceDescriptor = "protocol self-conformance descriptor for $0",
    SelfConformanceTable = "protocol self-conformance witness table for $0",
    ConformanceDescriptor = "protocol conformance descriptor for $0",
    ConformanceRecord = "protocol conformance descriptor runtime record for $0",
    WitnessTableOffset = "witness table offset for $0",
    WitnessTable = "protocol witness table for $0",
    WitnessTablePattern = "protocol witness table pattern for $0",
    WitnessTableAccessor = "protocol witness table accessor for $0",
    GenericWitnessTable = "generic protocol witness table for $0",
    GenericWitnessTableInstantiation = "instantiation function for generic protocol witness table for $0",
    ResilientWitnessTable = "resilient protocol witness table for $0",
    LazyWitnessTableAccessor = "lazy protocol witness table accessor for type $0 and conformance $1",
    LazyWitnessTableCache = "lazy protocol witness table cache variable for type $0 and conformance $1",
    AssociatedTypeDescriptor = "associated type descriptor for $0",
    AssociatedMetadataAccessor = "associated type metadata accessor for $1 in $0",
    DefaultAssociatedMetadataAccessor = "default associated type metadata accessor for $0",
    AssociatedWitnessAccessor = "associated type witness table accessor for $1 : $2 in $0",
    AssociatedConformance = "associated conformance descriptor for $0.$1: $2",
    DefaultAssociatedConformance = "default associated conformance accessor for $0.$1: $2",
    BaseConformance = "base conformance descriptor for $0: $1",
    BaseWitnessAccessor = "base witness table accessor for $1 in $0",
    ConformanceInTypeModule = "protocol conformance ref (type's module) $0",
    ConformanceInProtocolModule = "protocol conformance ref (protocol's module) $0",
    ConformanceInOtherModule = "protocol conformance ref (retroactive) $0$1",
    DependentRoot = "dependent root protocol conformance ",
    DependentInherited = "dependent inherited protocol conformance ",
    DependentAssociated = "dependent associated protocol conformance ",
    AssociatedPath = "dependent associated conformance $0$1",

    // Outlined operations on values.
    OutlinedCopy = "outlined copy of $0$1",
    OutlinedConsume = "outlined consume of $0$1",
    OutlinedRetain = "outlined retain of $0",
    OutlinedRelease = "outlined release of $0",
    OutlinedInitWithTake = "outlined init with take of $0",
    OutlinedInitWithCopy = "outlined init with copy of $0",
    OutlinedAssignWithTake = "outlined assign with take of $0",
    OutlinedAssignWithCopy = "outlined assign with copy of $0",
    OutlinedDestroy = "outlined destroy of $0",
    OutlinedEnumTagStore = "outlined enum tag store of $0",
    OutlinedEnumProject = "outlined enum project data for load of $0",
    OutlinedEnumGetTag = "outlined enum get tag of $0",

    // Types: words before one, and sugar.
    Isolated = "isolated $0",
    Sending = "sending $0",
    CompileTimeLiteral = "_const $0",
    ConstValue = "@const $0",
    Shared = "__shared $0",
    Owned = "__owned $0",
    NoDerivative = "@noDerivative $0",
    Weak = "weak $0",
    Unowned = "unowned $0",
    Unmanaged = "unowned(unsafe) $0",
    PackExpansion = "repeat $0",
    SugaredArray = "[$0]",
    SugaredInlineArray = "[$0 of $1]",
    SugaredDictionary = "[$0 : $1]",
    SugaredParen = "($0)",
    FixedArray = "Builtin.FixedArray<$0, $1>",
    Borrow = "Builtin.Borrow<$0>",

    // Attributes that are always shown.
    ObjC = "@objc ",
    NonObjC = "@nonobjc ",
    Dynamic = "dynamic ",
    DirectMethod = "super ",
    VTableOverride = "override ",
    AsyncFunctionPointer = "async function pointer to ",
    CoroFunctionPointer = "coro function pointer to ",
    DefaultOverride = "default override of ",
    HasSymbolQuery = "#_hasSymbol query for ",
    BackDeploymentFallback = "back deployment fallback for ",

    // Attributes that the simplified form leaves out.
    Merged = "merged ",
    DistributedThunk = "distributed thunk ",
    DistributedAccessor = "distributed accessor for ",
    AccessibleFunction = "accessible function runtime record for ",
    ReplaceableKey = "dynamically replaceable key for ",
    ReplaceableImpl = "dynamically replaceable thunk for ",
    ReplaceableVar = "dynamically replaceable variable for ",
    BackDeploymentThunk = "back deployment thunk for ",
}

impl Phrase {
    /// To be kept in a node.
    pub(super) fn pack(self) -> u32 {
        self as u32
    }
}

/// The text of a packed phrase.
pub(super) fn text(packed: u32) -> &'static str {
    usize::try_from(packed).ok().and_then(|at| TEXTS.get(at)).copied().unwrap_or_default()
}

/// The text of a packed phrase before its first child, and what is left from the child's `$` on.
pub(super) fn parts(packed: u32) -> (&'static str, &'static str) {
    let at = usize::try_from(packed).ok().and_then(|at| FIRST_CHILDREN.get(at)).copied().unwrap_or(0);
    text(packed).split_at_checked(at).unwrap_or_default()
}

/// Whether the simplified form leaves out the attribute.
pub(super) fn is_detail(packed: u32) -> bool {
    packed >= Phrase::Merged.pack()
}
