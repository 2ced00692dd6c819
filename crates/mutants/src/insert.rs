//! All mutants of a file in one text: each stands beside the original, behind a switch.
//!
//! `a + b` becomes `(if on(1) { a - b } else if on(2) { a * b } else { a + b })`. Only one mutant
//! is active at a time, so a mutated branch repeats the original text. Only the last branch holds
//! the switches of what lies deeper. So the text grows with depth, and not exponentially.

use std::collections::HashMap;
use std::ops::Range;

use anyhow::{Context, Result};
use proc_macro2::Span;
use syn::spanned::Spanned;
use syn::visit::{self, Visit};

use crate::list::{Genre, Mutant};

/// A file with its switches.
pub struct Switched {
    pub text: String,
    /// For what the compiler says of mutants: first the places of single ones, then the
    /// expressions around them, inner ones first.
    pub places: Vec<Place>,
    /// Each match with mutants of its arms. They are guarded all at once, so that only those of a
    /// match with another arm for the rest compile.
    pub matches: Vec<Place>,
    /// Mutants for which there is no place, such as `||` in a chain of `let`.
    pub unplaced: Vec<u32>,
}

/// Where in a text which mutants stand.
pub struct Place {
    pub range: Range<usize>,
    pub mutants: Vec<u32>,
}

/// Puts the mutants with these numbers into `source`.
///
/// # Errors
/// The source is not Rust.
pub fn insert(source: &str, mutants: &[(u32, &Mutant)]) -> Result<Switched> {
    let mut sites = Sites::default();
    sites.visit_file(&syn::parse_file(source).context("a source file")?);
    let mut unplaced = Vec::new();
    let mut groups: HashMap<Site, Vec<Alternative>> = HashMap::new();
    let mut matches: HashMap<Range<usize>, Vec<u32>> = HashMap::new();
    for &(id, mutant) in mutants {
        let span = mutant.span.bytes(source);
        let site = span.as_ref().and_then(|span| sites.of(mutant.genre, span));
        match (span, site) {
            (Some(span), Some(site)) => {
                if let Some(whole) = sites.matches.get(&span.start)
                    && mutant.genre == Genre::MatchArm
                {
                    matches.entry(whole.clone()).or_default().push(id);
                }
                groups.entry(site).or_default().push((id, span, &mutant.replacement));
            }
            _ => unplaced.push(id),
        }
    }
    let mut edits = Vec::new();
    for (site, alternatives) in groups {
        site.edit(source, &alternatives, &mut edits);
    }
    for (whole, all) in matches {
        let length = whole.len() as isize;
        for (at, order, part) in [
            (whole.start, (true, -length), Part::BeginMatch),
            (whole.end, (false, length), Part::EndMatch),
        ] {
            let (text, alone) = (String::new(), Vec::new());
            edits.push(Edit { at, order, text, alone, all: all.clone(), part });
        }
    }
    Ok(apply(source, edits, unplaced))
}

/// A mutant's number, what it replaces, and by what.
type Alternative<'a> = (u32, Range<usize>, &'a str);

/// Where a mutant is switched.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Site {
    /// Around an expression, by its bytes.
    Expression(Range<usize>),
    /// At the beginning of a function's body, by the bytes of what its braces hold.
    Body(Range<usize>),
    /// Behind a pattern, as a guard of its arm.
    Arm(usize),
}

/// Sites by the places that cargo-mutants gives: of the operator, of the field, of the arm.
#[derive(Default)]
struct Sites {
    at: HashMap<(Genre, usize), Site>,
    /// The bytes of the match that an arm is of, by where the arm begins.
    matches: HashMap<usize, Range<usize>>,
}

impl Sites {
    fn of(&self, genre: Genre, span: &Range<usize>) -> Option<Site> {
        match genre {
            Genre::FnValue => Some(Site::Body(span.clone())),
            Genre::MatchArmGuard => Some(Site::Expression(span.clone())),
            _ => self.at.get(&(genre, span.start)).cloned(),
        }
    }

    fn put(&mut self, genre: Genre, at: Span, site: Site) {
        self.at.insert((genre, at.byte_range().start), site);
    }
}

