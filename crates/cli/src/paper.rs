//! `bellwire paper`: the project's state for each paper that it joins, and the papers' experiments
//! on its models.

mod all;
mod hpcl_real;
mod system;

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
    /// Prints each feature row with its state and the tests that show it, or why there are none
    ///
    /// Run it inside a checkout of Bellwire. Rows come from crates/papers/rows.toml, states from
    /// citations in the code and from `shows:` lines above tests. It fails if a citation names a
    /// row that does not exist.
    #[command(after_help = "\
Examples:
  bellwire paper rows                            all rows
  bellwire paper rows --paper damq-pd --state open
  bellwire paper rows --json | jq .totals")]
    Rows(Rows),
    /// Runs the experiments of all papers, and puts them on one page
    ///
    /// Prints for each paper how many values match the published ones, and how closely. It fails if
    /// a value or statement misses the paper without an explanation. It uses all cores.
    #[command(after_help = "\
Examples:
  bellwire paper all                             a line for each paper
  bellwire paper all --html report.html          one page that opens offline
  bellwire paper all --svg charts                each chart as a file
  bellwire paper all --json | jq '.[].reports[].values'")]
    All(all::Arguments),
    #[command(flatten)]
    Experiments(system::OfSystem),
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

/// Prints the requested table.
pub fn run(arguments: &Arguments) -> Result<Outcome> {
    match &arguments.what {
        What::Rows(rows) => print_rows(rows),
        What::All(arguments) => all::run(arguments),
        What::Experiments(of_system) => of_system.run(),
    }
}

/// Prints the scoreboard; fails if the project's citations have problems.
fn print_rows(Rows { paper, state, json }: &Rows) -> Result<Outcome> {
    let query = Query { paper: *paper, state: *state };
    let board = scoreboard(&std::env::current_dir()?, &query)?;
    if *json {
        print_json(&board)?;
    } else {
        println!("{board}");
    }
    Ok(Outcome::done_if(board.problems.is_empty()))
}
