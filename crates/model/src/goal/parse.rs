//! Reads the text of a schedule, token by token.

use std::collections::HashMap;

use super::{GoalError, MOST_RANKS, Operation, Rank, Schedule, Work};

/// A token: a word, digits, `-1`, or a sign. The end of a statement is a line feed or semicolon.
type Token<'a> = &'a str;

fn told(token: Token<'_>) -> String {
    if is_end(token) { "the end of the line".to_owned() } else { format!("`{token}`") }
}

fn is_end(token: Token<'_>) -> bool {
    matches!(token, "\n" | ";")
}

/// Letters, digits and underscores, with a letter first.
fn is_word(token: Token<'_>) -> bool {
    token.starts_with(|first: char| first.is_ascii_alphabetic())
}

impl Schedule {
    /// Reads a schedule.
    ///
    /// # Errors
    /// The first error, with its line: an unexpected token, an undefined or duplicate label, a
    /// nonexistent rank, or operations that require each other.
    pub fn read(text: &str) -> Result<Schedule, GoalError> {
        let tokens = tokens(text)?;
        let mut reader = Reader { tokens: &tokens, at: 0 };
        reader.skip_ends();
        let line = reader.line();
        reader.expect("num_ranks")?;
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
                Some("rank") => {}
                Some(other) => {
                    return wrong(line, format!("`rank` should stand here, not {}", told(other)));
                }
            }
            let number = reader.number("a rank")?;
            let Some(place) = usize::try_from(number).ok().and_then(|at| ranks.get_mut(at)) else {
                return wrong(line, format!("rank {number} is beyond num_ranks {count}"));
            };
            if place.is_some() {
                return wrong(line, format!("rank {number} stands here for the second time"));
            }
            reader.expect("{")?;
            *place = Some(reader.rank(count as u32, line)?);
        }
        Ok(Schedule { ranks: ranks.into_iter().map(Option::unwrap_or_default).collect() })
    }
}

fn wrong<T>(line: usize, why: impl Into<String>) -> Result<T, GoalError> {
    Err(GoalError { line, why: why.into() })
}

/// Words, numbers and signs with their lines.
fn tokens(text: &str) -> Result<Vec<(usize, Token<'_>)>, GoalError> {
    let mut tokens = Vec::new();
    let (mut rest, mut line) = (text, 1);
    while let Some(character) = rest.chars().next() {
        let run = |inside: fn(char) -> bool| rest.find(|c| !inside(c)).unwrap_or(rest.len());
        let (length, is_token) = match character {
            '\n' | ';' | ':' | '{' | '}' => (1, true),
            ' ' | '\t' | '\r' => (1, false),
            '/' if rest.starts_with("//") => (run(|c| c != '\n'), false),
            '/' if rest.starts_with("/*") => match rest.find("*/") {
                Some(end) => (end + 2, false),
                None => return wrong(line, "this comment does not end; `*/` is missing"),
            },
            '-' if rest.starts_with("-1")
                && !rest[2..].starts_with(|c: char| c.is_ascii_digit()) =>
            {
                (2, true)
            }
            '0'..='9' => (run(|c| c.is_ascii_digit()), true),
            'a'..='z' | 'A'..='Z' => (run(|c| c.is_ascii_alphanumeric() || c == '_'), true),
            other => return wrong(line, format!("{other:?} does not belong into a schedule")),
        };
        let (token, after) = rest.split_at(length);
        if is_token {
            tokens.push((line, token));
        }
        line += token.matches('\n').count();
        rest = after;
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
        while self.peek().is_some_and(is_end) {
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
                wrong(line, format!("{what} should stand here, not {}", told(other)))
            }
            None => wrong(line, format!("{what} should stand here, but the text is over")),
        }
    }

    fn expect(&mut self, token: &str) -> Result<(), GoalError> {
        self.take(&format!("`{token}`"), |found| (found == token).then_some(()))
    }

    fn number(&mut self, what: &str) -> Result<u64, GoalError> {
        let line = self.line();
        let is_number = |found: &str| found.starts_with(|first: char| first.is_ascii_digit());
        let digits =
            self.take(&format!("{what}, a number,"), |found| is_number(found).then_some(found))?;
        digits.parse().or_else(|_| wrong(line, format!("`{digits}` is too large")))
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
        if self.option("-1") {
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
                Some("}") => break,
                Some(word) if is_word(word) => word,
                Some(other) => {
                    let what = "a label, `send`, `recv`, `calc` or `}`";
                    return wrong(line, format!("{what} should stand here, not {}", told(other)));
                }
                None => {
                    let why = format!("the rank of line {opened} does not end; `}}` is missing");
                    return wrong(line, why);
                }
            };
            match (word, self.peek()) {
                (label, Some(":")) => {
                    self.at += 1;
                    if labels.insert(label, rank.operations.len()).is_some() {
                        return wrong(line, format!("label `{label}` is there already"));
                    }
                    let is_work = |token| matches!(token, "send" | "recv" | "calc");
                    let work = self.take("`send`, `recv` or `calc`", |token| {
                        is_work(token).then_some(token)
                    })?;
                    rank.operations.push(self.operation(work, ranks, line)?);
                }
                (label, Some(word @ ("requires" | "irequires"))) => {
                    self.at += 1;
                    let on = self.take("a label", |token| is_word(token).then_some(token))?;
                    dependencies.push((line, label, on, word == "irequires"));
                }
                (work @ ("send" | "recv" | "calc"), _) => {
                    rank.operations.push(self.operation(work, ranks, line)?);
                }
                (label, _) => {
                    let what = "`:`, `requires` or `irequires`";
                    return wrong(line, format!("{what} should follow label `{label}`"));
                }
            }
            if let Some(other) = self.peek().filter(|&next| !is_end(next) && next != "}") {
                let why = format!("the line should end here, but goes on with {}", told(other));
                return wrong(self.line(), why);
            }
        }
        for (line, label, on, begun) in dependencies {
            let find = |label: &str| match labels.get(label) {
                Some(&operation) => Ok(operation),
                None => wrong(line, format!("no operation of this rank has the label `{label}`")),
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
            self.expect("b")?;
            self.expect(if is_send { "to" } else { "from" })?;
            let peer = match is_send {
                true => Some(self.small("a rank")?),
                false => self.small_or_any("a rank")?,
            };
            if let Some(peer) = peer.filter(|&peer| peer >= ranks) {
                return wrong(line, format!("there is no rank {peer}: num_ranks is {ranks}"));
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
        let is_there = self.peek() == Some(word);
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
