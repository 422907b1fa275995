//! Expressions: in `decltype`, array bounds, template arguments, constraints.

use super::dialect::Dialect;
use super::node::{Id, List, Node};
use super::operators::{Operator, Precedence, Usage};
use super::parser::Parser;
use super::words::Word;

impl Parser<'_, '_> {
    /// `<expression>`
    pub(super) fn expression(&mut self) -> Option<Id> {
        self.nested(Self::expression_inside)
    }

    fn expression_inside(&mut self) -> Option<Id> {
        let is_global = self.skip_text(b"gs");
        if let Some(operator) = Operator::by_code(self.peek(0), self.peek(1)) {
            self.at += 2;
            return self.operator_expression(operator, is_global);
        }
        if self.left() < 2 {
            return None;
        }
        match (self.peek(0), self.peek(1)) {
            (b'L', _) => self.primary(),
            (b'T', _) => self.template_param(),
            (b'f', b'p') => self.function_param(),
            (b'f', b'L') if self.peek(2).is_ascii_digit() => self.function_param(),
            (b'f', _) => self.fold(),
            (b'i', b'l') => self.init_list(false),
            (b't', b'l') => self.init_list(true),
            (b'm', b'c') => self.member_pointer_conversion(),
            (b'n', b'x') => self.noexcept(),
            (b'r', b'q' | b'Q') => self.requires(),
            (b's', b'o') => self.subobject(),
            (b's', b'p') => self.expansion(),
            (b's', b'y') => self.pack_element(),
            (b's', b'Z') => self.sizeof_pack(),
            (b's', b'P') => self.sizeof_captured_pack(),
            (b't', b'r') => {
                self.at += 2;
                Some(Word::THROW.id())
            }
            (b't', b'w') => {
                self.at += 2;
                let of = self.expression()?;
                Some(self.push(Node::Throw(of)))
            }
            (b'u', _) => self.vendor_expression(),
            _ => self.unresolved_name(is_global),
        }
    }

    fn operator_expression(&mut self, operator: Operator, is_global: bool) -> Option<Id> {
        let node = match operator.usage() {
            Usage::Binary => {
                let left = self.expression()?;
                let right = self.expression()?;
                Node::Binary { operator, left, right }
            }
            Usage::Prefix => Node::Prefix { operator, of: self.expression()? },
            Usage::Postfix if self.skip(b'_') => Node::Prefix { operator, of: self.expression()? },
            Usage::Postfix => Node::Postfix { operator, of: self.expression()? },
            Usage::Subscript => {
                let of = self.expression()?;
                let index = self.expression()?;
                Node::Subscript { of, index }
            }
            Usage::Dot | Usage::Arrow => {
                let left = self.expression()?;
                let right = self.member()?;
                Node::Member { operator, left, right }
            }
            Usage::New => return self.new_expression(is_global, false),
            Usage::NewArray => return self.new_expression(is_global, true),
            Usage::Delete => Node::Delete { of: self.expression()?, is_global, is_array: false },
            Usage::DeleteArray => Node::Delete { of: self.expression()?, is_global, is_array: true },
            Usage::Call => return self.call(false),
            Usage::CallInParens => return self.call(true),
            Usage::Conversion => return self.conversion(),
            Usage::Conditional => {
                let condition = self.expression()?;
                let then = self.expression()?;
                let otherwise = self.expression()?;
                Node::Conditional { condition, then, otherwise }
            }
            Usage::NamedCast => {
                let to = self.ty()?;
                let from = self.expression()?;
                Node::Cast { operator, to, from }
            }
            Usage::OfType => Node::OperatorOf { operator, of: self.ty()? },
            Usage::OfExpression => Node::OperatorOf { operator, of: self.expression()? },
            Usage::NameOnly => Node::Prefix { operator, of: self.expression()? },
        };
        Some(self.push(node))
    }

    /// What stands behind `.` and `->`; old compilers wrote an operator's name there without `on`.
    fn member(&mut self) -> Option<Id> {
        let may_be_name = self.peek(2) == b'E' || self.dialect == Dialect::Gcc;
        let is_name =
            may_be_name && Operator::by_code(self.peek(0), self.peek(1)).is_some_and(Operator::is_nameable);
        if is_name { self.operator_name(None) } else { self.expression() }
    }

    /// `sy <pack> <index expression>`
    fn pack_element(&mut self) -> Option<Id> {
        self.at += 2;
        let pack = self.expression()?;
        let index = self.expression()?;
        Some(self.push(Node::PackIndex { pack, index }))
    }

