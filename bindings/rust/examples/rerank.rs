//! Re-ranks the candidates of a query: `cargo run --example rerank MODEL < candidates`.
//!
//! A candidate is a line: its id, then its features ("NaN" where one is missing). The best comes first in the output.

use std::{env, error::Error, io};

fn main() -> Result<(), Box<dyn Error>> {
    let path = env::args().nth(1).ok_or("usage: rerank MODEL < candidates")?;
    let model = rankwood::Model::load(path)?;
    let mut workspace = model.workspace(0)?; // a server keeps one per thread

    let mut ids = Vec::new();
    let mut features = Vec::<f32>::new(); // of all candidates, one behind the other: one call is faster than many
    for line in io::stdin().lines() {
        let line = line?;
        let mut words = line.split_whitespace();
        ids.push(words.next().ok_or("an empty line")?.to_owned());
        for word in words {
            features.push(word.parse()?);
        }
    }

    let mut scores = vec![0.0; ids.len()];
    model.score(&features, &mut scores, &mut workspace)?;

    let mut ranked: Vec<_> = ids.iter().zip(&scores).collect();
    ranked.sort_by(|a, b| b.1.total_cmp(a.1));
    for (id, score) in ranked {
        println!("{id} {score}");
    }
    Ok(())
}