impl<'a> Visit<'a> for Sites {
    fn visit_expr_binary(&mut self, it: &'a syn::ExprBinary) {
        // A chain with a `let` is no expression that could stand in parentheses.
        if !has_let(&it.left) && !has_let(&it.right) {
            let whole = Site::Expression(it.span().byte_range());
            self.put(Genre::BinaryOperator, it.op.span(), whole);
        }
        visit::visit_expr_binary(self, it);
    }

    fn visit_expr_unary(&mut self, it: &'a syn::ExprUnary) {
        let whole = Site::Expression(it.span().byte_range());
        self.put(Genre::UnaryOperator, it.op.span(), whole);
        visit::visit_expr_unary(self, it);
    }

    fn visit_expr_struct(&mut self, it: &'a syn::ExprStruct) {
        for field in &it.fields {
            let whole = Site::Expression(it.span().byte_range());
            self.put(Genre::StructField, field.span(), whole);
        }
        visit::visit_expr_struct(self, it);
    }

    fn visit_expr_match(&mut self, it: &'a syn::ExprMatch) {
        for arm in &it.arms {
            self.matches.insert(arm.span().byte_range().start, it.span().byte_range());
        }
        visit::visit_expr_match(self, it);
    }

    fn visit_arm(&mut self, it: &'a syn::Arm) {
        let end = it.pat.span().byte_range().end;
        self.put(Genre::MatchArm, it.span(), Site::Arm(end));
        visit::visit_arm(self, it);
    }
}

fn has_let(it: &syn::Expr) -> bool {
    match it {
        syn::Expr::Let(_) => true,
        syn::Expr::Binary(binary) => has_let(&binary.left) || has_let(&binary.right),
        _ => false,
    }
}

/// A text that is put in at a place of the source.
struct Edit {
    at: usize,
    /// Order at one place: what ends there, inner first; then what begins there, outer first.
    order: (bool, isize),
    text: String,
    /// Where in `text` single mutants stand.
    alone: Vec<(Range<usize>, u32)>,
    /// All mutants of the site.
    all: Vec<u32>,
    part: Part,
}

/// What an edit is of its site.
#[derive(PartialEq, Eq)]
enum Part {
    Whole,
    Begin,
    End,
    BeginMatch,
    EndMatch,
}

impl Site {
    fn edit(&self, source: &str, alternatives: &[Alternative], to: &mut Vec<Edit>) {
        let all: Vec<u32> = alternatives.iter().map(|&(id, ..)| id).collect();
        let mut text = String::new();
        let mut alone = Vec::new();
        match self {
            Self::Arm(at) => {
                let on: Vec<String> =
                    all.iter().map(|id| format!("!mutant_switch::on({id})")).collect();
                text = format!(" if {}", on.join(" && "));
                alone.extend(all.iter().map(|&id| (0..text.len(), id)));
                to.push(Edit { at: *at, order: (false, 0), text, alone, all, part: Part::Whole });
            }
            Self::Body(body) => {
                for (id, _, replacement) in alternatives {
                    let begin = text.len();
                    text += &format!("if mutant_switch::on({id}) {{ return {replacement}; }} ");
                    alone.push((begin..text.len(), *id));
                }
                let order = (true, -(body.len() as isize));
                to.push(Edit { at: body.start, order, text, alone, all, part: Part::Whole });
            }
            Self::Expression(whole) => {
                text.push('(');
                for (id, span, replacement) in alternatives {
                    let begin = text.len();
                    text += &format!("if mutant_switch::on({id}) {{ ");
                    text += &source[whole.start..span.start];
                    text += &format!(" {replacement} ");
                    text += &source[span.end..whole.end];
                    text += " } else ";
                    alone.push((begin..text.len(), *id));
                }
                text += "{ ";
                let length = whole.len() as isize;
                to.push(Edit {
                    at: whole.start,
                    order: (true, -length),
                    text,
                    alone,
                    all: all.clone(),
                    part: Part::Begin,
                });
                to.push(Edit {
                    at: whole.end,
                    order: (false, length),
                    text: " })".into(),
                    alone: Vec::new(),
                    all,
                    part: Part::End,
                });
            }
        }
    }
}

