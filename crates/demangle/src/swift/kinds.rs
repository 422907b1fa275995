//! What a node of a demangled name can be.

/// What a node is. The children are given in brackets, what [`Arena::extra`](super::node::Arena::extra) holds in
/// braces, `text` for nodes that hold text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// Never a node's own kind: what a reference answers that stands for a type.
    Type,

    // Names.
    Module,                // text
    Identifier,            // text
    InfixOperator,         // text
    PrefixOperator,        // text
    PostfixOperator,       // text
    LocalDeclName,         // [name] {number}
    PrivateDeclName,       // [discriminator, name?]
    RelatedEntityDeclName, // [name] {letter}
    LabelList,             // [Identifier or FirstElementMarker ...]

    // Nominal types.
    Standard,         // {standard::pack}
    Class,            // [context, name]
    Structure,        // [context, name]
    Enum,             // [context, name]
    Protocol,         // [context, name]
    TypeAlias,        // [context, name]
    OtherNominalType, // [context, name]
    TheTupleType,     // what extensions of all tuples extend
    BoundGeneric,     // [nominal, TypeList] {Bound}
    BoundFunction,    // [function, TypeList]
    Extension,        // [module, type, signature?]
    AnonymousContext, // [name, context, TypeList]

    // Entities.
    Function,                              // [context, name, LabelList?, type]
    Variable,                              // [context, name, LabelList?, type]
    Subscript,                             // [context, LabelList?, type, PrivateDeclName?]
    Macro,                                 // [context, name, LabelList?, type]
    GenericTypeParamDecl,                  // [context, name, LabelList?, type]
    Accessor,                              // [Variable or Subscript] {Accessor}
    Allocator,                             // [context, LabelList?, type, PrivateDeclName?]
    Constructor,                           // [context, LabelList?, type, PrivateDeclName?]
    Deallocator,                           // [context]
    IsolatedDeallocator,                   // [context]
    Destructor,                            // [context]
    IVarInitializer,                       // [context]
    IVarDestroyer,                         // [context]
    ExplicitClosure,                       // [context, type] {number}
    ImplicitClosure,                       // [context, type] {number}
    DefaultArgumentInitializer,            // [context] {number}
    Initializer,                           // [context]
    PropertyWrapperBackingInitializer,     // [context]
    PropertyWrappedFieldInitAccessor,      // [context]
    PropertyWrapperInitFromProjectedValue, // [context]
    Static,                                // [entity]
    AttachedMacro,                         // [context, name, macro name] {number << 8 | role letter}
    FreestandingMacro,                     // [context, macro name, PrivateDeclName?] {number}
    MacroUniqueName,                       // [context, name, PrivateDeclName?] {number}

    // Types.
    Builtin,                   // {letter}
    BuiltinSized,              // {size << 8 | letter}
    BuiltinVector,             // [element] {count}
    FunctionType,              // [parameters, result, C type?, actor?, error?] {FunctionType bits}
    ImplFunctionType,          // see impl_function
    ImplParameter,             // [type] {convention bits}
    ImplSubstitutions,         // [signature?, TypeList]
    Tuple,                     // [type or TupleElement ...]
    TupleElement,              // [type, label?] {is variadic}
    TypeList,                  // [type ...]
    Pack,                      // [type ...]
    SilPackDirect,             // [type ...]
    SilPackIndirect,           // [type ...]
    PackElement,               // [type] {level}
    Qualified,                 // [type] {Phrase}, "inout X" and its like
    InOut,                     // [type]
    SilBox,                    // [type]
    SilBoxWithLayout,          // [SilBoxLayout, signature?, TypeList?]
    SilBoxLayout,              // [SilBoxField ...]
    SilBoxField,               // [type] {is mutable}
    DynamicSelf,               // [type]
    Metatype,                  // [type] {representation letter}
    ExistentialMetatype,       // [type] {representation letter}
    ProtocolList,              // [protocol ...]
    ProtocolListWithClass,     // [superclass, protocol ...]
    ProtocolListWithAnyObject, // [protocol ...]
    ConstrainedExistential,    // [type, requirement ...]
    ConstrainedExistentialSelf,
    ErrorType,
    SugaredOptional, // [type]
    Simple,          // [...] {Phrase}, a type that needs no parentheses
    Integer,         // {value}
    NegativeInteger, // {magnitude}
    OpaqueReturnType,
    OpaqueReturnTypeOf, // [entity]
    OpaqueType,         // [name] {number}
    AssociatedTypeRef,  // [type, Identifier]

    // Generics.
    GenericParam,           // depth and index, see Arena::param
    DependentMember,        // [base, AssociatedTypeName]
    AssociatedTypeName,     // [Identifier, protocol?]
    AssociatedTypePath,     // [AssociatedTypeName ...]
    DependentGenericType,   // [signature, type]
    GenericSignature,       // [Number ..., requirement ...] {how many Numbers}
    PackMarker,             // [type]
    ValueMarker,            // [parameter, type]
    ConformanceRequirement, // [type, constraint]
    InverseRequirement,     // [type] {bit}
    SameTypeRequirement,    // [type, type]
    SameShapeRequirement,   // [type, type]
    LayoutRequirement,      // [type, Number ...] {letter}

    // Conformances.
    ProtocolConformance,    // [type, protocol, module]
    BehaviorConformance,    // [type, protocol, module, Identifier]
    ConcreteConformance,    // [type, reference, ConformanceList]
    DependentConformance,   // [...] {Phrase}: root, inherited, associated
    OpaqueConformance,      // [conformance, type]
    PackConformance,        // [ConformanceList]
    ConformanceList,        // [conformance ...]
    ConformanceRef,         // [protocol, module?] {Phrase}
    RetroactiveConformance, // [conformance]

    // What is on the stack for a while only.
    EmptyList,
    FirstElementMarker,
    VariadicMarker,
    Throws,
    TypedThrows, // [type]
    Async,
    Sendable,
    SendingResult,
    GlobalActor, // [type]
    IsolatedAny,
    NonIsolatedCaller,
    Differentiable, // {letter}
    Yields,         // [type]
    Number,         // {value}

    // Globals.
    Phrase,                   // [...] {Phrase}
    TypeMangling,             // [type, LabelList?]
    ValueWitness,             // [type] {letters}
    OnceToken,                // [context, names ...]
    OnceFunction,             // [context, names ...]
    ReabstractionThunk,       // [signature?, from, to] {letter}
    KeyPathThunk,             // [entity, signature?, type ...] {KeyPath bits}
    KeyPathIndexThunk,        // [signature?, type ...] {KeyPath bits}
    CompletionHandler,        // [type, type, signature?] {flag << 8 | letter}
    AutoDiffFunction,         // [node ..., kind, IndexSubset, IndexSubset] {is a vtable thunk}
    AutoDiffSubsetThunk,      // [node ..., kind, IndexSubset, IndexSubset, IndexSubset]
    AutoDiffReordering,       // [signature?, from, to] {letter}
    Derivative,               // {letter}
    DifferentiabilityWitness, // [node ..., IndexSubset, IndexSubset, signature?] {letter}
    IndexSubset,              // text
    ExistentialShape,         // [signature?, type]
    MacroExpansionLoc,        // [module, file, Number, Number]
    AsyncMain,
    Suffix, // text
    Global, // [node ...]

    // Attributes of a function; they stand before it.
    Attribute,               // {Phrase}
    PartialApply,            // [node ...] {is Objective-C's}
    AsyncAwaitResume,        // {number}
    AsyncSuspendResume,      // {number}
    OutlinedVariable,        // {number}
    OutlinedReadOnlyObject,  // {number}
    OutlinedBridgedMethod,   // text
    GenericSpecialization,   // [type or SpecializedType ...] {Specialization bits}
    SpecializedType,         // [type, conformance ...]
    SignatureSpecialization, // [SpecializedParam ...] {Specialization bits}
    SpecializedParam,        // [SpecProperty, SpecText ..., operand ...] {is the result}
    SpecProperty,            // {specialization::ParamKind}
    SpecText,                // text
}

