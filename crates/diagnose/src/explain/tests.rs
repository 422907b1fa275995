//! Tests of the rules as a whole; the parts that they are made of have theirs beside them.

mod arbitrary;
mod captures;
mod corpus;
mod documentation;
mod expert;
mod forms;
mod last_words;
mod phones;
mod rules;
mod sentences;
mod tables;
mod wild;