fn apply(source: &str, mut edits: Vec<Edit>, unplaced: Vec<u32>) -> Switched {
    edits.sort_by_key(|edit| (edit.at, edit.order));
    let mut text = String::new();
    let mut places = Vec::new();
    let mut open = Vec::new();
    let mut around = Vec::new();
    let mut matches = Vec::new();
    let mut done = 0;
    for edit in edits {
        text += &source[done..edit.at];
        done = edit.at;
        let begin = text.len();
        text += &edit.text;
        for (range, id) in edit.alone {
            let range = begin + range.start..begin + range.end;
            places.push(Place { range, mutants: vec![id] });
        }
        match edit.part {
            Part::Whole => around.push(Place { range: begin..text.len(), mutants: edit.all }),
            Part::Begin | Part::BeginMatch => open.push(begin),
            // Sites are nested, so what ends is what began last.
            Part::End | Part::EndMatch => {
                let begin = open.pop().unwrap_or_default();
                let place = Place { range: begin..text.len(), mutants: edit.all };
                if edit.part == Part::End { &mut around } else { &mut matches }.push(place);
            }
        }
    }
    text += &source[done..];
    places.extend(around);
    Switched { text, places, matches, unplaced }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::list::made::mutant;

    fn switched(source: &str, mutants: &[Mutant]) -> Switched {
        let numbered: Vec<(u32, &Mutant)> = (1..).zip(mutants).collect();
        let switched = insert(source, &numbered).expect("Rust");
        syn::parse_file(&switched.text).expect("still Rust");
        switched
    }

    #[test]
    fn the_mutated_branch_repeats_the_original_and_the_last_one_goes_deeper() {
        let source = "fn f(a: u8) -> u8 { a + 1 * 2 }\n";
        let operator = |what, replacement| {
            mutant("src/lib.rs", source, (what, 0), replacement, Genre::BinaryOperator)
        };
        let it = switched(source, &[operator("+", "-"), operator("*", "/")]);
        assert_eq!(
            it.text,
            "fn f(a: u8) -> u8 { (if mutant_switch::on(1) { a  -  1 * 2 } else { a + \
             (if mutant_switch::on(2) { 1  /  2 } else { 1 * 2 }) }) }\n"
        );
        assert!(it.unplaced.is_empty());
        let place = &it.places[0];
        assert_eq!(
            (&it.text[place.range.clone()], &place.mutants[..]),
            ("if mutant_switch::on(1) { a  -  1 * 2 } else ", &[1][..])
        );
    }

    #[test]
    fn bodies_arms_guards_and_fields_have_their_places() {
        let source = "fn f(a: u8) -> u8 { match a { 1 => 2, 3 if a > 0 => 4, _ => 5 } }\n\
                      fn g() -> S { S { x: 1, ..S::default() } }\n";
        let body = "match a { 1 => 2, 3 if a > 0 => 4, _ => 5 }";
        let it = switched(
            source,
            &[
                mutant("src/lib.rs", source, (body, 0), "0", Genre::FnValue),
                mutant("src/lib.rs", source, ("1 => 2,", 0), "", Genre::MatchArm),
                mutant("src/lib.rs", source, ("a > 0", 0), "false", Genre::MatchArmGuard),
                mutant("src/lib.rs", source, ("x: 1,", 0), "", Genre::StructField),
            ],
        );
        assert_eq!(
            it.text,
            "fn f(a: u8) -> u8 { if mutant_switch::on(1) { return 0; } match a { \
             1 if !mutant_switch::on(2) => 2, \
             3 if (if mutant_switch::on(3) {  false  } else { a > 0 }) => 4, _ => 5 } }\n\
             fn g() -> S { (if mutant_switch::on(4) { S {    ..S::default() } } else \
             { S { x: 1, ..S::default() } }) }\n"
        );
        let [of_arms] = &it.matches[..] else { panic!("one match") };
        assert!(it.text[of_arms.range.clone()].starts_with("match a { 1 if"));
        assert!(it.text[of_arms.range.clone()].ends_with("_ => 5 }"));
        assert_eq!(of_arms.mutants, [2]);
    }

    #[test]
    fn a_chain_with_let_has_no_place() {
        let source =
            "fn f(a: Option<u8>) -> bool { if let Some(b) = a && b > 1 { true } else { false } }\n";
        let and = mutant("src/lib.rs", source, ("&&", 0), "||", Genre::BinaryOperator);
        assert_eq!(switched(source, &[and]).unplaced, [1]);
        let more = mutant("src/lib.rs", source, (">", 2), "<", Genre::BinaryOperator);
        assert!(switched(source, &[more]).unplaced.is_empty());
    }
}
