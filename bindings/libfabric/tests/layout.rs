//! The structures of `abi` match the installed headers.

use bellwire_fi::abi;
use std::path::Path;
use std::process::Command;

/// Asks a C compiler for `facts`; returns the wrong ones, one a line.
fn disagreements(facts: &[(String, usize)]) -> String {
    let directory = std::env::temp_dir().join(format!("bellwire-layout-{}", std::process::id()));
    std::fs::create_dir_all(&directory).unwrap();
    let headers = ["fabric", "fi_atomic", "fi_cm", "fi_domain", "fi_endpoint", "fi_eq", "fi_errno"];
    let mut program =
        String::from("#include <stddef.h>\n#include <stdio.h>\n#include <string.h>\n");
    for header in headers.iter().chain(&["fi_tagged", "fi_rma", "providers/fi_prov"]) {
        program += &format!("#include <rdma/{header}.h>\n");
    }
    program += "int main(void) {\n";
    for (fact, ours) in facts {
        program += &format!(
            "if ((size_t)({fact}) != {ours}ULL) printf(\"{fact}: %zu there, {ours} here\\n\", (size_t)({fact}));\n"
        );
    }
    program += "return 0; }\n";
    let (source, binary) = (directory.join("layout.c"), directory.join("layout"));
    std::fs::write(&source, program).unwrap();
    let compiled = Command::new("cc").arg("-w").arg(&source).arg("-o").arg(&binary).output();
    let compiled = compiled.expect("a C compiler: apt install gcc");
    assert!(compiled.status.success(), "{}", String::from_utf8_lossy(&compiled.stderr));
    let told = Command::new(&binary).output().unwrap();
    std::fs::remove_dir_all(&directory).unwrap();
    String::from_utf8(told.stdout).unwrap()
}

/// All sizes, offsets and table positions that we rely on are those of the C headers. The canary, a
/// wrong size, is caught.
#[test]
#[ignore = "needs the headers of libfabric (apt install libfabric-dev); `make test-mpi` runs it"]
fn layouts_are_those_of_the_headers() {
    assert!(Path::new("/usr/include/rdma/fabric.h").exists(), "apt install libfabric-dev");
    let mut facts = abi::layout();
    assert!(facts.len() > 200);
    assert_eq!(disagreements(&facts), "");
    facts.truncate(1);
    facts[0].1 += 8;
    assert!(disagreements(&facts).contains("there"), "the canary");
}
