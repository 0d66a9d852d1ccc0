//! Re-ranks the candidates of a query: `cargo run --example rerank MODEL < candidates`.
//!
//! A candidate is a line: its id, then its features, separated by spaces or tabs; NaN or nan is a missing one. The best
//! comes first in the output.

use std::{env, error::Error, io, io::Write, process::ExitCode};

fn main() -> ExitCode {
    match rerank() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

fn rerank() -> Result<(), Box<dyn Error>> {
    let path = env::args_os().nth(1).ok_or("usage: rerank MODEL < candidates")?;
    let model = rankwood::Model::load(path)?;
    let mut workspace = model.workspace(0)?; // a server keeps one per thread

    let mut ids = Vec::new();
    let mut features = Vec::<f32>::new(); // of all candidates, one behind the other: one call is faster than many
    for (number, line) in (1..).zip(io::stdin().lines()) {
        let line = line?;
        let mut words = line.split_whitespace();
        let id = words.next().ok_or_else(|| format!("line {number} is empty: it must have an id and features"))?;
        ids.push(id.to_owned());
        let before = features.len();
        for word in words {
            features.push(word.parse().map_err(|_| format!("line {number}: '{word}' is not a number"))?);
        }
        let (found, needed) = (features.len() - before, model.n_features());
        if found != needed {
            return Err(format!("line {number} has {found} features, the model has {needed}").into());
        }
    }

    let mut scores = vec![0.0; ids.len()];
    model.score(&features, &mut scores, &mut workspace)?;

    let mut ranked: Vec<_> = ids.iter().zip(&scores).collect();
    ranked.sort_by(|a, b| b.1.total_cmp(a.1));
    let mut output = io::stdout().lock();
    for (id, score) in ranked {
        writeln!(output, "{id} {score}")?;
    }
    Ok(())
}
