//! Writing the manual pages and the completions of shells, from the definition of the command line.
//! Whoever installs the command runs this, so they cannot differ from it.

use crate::command::{self, Outcome};
use anyhow::{Context, Result};
use clap::builder::Resettable;
use clap::{Command, CommandFactory};
use clap_complete::{Shell, generate_to};
use std::fs::{self, create_dir_all};
use std::path::{Path, PathBuf};

/// Writes manual pages and completions: man1, bash, zsh and fish below a folder
#[derive(clap::Args)]
#[command(hide = true)]
pub struct Arguments {
    folder: PathBuf,
}

/// Writes everything below the folder, which is made.
pub fn run(arguments: &Arguments) -> Result<Outcome> {
    let folder = |name: &str| {
        let folder = arguments.folder.join(name);
        create_dir_all(&folder).with_context(|| format!("cannot make {}", folder.display()))?;
        anyhow::Ok(folder)
    };
    let mut whole = shown(command::Command::command()).disable_help_subcommand(true);
    whole.build();
    write_pages(&whole, &folder("man1")?).context("cannot write manual pages")?;
    for shell in [Shell::Bash, Shell::Zsh, Shell::Fish] {
        let mut whole = shown(command::Command::command());
        generate_to(shell, &mut whole, "bellwire", folder(&shell.to_string())?)
            .with_context(|| format!("cannot write the completion of {shell}"))?;
    }
    Ok(Outcome::Done)
}

/// The command without what it starts itself by, which completions would offer.
fn shown(whole: Command) -> Command {
    // clap cannot take a subcommand away, so this is the outside of the command once more.
    let outside = Command::new("bellwire")
        .version(env!("CARGO_PKG_VERSION"))
        .propagate_version(true)
        .about(Resettable::from(whole.get_about().cloned()))
        .after_help(Resettable::from(whole.get_after_help().cloned()));
    outside.subcommands(whole.get_subcommands().filter(|command| !command.is_hide_set()).cloned())
}

/// A page for the command, and for each below it.
fn write_pages(command: &Command, folder: &Path) -> std::io::Result<()> {
    for below in command.get_subcommands() {
        write_pages(below, folder)?;
    }
    let notes = command.get_after_help().map(ToString::to_string).unwrap_or_default();
    let page = clap_mangen::Man::new(command.clone().after_help(Resettable::Reset))
        .source(concat!("bellwire ", env!("CARGO_PKG_VERSION")))
        .manual("Bellwire");
    let mut text = Vec::new();
    page.render(&mut text)?;
    text.extend(sections(&notes).bytes());
    fs::write(folder.join(page.get_filename()), text)
}

/// What stands below the options in `--help`, as sections of a page. Indented lines stay as they
/// are: they are commands and tables, which filling would break.
fn sections(notes: &str) -> String {
    let mut page = String::new();
    let mut kept = false;
    for line in notes.lines() {
        let indented = line.starts_with(' ');
        if indented != kept {
            page += if indented { ".nf\n" } else { ".fi\n" };
            kept = indented;
        }
        let escaped = line.replace('\\', "\\e").replace('-', "\\-");
        if line.is_empty() {
            page += ".PP\n";
        } else if let Some(title) = escaped.strip_suffix(':').filter(|_| !indented) {
            page += &format!(".SH {}\n", title.to_uppercase());
        } else {
            // `\&` keeps a dot or an apostrophe at the beginning from being a request.
            page += &format!("\\&{escaped}\n");
        }
    }
    page
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Titles become sections, commands stay as they are, and nothing is taken for a request.
    #[test]
    fn notes_become_sections() {
        let notes = "Examples:\n  bellwire --x\n\n.so is text\\n.";
        let expected = ".SH EXAMPLES\n.nf\n\\&  bellwire \\-\\-x\n.fi\n.PP\n\\&.so is text\\en.\n";
        assert_eq!(sections(notes), expected);
    }
}
