//! Declarations: `context.name`, `name in context`, with their types.

use super::{Context, Printer};
use crate::swift::accessor;
use crate::swift::bound::{self, Bound};
use crate::swift::function_type::Convention;
use crate::swift::kinds::Kind;
use crate::swift::macro_role;
use crate::swift::node::NodeRef;
use core::fmt;

/// How the type of an entity is written.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Typing {
    None,
    /// `name : Type`
    Colon,
    /// `name(Type) -> Type`
    Function,
}

/// How an entity is written.
#[derive(Clone, Copy)]
pub(super) struct Form {
    typing: Typing,
    /// Its second child is its name.
    has_name: bool,
    /// `subscript` stands for the name.
    is_subscript: bool,
    /// The extra name has several words.
    is_phrase: bool,
    number: Option<u32>,
    /// Set for attached macros: the child that the extra name ends with.
    macro_name: Option<NodeRef>,
    /// Follows the name after a dot or, when it has several words, stands before it with " of ".
    extra: &'static str,
}

impl Form {
    const fn new(typing: Typing, has_name: bool, extra: &'static str) -> Self {
        Form {
            typing,
            has_name,
            is_subscript: false,
            is_phrase: false,
            number: None,
            macro_name: None,
            extra,
        }
    }

    const fn named(typing: Typing) -> Self {
        Form::new(typing, true, "")
    }

    /// Shown as a word: `Class.init`.
    const fn word(typing: Typing, extra: &'static str) -> Self {
        Form::new(typing, false, extra)
    }

    /// Shown as several words: `closure #1 in function`.
    const fn phrase(extra: &'static str, number: Option<u32>) -> Self {
        Form { is_phrase: true, number, ..Form::new(Typing::None, false, extra) }
    }
}