    pub(super) fn push_enclosing(&mut self, what: Word, of: Id) -> Id {
        let precedence = if what == Word::NOEXCEPT_OF { Precedence::Unary } else { Precedence::Primary };
        self.push(Node::Enclosing { what, of, precedence })
    }

    /// `[gs] nw <expression>* _ <type> [pi <expression>*] E | [gs] nw <expression>* _ <type> il <braced-expression>* E`
    fn new_expression(&mut self, is_global: bool, is_array: bool) -> Option<Id> {
        let placement = self.list_until(|parser| parser.skip(b'_'), Self::expression)?;
        let ty = self.ty()?;
        let is_braced = self.skip_text(b"il");
        let init = if is_braced {
            self.list_to_end(Self::braced)?
        } else if self.skip_text(b"pi") {
            self.list_to_end(Self::expression)?
        } else {
            self.expect(b'E')?;
            List::EMPTY
        };
        Some(self.push(Node::New { placement, ty, init, is_global, is_array, is_braced }))
    }

    /// `cl <expression>+ E`, or `cp` where the callee is in parentheses
    fn call(&mut self, in_parens: bool) -> Option<Id> {
        let callee = self.expression()?;
        let args = self.list_to_end(Self::expression)?;
        Some(self.push(Node::Call { callee, args, in_parens }))
    }

    /// `cv <type> <expression> | cv <type> _ <expression>* E`
    fn conversion(&mut self) -> Option<Id> {
        // No expression starts with an `I`: what does, are the type's arguments.
        let to = self.bracketed(Self::ty)?;
        let args = if self.skip(b'_') {
            self.list_to_end(Self::expression)?
        } else {
            let arg = self.expression()?;
            self.scratch.table.push_list(&[arg])
        };
        Some(self.push(Node::Convert { to, args }))
    }

    /// ```text
    /// <fold-expr> ::= fL <binary operator-name> <expression> <expression>
    ///             ::= fR <binary operator-name> <expression> <expression>
    ///             ::= fl <binary operator-name> <expression>
    ///             ::= fr <binary operator-name> <expression>
    /// ```
    fn fold(&mut self) -> Option<Id> {
        let (is_left, has_init) = match self.peek(1) {
            b'L' => (true, true),
            b'R' => (false, true),
            b'l' => (true, false),
            b'r' => (false, false),
            _ => return None,
        };
        self.at += 2;
        let operator = Operator::by_code(self.peek(0), self.peek(1)).filter(|it| it.is_foldable())?;
        self.at += 2;
        let first = self.expression()?;
        let second = if has_init { Some(self.expression()?) } else { None };
        let (pack, init) = match second {
            // The operands come as they are written: `init op ... op pack`.
            Some(pack) if is_left => (pack, Some(first)),
            init => (first, init),
        };
        Some(self.push(Node::Fold { operator, pack, init, is_left }))
    }

    /// ```text
    /// <function-param> ::= fpT                                            # this
    ///                  ::= fp <CV-qualifiers> [<number>] _
    ///                  ::= fL <number> p <CV-qualifiers> [<number>] _
    /// ```
    fn function_param(&mut self) -> Option<Id> {
        if self.skip_text(b"fpT") {
            return Some(Word::THIS.id());
        }
        if self.skip_text(b"fL") {
            if self.digits().len == 0 {
                return None;
            }
            self.expect(b'p')?;
        } else if !self.skip_text(b"fp") {
            return None;
        }
        self.qualifiers();
        let number = self.digits();
        self.expect(b'_')?;
        Some(self.push(Node::FunctionParam(number)))
    }

    /// `il <braced-expression>* E | tl <type> <braced-expression>* E`
    fn init_list(&mut self, has_type: bool) -> Option<Id> {
        self.at += 2;
        let ty = if has_type { Some(self.ty()?) } else { None };
        let values = self.list_to_end(Self::braced)?;
        Some(self.push(Node::InitList { ty, values }))
    }

    /// ```text
    /// <braced-expression> ::= <expression>
    ///                     ::= di <field source-name> <braced-expression>
    ///                     ::= dx <index expression> <braced-expression>
    ///                     ::= dX <first expression> <last expression> <braced-expression>
    /// ```
    fn braced(&mut self) -> Option<Id> {
        let kind = if self.peek(0) == b'd' { self.peek(1) } else { 0 };
        if !matches!(kind, b'i' | b'x' | b'X') {
            return self.expression();
        }
        self.at += 2;
        let node = match kind {
            b'i' => {
                let field = self.source_name()?;
                Node::BracedField { field, value: self.nested(Self::braced)? }
            }
            b'x' => {
                let index = self.expression()?;
                Node::BracedIndex { index, value: self.nested(Self::braced)? }
            }
            _ => {
                let first = self.expression()?;
                let last = self.expression()?;
                Node::BracedRange { first, last, value: self.nested(Self::braced)? }
            }
        };
        Some(self.push(node))
    }

