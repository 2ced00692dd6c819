//! `bellwire paper`: how far the project has come with the papers that it joins.

use crate::command::{Outcome, print_json};
use anyhow::Result;
use bellwire_papers::{Paper, Query, State, scoreboard};

/// What the project shows of the papers that it joins
#[derive(clap::Args)]
pub struct Arguments {
    #[command(subcommand)]
    what: What,
}

#[derive(clap::Subcommand)]
enum What {
    /// Prints each feature row with its state and the tests that show it
    ///
    /// Run it inside a checkout of Bellwire: rows come from crates/papers/rows.toml, states from citations in the code and
    /// from `shows:` lines above tests. It fails if a citation names a row that does not exist.
    #[command(after_help = "\
Examples:
  bellwire paper rows                            all rows
  bellwire paper rows --paper damq-pd --state open
  bellwire paper rows --json | jq .totals")]
    Rows(Rows),
}

#[derive(clap::Args)]
struct Rows {
    /// Only this paper: chpp-nic, damq-pd, myvia, smp-interconnect, hpcl-ethernet or baselines
    #[arg(long)]
    paper: Option<Paper>,
    /// Only rows in this state: shown (by a test), cited (in code only) or open
    #[arg(long)]
    state: Option<State>,
    /// One JSON object instead of a table
    #[arg(long)]
    json: bool,
}

/// Prints the scoreboard; fails if the project's citations have problems.
pub fn run(arguments: &Arguments) -> Result<Outcome> {
    let What::Rows(Rows { paper, state, json }) = &arguments.what;
    let query = Query { paper: *paper, state: *state };
    let board = scoreboard(&std::env::current_dir()?, &query)?;
    if *json {
        print_json(&board)?;
    } else {
        println!("{board}");
    }
    Ok(Outcome::done_if(board.problems.is_empty()))
}
