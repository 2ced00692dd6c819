//! Reads the text of a schedule, token by token.

use std::collections::HashMap;

use super::{GoalError, MOST_RANKS, Operation, Rank, Schedule, Work};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Token<'a> {
    /// Letters, digits and underscores; begins with a letter.
    Word(&'a str),
    /// Digits.
    Number(u64),
    /// `-1`.
    Any,
    Colon,
    Open,
    Close,
    /// The end of a line, or a semicolon.
    End,
}

impl Token<'_> {
    fn told(self) -> String {
        match self {
            Token::Word(word) => format!("`{word}`"),
            Token::Number(number) => format!("`{number}`"),
            Token::Any => "`-1`".to_owned(),
            Token::Colon => "`:`".to_owned(),
            Token::Open => "`{`".to_owned(),
            Token::Close => "`}`".to_owned(),
            Token::End => "the end of the line".to_owned(),
        }
    }
}

/// Reads a schedule.
pub(super) fn read(text: &str) -> Result<Schedule, GoalError> {
    let tokens = tokens(text)?;
    let mut reader = Reader { tokens: &tokens, at: 0 };
    reader.skip_ends();
    let line = reader.line();
    reader.word("num_ranks")?;
    let count = reader.number("the number of ranks")?;
    if count == 0 || count > MOST_RANKS.into() {
        return wrong(line, format!("num_ranks is {count}, but must be 1 to {MOST_RANKS}"));
    }
    let mut ranks: Vec<Option<Rank>> = vec![None; count as usize];
    loop {
        reader.skip_ends();
        let line = reader.line();
        match reader.next() {
            None => break,
            Some(Token::Word("rank")) => {}
            Some(other) => {
                return wrong(line, format!("`rank` should stand here, not {}", other.told()));
            }
        }
        let number = reader.number("a rank")?;
        let Some(place) = usize::try_from(number).ok().and_then(|at| ranks.get_mut(at)) else {
            return wrong(line, format!("rank {number} is beyond num_ranks {count}"));
        };
        if place.is_some() {
            return wrong(line, format!("rank {number} stands here for the second time"));
        }
        reader.expect(Token::Open)?;
        *place = Some(reader.rank(count as u32, line)?);
    }
    Ok(Schedule { ranks: ranks.into_iter().map(Option::unwrap_or_default).collect() })
}

fn wrong<T>(line: usize, why: impl Into<String>) -> Result<T, GoalError> {
    Err(GoalError { line, why: why.into() })
}

/// Words, numbers and signs with their lines.
fn tokens(text: &str) -> Result<Vec<(usize, Token<'_>)>, GoalError> {
    let mut tokens = Vec::new();
    let (mut rest, mut line) = (text, 1);
    while let Some(character) = rest.chars().next() {
        let length = match character {
            '\n' | ';' => {
                tokens.push((line, Token::End));
                line += usize::from(character == '\n');
                1
            }
            ' ' | '\t' | '\r' => 1,
            ':' | '{' | '}' => {
                let token = match character {
                    ':' => Token::Colon,
                    '{' => Token::Open,
                    _ => Token::Close,
                };
                tokens.push((line, token));
                1
            }
            '/' if rest.starts_with("//") => rest.find('\n').unwrap_or(rest.len()),
            '/' if rest.starts_with("/*") => {
                let Some(end) = rest.find("*/") else {
                    return wrong(line, "this comment does not end; `*/` is missing");
                };
                line += rest[..end].matches('\n').count();
                end + 2
            }
            '-' if rest.starts_with("-1")
                && !rest[2..].starts_with(|c: char| c.is_ascii_digit()) =>
            {
                tokens.push((line, Token::Any));
                2
            }
            '0'..='9' => {
                let end = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
                let Ok(number) = rest[..end].parse() else {
                    return wrong(line, format!("`{}` is too large", &rest[..end]));
                };
                tokens.push((line, Token::Number(number)));
                end
            }
            'a'..='z' | 'A'..='Z' => {
                let is_inside = |c: char| c.is_ascii_alphanumeric() || c == '_';
                let end = rest.find(|c| !is_inside(c)).unwrap_or(rest.len());
                tokens.push((line, Token::Word(&rest[..end])));
                end
            }
            other => return wrong(line, format!("{other:?} does not belong into a schedule")),
        };
        rest = &rest[length..];
    }
    Ok(tokens)
}