    /// `mc <type> <expression> [<offset number>] E`
    fn member_pointer_conversion(&mut self) -> Option<Id> {
        self.at += 2;
        let to = self.ty()?;
        let from = self.expression()?;
        self.number();
        self.expect(b'E')?;
        Some(self.push(Node::ConvertMemberPointer { to, from }))
    }

    /// `so <type> <expression> [<offset number>] (_ [<number>])* [p] E`
    fn subobject(&mut self) -> Option<Id> {
        self.at += 2;
        let ty = self.ty()?;
        let of = self.expression()?;
        let number = self.number();
        let offset = self.push(Node::Source(number));
        while self.skip(b'_') {
            self.digits();
        }
        self.skip(b'p');
        self.expect(b'E')?;
        Some(self.push(Node::Subobject { of, ty, offset }))
    }

    /// `nx <expression>`
    fn noexcept(&mut self) -> Option<Id> {
        self.at += 2;
        let of = self.expression()?;
        Some(self.push_enclosing(Word::NOEXCEPT_OF, of))
    }

    /// `sp <expression>`
    fn expansion(&mut self) -> Option<Id> {
        self.at += 2;
        let pattern = self.expression()?;
        Some(self.push(Node::Expansion(pattern)))
    }

    /// `sZ <template-param> | sZ <function-param>`
    fn sizeof_pack(&mut self) -> Option<Id> {
        self.at += 2;
        if self.peek(0) == b'T' {
            let pack = self.template_param()?;
            return Some(self.push(Node::SizeofPack(pack)));
        }
        let param = self.function_param()?;
        Some(self.push_enclosing(Word::SIZEOF_PACK, param))
    }

    /// `sP <template-arg>* E`
    fn sizeof_captured_pack(&mut self) -> Option<Id> {
        self.at += 2;
        let args = self.list_to_end(Self::template_arg)?;
        let args = self.push(Node::CapturedPack(args));
        Some(self.push_enclosing(Word::SIZEOF_PACK, args))
    }

    /// `u <source-name> <template-arg>* E`; an old `__uuidof` takes one type (`t`) or expression (`z`), without `E`.
    fn vendor_expression(&mut self) -> Option<Id> {
        self.at += 1;
        let callee = self.source_name()?;
        let is_uuid =
            matches!(self.scratch.table.node(callee), Node::Source(name) if self.text(name) == b"__uuidof");
        let args = if is_uuid && self.skip(b't') {
            let of = self.ty()?;
            self.scratch.table.push_list(&[of])
        } else if is_uuid && self.skip(b'z') {
            let of = self.expression()?;
            self.scratch.table.push_list(&[of])
        } else {
            self.list_to_end(Self::template_arg)?
        };
        Some(self.push(Node::Call { callee, args, in_parens: false }))
    }

    /// ```text
    /// <expression> ::= rq <requirement>+ E
    ///              ::= rQ <bare-function-type> _ <requirement>+ E
    /// ```
    fn requires(&mut self) -> Option<Id> {
        let has_params = self.peek(1) == b'Q';
        self.at += 2;
        let params =
            if has_params { self.list_until(|parser| parser.skip(b'_'), Self::ty)? } else { List::EMPTY };
        let from = self.scratch.pending.len();
        loop {
            let requirement = self.requirement()?;
            self.scratch.pending.push(requirement);
            if self.skip(b'E') {
                break;
            }
        }
        let requirements = self.finish_list(from);
        Some(self.push(Node::Requires { params, requirements }))
    }

    /// ```text
    /// <requirement> ::= X <expression> [N] [R <type-constraint>]
    ///               ::= T <type>
    ///               ::= Q <constraint-expression>
    /// ```
    fn requirement(&mut self) -> Option<Id> {
        let kind = self.peek(0);
        self.at += 1;
        let node = match kind {
            b'X' => {
                let expression = self.expression()?;
                let is_noexcept = self.skip(b'N');
                let constraint = if self.skip(b'R') { Some(self.name(None)?) } else { None };
                Node::ExpressionRequirement { expression, is_noexcept, constraint }
            }
            b'T' => Node::TypeRequirement(self.ty()?),
            b'Q' => Node::NestedRequirement(self.expression()?),
            _ => return None,
        };
        Some(self.push(node))
    }
}
