//! Finds librankwood: in the folder that `RANKWOOD_LIB_DIR` names, or where `pkg-config` says.

use std::{env, process::exit, process::Command};

fn main() {
    println!("cargo:rerun-if-env-changed=RANKWOOD_LIB_DIR");
    println!("cargo:rerun-if-env-changed=PKG_CONFIG_PATH");
    if env::var_os("DOCS_RS").is_some() {
        return; // documentation is not linked
    }
    if let Ok(folder) = env::var("RANKWOOD_LIB_DIR") {
        println!("cargo:rustc-link-search=native={folder}");
        println!("cargo:rustc-link-lib=dylib=rankwood");
        return;
    }
    let found = Command::new("pkg-config").args(["--libs", "rankwood"]).output();
    let Some(found) = found.ok().filter(|found| found.status.success()) else {
        eprintln!(
            "librankwood was not found: set RANKWOOD_LIB_DIR to its folder, or PKG_CONFIG_PATH to that of rankwood.pc"
        );
        exit(1);
    };
    for word in String::from_utf8_lossy(&found.stdout).split_whitespace() {
        if let Some(folder) = word.strip_prefix("-L") {
            println!("cargo:rustc-link-search=native={folder}");
        } else if let Some(library) = word.strip_prefix("-l") {
            println!("cargo:rustc-link-lib=dylib={library}");
        }
    }
}
