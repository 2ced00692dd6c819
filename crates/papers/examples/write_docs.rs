//! Writes the pages under `docs/` that are generated from the rows. `make docs` runs it.

use std::error::Error;
use std::fs;
use std::path::Path;

use bellwire_papers::checkout;
use bellwire_papers::document::{DOCUMENT_PATH, feature_rows_markdown};

fn main() -> Result<(), Box<dyn Error>> {
    let page = checkout::find(Path::new("."))?.join(DOCUMENT_PATH);
    fs::write(&page, feature_rows_markdown())?;
    println!("wrote {}", page.display());
    Ok(())
}
