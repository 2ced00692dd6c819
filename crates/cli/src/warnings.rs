//! Warnings of the libraries, on standard error: a stranger that holds a name, a peer of another
//! version, a link that broke the rules.

use std::fmt::{Debug, Write};
use std::sync::atomic::{AtomicU32, Ordering};
use tracing::field::{Field, Visit};
use tracing::level_filters::LevelFilter;
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Level, Metadata, Subscriber};

/// Most warnings of one run: a peer can cause them without end.
const WARNINGS: u32 = 20;

/// Prints warnings from now on.
pub fn print() {
    // It fails if another subscriber is set already, which then prints them.
    let _ = tracing::subscriber::set_global_default(Warnings { told: AtomicU32::new(0) });
}

struct Warnings {
    told: AtomicU32,
}

impl Subscriber for Warnings {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        *metadata.level() <= Level::WARN && metadata.target().starts_with("bellwire")
    }

    fn max_level_hint(&self) -> Option<LevelFilter> {
        Some(LevelFilter::WARN)
    }

    fn event(&self, event: &Event<'_>) {
        // Relaxed: it only counts.
        let told = self.told.fetch_add(1, Ordering::Relaxed);
        if told < WARNINGS {
            let mut line = Line::default();
            event.record(&mut line);
            eprintln!("bellwire: warning: {}{}", line.message, line.fields);
        } else if told == WARNINGS {
            eprintln!("bellwire: warning: there are more warnings, which are not printed");
        }
    }

    // Spans are not used.
    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }
    fn record(&self, _: &Id, _: &Record<'_>) {}
    fn record_follows_from(&self, _: &Id, _: &Id) {}
    fn enter(&self, _: &Id) {}
    fn exit(&self, _: &Id) {}
}

/// A warning as text: the message, then its fields.
#[derive(Default)]
struct Line {
    message: String,
    fields: String,
}

impl Visit for Line {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        // Writing to a string cannot fail.
        let _ = match field.name() {
            "message" => write!(self.message, "{value:?}"),
            name => write!(self.fields, ", {name} {value:?}"),
        };
    }
}
