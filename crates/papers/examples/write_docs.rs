//! Writes what is generated under `docs/`: the page of the rows, and what each parameter of a model
//! moves. `make docs` runs it.

use std::error::Error;
use std::fs;
use std::path::Path;

use bellwire_model::perturbed::with_section;
use bellwire_model::system::SYSTEMS;
use bellwire_papers::checkout;
use bellwire_papers::document::{DOCUMENT_PATH, feature_rows_markdown};

fn main() -> Result<(), Box<dyn Error>> {
    let top = checkout::find(Path::new("."))?;
    let write = |page: &str, text: String| {
        fs::write(top.join(page), text)?;
        println!("wrote {page}");
        Ok::<(), Box<dyn Error>>(())
    };
    write(DOCUMENT_PATH, feature_rows_markdown())?;
    for perturbations in SYSTEMS.map(|system| system.perturbations) {
        let page = fs::read_to_string(top.join(perturbations.page))?;
        write(perturbations.page, with_section(&page, &(perturbations.section)()?))?;
    }
    Ok(())
}