/// The parts of [`Kind`], in its order: which part of the printer writes a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Group {
    Name,
    Entity,
    Type,
    Generic,
    Conformance,
    Global,
    Attribute,
}

impl Kind {
    /// The part of the enumeration that the kind stands in.
    pub(super) fn group(self) -> Group {
        match self as u8 {
            kind if kind < Kind::Standard as u8 => Group::Name,
            kind if kind < Kind::Builtin as u8 => Group::Entity,
            kind if kind < Kind::GenericParam as u8 => Group::Type,
            kind if kind < Kind::ProtocolConformance as u8 => Group::Generic,
            kind if kind < Kind::EmptyList as u8 => Group::Conformance,
            kind if kind < Kind::Attribute as u8 => Group::Global,
            _ => Group::Attribute,
        }
    }

    /// Names of declarations.
    pub(super) fn is_decl_name(self) -> bool {
        matches!(
            self,
            Kind::Identifier
                | Kind::LocalDeclName
                | Kind::PrivateDeclName
                | Kind::RelatedEntityDeclName
                | Kind::PrefixOperator
                | Kind::PostfixOperator
                | Kind::InfixOperator
        )
    }

    /// Types that generic arguments or extensions may apply to.
    pub(super) fn is_any_generic(self) -> bool {
        matches!(
            self,
            Kind::Standard
                | Kind::Structure
                | Kind::Class
                | Kind::Enum
                | Kind::Protocol
                | Kind::OtherNominalType
                | Kind::TypeAlias
                | Kind::TheTupleType
        )
    }

