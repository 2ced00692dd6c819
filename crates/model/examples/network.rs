//! Runs a plan: `cargo run --release -p bellwire-model --example network -- PLAN.toml`. Without one, runs the example plan.

use bellwire_model::network::{EXAMPLE, Plan};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let text = match std::env::args().nth(1) {
        Some(path) => std::fs::read_to_string(path)?,
        None => EXAMPLE.to_owned(),
    };
    let (plan, mut experiment) = Plan::read(&text)?;
    println!("{}", experiment.fabric().topology().name());
    println!("{:?}", plan.traffic);
    let report = experiment.run()?;
    print!("{report}");
    println!(
        "fairness     {:.3} (least through most delivered from a terminal)",
        report.fairness()
    );
    Ok(())
}