impl Printer<'_> {
    /// How to write the node, if it is an entity.
    pub(super) fn entity_form(&self, node: NodeRef, kind: Kind) -> Option<Form> {
        let number = self.arena.extra(node);
        Some(match kind {
            Kind::Class
            | Kind::Structure
            | Kind::Enum
            | Kind::Protocol
            | Kind::TypeAlias
            | Kind::OtherNominalType
            | Kind::GenericTypeParamDecl => Form::named(Typing::None),
            Kind::Variable => Form::named(Typing::Colon),
            Kind::Function | Kind::BoundFunction => Form::named(Typing::Function),
            Kind::Macro => {
                let has_labels = self.arena.children(node).len() > 3;
                Form::named(if has_labels { Typing::Function } else { Typing::Colon })
            }
            Kind::Subscript => Form { is_subscript: true, ..Form::word(Typing::Function, "") },
            Kind::Accessor => self.accessor_form(node)?,
            Kind::ExplicitClosure => self.closure_form("closure #", number),
            Kind::ImplicitClosure => self.closure_form("implicit closure #", number),
            Kind::Allocator if self.is_in_class(node) => Form::word(Typing::Function, "__allocating_init"),
            Kind::Allocator | Kind::Constructor => Form::word(Typing::Function, "init"),
            Kind::Deallocator if self.is_in_class(node) => Form::word(Typing::None, "__deallocating_deinit"),
            Kind::IsolatedDeallocator if self.is_in_class(node) => {
                Form::word(Typing::None, "__isolated_deallocating_deinit")
            }
            Kind::Destructor | Kind::Deallocator | Kind::IsolatedDeallocator => {
                Form::word(Typing::None, "deinit")
            }
            Kind::IVarInitializer => Form::word(Typing::None, "__ivar_initializer"),
            Kind::IVarDestroyer => Form::word(Typing::None, "__ivar_destroyer"),
            Kind::Initializer => Form::phrase("variable initialization expression", None),
            Kind::PropertyWrapperBackingInitializer => {
                Form::phrase("property wrapper backing initializer", None)
            }
            Kind::PropertyWrappedFieldInitAccessor => {
                Form::phrase("property wrapped field init accessor", None)
            }
            Kind::PropertyWrapperInitFromProjectedValue => {
                Form::phrase("property wrapper init from projected value", None)
            }
            Kind::DefaultArgumentInitializer => Form::phrase("default argument ", Some(number)),
            Kind::AttachedMacro => self.attached_macro_form(node)?,
            Kind::FreestandingMacro => {
                Form { has_name: true, ..Form::phrase("freestanding macro expansion #", Some(number + 1)) }
            }
            Kind::MacroUniqueName => {
                Form { has_name: true, ..Form::phrase("unique name #", Some(number + 1)) }
            }
            _ => return None,
        })
    }

    /// The form of the variable or subscript that an accessor is for; the entity is then that child.
    fn accessor_form(&self, node: NodeRef) -> Option<Form> {
        let storage = self.arena.child(node, 0)?;
        let is_variable = self.arena.own_kind(storage) == Kind::Variable;
        let extra = accessor::text(self.arena.extra(node));
        Some(Form { is_subscript: !is_variable, ..Form::new(Typing::Colon, is_variable, extra) })
    }

    fn closure_form(&self, extra: &'static str, number: u32) -> Form {
        let typing = if self.shows_types() { Typing::Function } else { Typing::None };
        Form { typing, ..Form::phrase(extra, Some(number + 1)) }
    }

    fn attached_macro_form(&self, node: NodeRef) -> Option<Form> {
        let [.., role] = self.arena.extra(node).to_be_bytes();
        let number = (self.arena.extra(node) >> 8) + 1;
        let macro_name = self.arena.child(node, 2);
        Some(Form { has_name: true, macro_name, ..Form::phrase(macro_role::name(role)?, Some(number)) })
    }

    /// Writes a nominal type: most are a module, a dot and a name.
    pub(super) fn nominal(&mut self, node: NodeRef) -> fmt::Result {
        let arena = self.arena;
        if let &[context, name] = arena.children(node)
            && arena.own_kind(name) == Kind::Identifier
        {
            match arena.own_kind(context) {
                Kind::Module if self.style.is_simplified => {}
                Kind::Module => {
                    self.text(context)?;
                    self.put(".")?;
                }
                _ => return self.entity(node, &Form::named(Typing::None), false).map(|_| ()),
            }
            return self.text(name);
        }
        self.entity(node, &Form::named(Typing::None), false).map(|_| ())
    }

    fn is_in_class(&self, node: NodeRef) -> bool {
        self.arena.child(node, 0).is_some_and(|context| match self.arena.own_kind(context) {
            Kind::Class => true,
            Kind::Standard => bound::kind_of(context, self.arena) == Some(Bound::Class),
            _ => false,
        })
    }

    /// Whether parameters and types are written at all.
    pub(super) fn shows_types(&self) -> bool {
        !self.style.is_simplified && self.style.has_parameters
    }

    /// Writes an entity; as the context of another one only what can stand before a dot.
    pub(super) fn entity(&mut self, node: NodeRef, form: &Form, is_context: bool) -> Context {
        let (entity, arguments) = match self.arena.own_kind(node) {
            Kind::BoundFunction => (self.arena.child(node, 0).unwrap_or(node), self.arena.child(node, 1)),
            Kind::Accessor => (self.arena.child(node, 0).unwrap_or(node), None),
            _ => (node, None),
        };
        let name = if form.has_name { self.arena.child(entity, 1) } else { None };
        let is_local = name.is_some_and(|name| self.arena.own_kind(name) == Kind::LocalDeclName);
        let goes_first = !form.is_phrase && !is_local;
        if is_context && (form.typing != Typing::None || !goes_first) {
            return Ok(Some(node));
        }
        let mut context_left = None;
        if let Some(context) = self.arena.child(entity, 0) {
            if goes_first {
                let before = self.out.len();
                context_left = self.print_as_context(context)?;
                if self.out.len() != before {
                    self.put(".")?;
                }
            } else {
                context_left = Some(context);
            }
        }
        self.entity_name(entity, name, form, goes_first)?;
        if form.typing != Typing::None {
            self.typed(entity, form, arguments, goes_first)?;
        }
        if !is_context && let Some(context) = context_left.take() {
            self.put(if is_part_of(self.arena.own_kind(entity)) { " of " } else { " in " })?;
            self.print(context)?;
        }
        Ok(context_left)
    }

    fn extra_name(&mut self, form: &Form) -> fmt::Result {
        self.put(form.extra)?;
        if let Some(of) = form.macro_name {
            self.put(" macro @")?;
            self.print(of)?;
            self.put(" expansion #")?;
        }
        form.number.map_or(Ok(()), |number| self.put_number(u64::from(number)))
    }

    fn entity_name(
        &mut self,
        entity: NodeRef,
        name: Option<NodeRef>,
        form: &Form,
        goes_first: bool,
    ) -> fmt::Result {
        let mut extra_is_due = !form.extra.is_empty();
        if form.has_name && extra_is_due && !goes_first {
            self.extra_name(form)?;
            self.put(" of ")?;
            extra_is_due = false;
        }
        let before = self.out.len();
        if form.is_subscript {
            self.put("subscript")?;
        } else if form.has_name || self.arena.own_kind(entity) == Kind::Constructor {
            if let Some(name) = name.filter(|&name| self.arena.own_kind(name) != Kind::PrivateDeclName) {
                self.print(name)?;
            }
            if let Some(discriminator) = self.private_name_of(entity) {
                self.print(discriminator)?;
            }
        }
        if extra_is_due {
            if self.out.len() != before {
                self.put(".")?;
            }
            self.extra_name(form)?;
        }
        Ok(())
    }

    /// A private entity's name, or the discriminator of one that has no name.
    fn private_name_of(&self, entity: NodeRef) -> Option<NodeRef> {
        let is_private = |node: &NodeRef| self.arena.own_kind(*node) == Kind::PrivateDeclName;
        self.arena.children(entity).get(1..)?.iter().copied().find(is_private)
    }

    fn typed(
        &mut self,
        entity: NodeRef,
        form: &Form,
        arguments: Option<NodeRef>,
        goes_first: bool,
    ) -> fmt::Result {
        let arena = self.arena;
        let Some(of) = arena.children(entity).iter().copied().find(|child| child.is_type()) else {
            return Ok(());
        };
        let labels =
            arena.children(entity).iter().copied().find(|&child| arena.kind(child) == Kind::LabelList);
        let is_function = form.typing == Typing::Function && self.is_written_as_function(of);
        if !is_function {
            if self.style.is_simplified || !self.style.has_return_types {
                return Ok(());
            }
            self.put(" : ")?;
        } else if !self.style.has_parameters {
            return Ok(());
        } else if !goes_first || self.needs_space(of) {
            self.put(" ")?;
        }
        self.entity_type(of, labels, arguments)
    }

    fn is_written_as_function(&self, mut of: NodeRef) -> bool {
        while self.arena.own_kind(of) == Kind::DependentGenericType {
            let Some(inner) = self.arena.child(of, 1) else { return false };
            of = inner;
        }
        self.arena.own_kind(of) == Kind::FunctionType
            && Convention::unpack(self.arena.extra(of)).is_function_style()
    }

    /// Whether a type needs a space between it and a name before it.
    pub(super) fn needs_space(&self, of: NodeRef) -> bool {
        match self.arena.own_kind(of) {
            Kind::FunctionType => !Convention::unpack(self.arena.extra(of)).is_bare(),
            Kind::DependentGenericType => false,
            _ => true,
        }
    }

    fn entity_type(
        &mut self,
        of: NodeRef,
        labels: Option<NodeRef>,
        arguments: Option<NodeRef>,
    ) -> fmt::Result {
        if let Some(arguments) = arguments {
            self.generic_arguments(self.arena.children(arguments))?;
        }
        let mut function = of;
        if self.arena.own_kind(of) == Kind::DependentGenericType {
            if arguments.is_none() {
                self.child(of, 0)?;
            }
            function = self.arena.child(of, 1).unwrap_or(of);
            if self.needs_space(function) {
                self.put(" ")?;
            }
        }
        match self.arena.own_kind(function) {
            Kind::FunctionType => self.function_type(function, labels, self.style.has_return_types),
            _ => self.print(function),
        }
    }

    /// `(extension in Module):Type<signature>`
    pub(super) fn extension(&mut self, node: NodeRef) -> fmt::Result {
        if !self.style.is_simplified {
            self.put("(extension in ")?;
            self.child(node, 0)?;
            self.put("):")?;
        }
        self.child(node, 1)?;
        self.child(node, 2)
    }

    pub(super) fn anonymous_context(&mut self, node: NodeRef) -> fmt::Result {
        if self.style.is_simplified {
            return Ok(());
        }
        self.child(node, 1)?;
        self.put(".(unknown context at ")?;
        self.child(node, 0)?;
        self.put(")")?;
        match self.arena.child(node, 2).filter(|&types| !self.arena.children(types).is_empty()) {
            Some(types) => {
                self.put("<")?;
                self.list_of(types, "")?;
                self.put(">")
            }
            None => Ok(()),
        }
    }
}

/// Entities that belong to another one rather than stand in it.
fn is_part_of(kind: Kind) -> bool {
    matches!(
        kind,
        Kind::DefaultArgumentInitializer
            | Kind::Initializer
            | Kind::PropertyWrapperBackingInitializer
            | Kind::PropertyWrappedFieldInitAccessor
            | Kind::PropertyWrapperInitFromProjectedValue
    )
}