    /// What other declarations may stand in.
    pub(super) fn is_context(self) -> bool {
        self.is_any_generic()
            || matches!(
                self,
                Kind::Module
                    | Kind::Extension
                    | Kind::AnonymousContext
                    | Kind::Function
                    | Kind::Variable
                    | Kind::Subscript
                    | Kind::Accessor
                    | Kind::Allocator
                    | Kind::Constructor
                    | Kind::Deallocator
                    | Kind::IsolatedDeallocator
                    | Kind::Destructor
                    | Kind::IVarInitializer
                    | Kind::IVarDestroyer
                    | Kind::ExplicitClosure
                    | Kind::ImplicitClosure
                    | Kind::DefaultArgumentInitializer
                    | Kind::Initializer
                    | Kind::PropertyWrapperBackingInitializer
                    | Kind::PropertyWrappedFieldInitAccessor
                    | Kind::PropertyWrapperInitFromProjectedValue
                    | Kind::Static
                    | Kind::OpaqueReturnTypeOf
                    | Kind::AutoDiffFunction
            )
    }

    /// What the operators take that want an entity: types, too.
    pub(super) fn is_entity(self) -> bool {
        self == Kind::Type || self.is_context()
    }

    /// What stands before a function and says what was done with it.
    pub(super) fn is_function_attribute(self) -> bool {
        matches!(
            self,
            Kind::Attribute
                | Kind::PartialApply
                | Kind::AsyncAwaitResume
                | Kind::AsyncSuspendResume
                | Kind::OutlinedVariable
                | Kind::OutlinedReadOnlyObject
                | Kind::OutlinedBridgedMethod
                | Kind::GenericSpecialization
                | Kind::SignatureSpecialization
        )
    }

    /// What a generic signature lists.
    pub(super) fn is_requirement(self) -> bool {
        matches!(
            self,
            Kind::PackMarker
                | Kind::ValueMarker
                | Kind::ConformanceRequirement
                | Kind::InverseRequirement
                | Kind::SameTypeRequirement
                | Kind::SameShapeRequirement
                | Kind::LayoutRequirement
        )
    }

    /// What means nothing without the operator that it waits for.
    pub(super) fn is_mark(self) -> bool {
        matches!(
            self,
            Kind::EmptyList
                | Kind::FirstElementMarker
                | Kind::VariadicMarker
                | Kind::Throws
                | Kind::TypedThrows
                | Kind::Async
                | Kind::Sendable
                | Kind::SendingResult
                | Kind::GlobalActor
                | Kind::IsolatedAny
                | Kind::NonIsolatedCaller
                | Kind::Differentiable
                | Kind::Yields
        )
    }

    /// Conformances of any sort.
    pub(super) fn is_conformance(self) -> bool {
        matches!(
            self,
            Kind::ConcreteConformance
                | Kind::PackConformance
                | Kind::DependentConformance
                | Kind::OpaqueConformance
        )
    }

    /// Contexts that generic arguments pass by: they have no generic parameters of their own.
    pub(super) fn has_no_generic_arguments(self) -> bool {
        matches!(
            self,
            Kind::Variable
                | Kind::Subscript
                | Kind::ImplicitClosure
                | Kind::ExplicitClosure
                | Kind::DefaultArgumentInitializer
                | Kind::Initializer
                | Kind::PropertyWrapperBackingInitializer
                | Kind::PropertyWrappedFieldInitAccessor
                | Kind::PropertyWrapperInitFromProjectedValue
                | Kind::Static
        )
    }
}