struct Reader<'a> {
    tokens: &'a [(usize, Token<'a>)],
    at: usize,
}

/// A dependency with unresolved labels: line, dependent, requirement, and whether its beginning
/// suffices.
type Dependency<'a> = (usize, &'a str, &'a str, bool);

impl<'a> Reader<'a> {
    fn peek(&self) -> Option<Token<'a>> {
        self.tokens.get(self.at).map(|&(_, token)| token)
    }

    fn next(&mut self) -> Option<Token<'a>> {
        let token = self.peek();
        self.at += 1;
        token
    }

    /// The line of the next token, or the last line.
    fn line(&self) -> usize {
        self.tokens.get(self.at).or(self.tokens.last()).map_or(1, |&(line, _)| line)
    }

    fn skip_ends(&mut self) {
        while self.peek() == Some(Token::End) {
            self.at += 1;
        }
    }

    /// Takes the next token if it has the expected form.
    fn take<T>(
        &mut self,
        what: &str,
        form: impl Fn(Token<'a>) -> Option<T>,
    ) -> Result<T, GoalError> {
        let line = self.line();
        match self.peek().map(|token| (token, form(token))) {
            Some((_, Some(value))) => {
                self.at += 1;
                Ok(value)
            }
            Some((other, None)) => {
                wrong(line, format!("{what} should stand here, not {}", other.told()))
            }
            None => wrong(line, format!("{what} should stand here, but the text is over")),
        }
    }

    fn expect(&mut self, token: Token<'static>) -> Result<(), GoalError> {
        self.take(&token.told(), |found| (found == token).then_some(()))
    }

    fn word(&mut self, word: &str) -> Result<(), GoalError> {
        self.take(&format!("`{word}`"), |found| (found == Token::Word(word)).then_some(()))
    }

    fn number(&mut self, what: &str) -> Result<u64, GoalError> {
        self.take(&format!("{what}, a number,"), |found| match found {
            Token::Number(number) => Some(number),
            _ => None,
        })
    }

    /// A number that fits 32 bits.
    fn small(&mut self, what: &str) -> Result<u32, GoalError> {
        let line = self.line();
        let number = self.number(what)?;
        u32::try_from(number)
            .or_else(|_| wrong(line, format!("{what} is {number}, which is too large")))
    }

    /// A number, or -1 for any.
    fn small_or_any(&mut self, what: &str) -> Result<Option<u32>, GoalError> {
        if self.peek() == Some(Token::Any) {
            self.at += 1;
            return Ok(None);
        }
        self.small(what).map(Some)
    }

    /// The statements between the braces of a rank.
    fn rank(&mut self, ranks: u32, opened: usize) -> Result<Rank, GoalError> {
        let mut rank = Rank::default();
        let mut labels: HashMap<&str, usize> = HashMap::new();
        let mut dependencies: Vec<Dependency<'_>> = Vec::new();
        loop {
            self.skip_ends();
            let line = self.line();
            let word = match self.next() {
                Some(Token::Close) => break,
                Some(Token::Word(word)) => word,
                Some(other) => {
                    let what = "a label, `send`, `recv`, `calc` or `}`";
                    return wrong(line, format!("{what} should stand here, not {}", other.told()));
                }
                None => {
                    return wrong(
                        line,
                        format!("the rank of line {opened} does not end; `}}` is missing"),
                    );
                }
            };
            match (word, self.peek()) {
                (label, Some(Token::Colon)) => {
                    self.at += 1;
                    if labels.insert(label, rank.operations.len()).is_some() {
                        return wrong(line, format!("label `{label}` is there already"));
                    }
                    let work = self.take("`send`, `recv` or `calc`", |token| match token {
                        Token::Word(word @ ("send" | "recv" | "calc")) => Some(word),
                        _ => None,
                    })?;
                    rank.operations.push(self.operation(work, ranks, line)?);
                }
                (label, Some(Token::Word(word @ ("requires" | "irequires")))) => {
                    self.at += 1;
                    let on = self.take("a label", |token| match token {
                        Token::Word(label) => Some(label),
                        _ => None,
                    })?;
                    dependencies.push((line, label, on, word == "irequires"));
                }
                (work @ ("send" | "recv" | "calc"), _) => {
                    rank.operations.push(self.operation(work, ranks, line)?);
                }
                (label, _) => {
                    return wrong(
                        line,
                        format!("`:`, `requires` or `irequires` should follow label `{label}`"),
                    );
                }
            }
            match self.peek() {
                Some(Token::End | Token::Close) | None => {}
                Some(other) => {
                    return wrong(
                        self.line(),
                        format!("the line should end here, but goes on with {}", other.told()),
                    );
                }
            }
        }
        for (line, label, on, begun) in dependencies {
            let find = |label: &str| {
                let found = labels.get(label).copied();
                found.ok_or_else(|| GoalError {
                    line,
                    why: format!("no operation of this rank has the label `{label}`"),
                })
            };
            let (operation, on) = (find(label)?, find(on)?);
            let operation = &mut rank.operations[operation];
            if begun { operation.irequires.push(on) } else { operation.requires.push(on) }
        }
        acyclic(&rank)?;
        Ok(rank)
    }

    /// The parts after `send`, `recv` or `calc`.
    fn operation(&mut self, work: &str, ranks: u32, line: usize) -> Result<Operation, GoalError> {
        let work = if work == "calc" {
            Work::Calculate { ns: self.number("nanoseconds")? }
        } else {
            let is_send = work == "send";
            let bytes = self.number("a length")?;
            self.word("b")?;
            self.word(if is_send { "to" } else { "from" })?;
            let peer = match is_send {
                true => Some(self.small("a rank")?),
                false => self.small_or_any("a rank")?,
            };
            if peer.is_some_and(|peer| peer >= ranks) {
                return wrong(
                    line,
                    format!("there is no rank {}: num_ranks is {ranks}", peer.unwrap_or(0)),
                );
            }
            let tag = match self.option("tag") {
                true if is_send => Some(self.small("a tag")?),
                true => self.small_or_any("a tag")?,
                false => Some(0),
            };
            match (is_send, peer, tag) {
                (true, Some(to), Some(tag)) => Work::Send { bytes, to, tag },
                _ => Work::Receive { bytes, from: peer, tag },
            }
        };
        let cpu = if self.option("cpu") { self.small("a processor")? } else { 0 };
        if self.option("nic") {
            // A rank has one interface here, so the number has no effect.
            self.small("an interface")?;
        }
        Ok(Operation { work, cpu, line, requires: Vec::new(), irequires: Vec::new() })
    }

    fn option(&mut self, word: &str) -> bool {
        let is_there = self.peek() == Some(Token::Word(word));
        self.at += usize::from(is_there);
        is_there
    }
}

/// Refuses operations that can never begin because they require each other.
fn acyclic(rank: &Rank) -> Result<(), GoalError> {
    let all = &rank.operations;
    let needs = |at: usize| all[at].requires.iter().chain(&all[at].irequires);
    let mut left: Vec<usize> = (0..all.len()).map(|at| needs(at).count()).collect();
    let mut leads_to = vec![Vec::new(); all.len()];
    for at in 0..all.len() {
        needs(at).for_each(|&on| leads_to[on].push(at));
    }
    let mut free: Vec<usize> = (0..all.len()).filter(|&at| left[at] == 0).collect();
    while let Some(at) = free.pop() {
        for &next in &leads_to[at] {
            left[next] -= 1;
            if left[next] == 0 {
                free.push(next);
            }
        }
    }
    match left.iter().position(|&needs| needs > 0) {
        None => Ok(()),
        Some(at) => wrong(
            all[at].line,
            "this operation can never begin: what it requires requires it, or each other",
        ),
    }
}
