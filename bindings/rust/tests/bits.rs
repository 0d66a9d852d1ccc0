//! Scores against Python's, bit for bit. `tests/runtime/test_bindings.py` makes the cases, names their folder in
//! `RANKWOOD_CASES` and says what is in them.

use rankwood::{Batch, Error, Model, Value};
use std::{collections::HashMap, env, fs, path::Path, path::PathBuf, thread};

fn folders() -> Vec<PathBuf> {
    let cases = env::var_os("RANKWOOD_CASES").expect("RANKWOOD_CASES must name a folder of cases");
    fs::read_dir(cases).unwrap().map(|entry| entry.unwrap().path()).collect()
}

fn read<const SIZE: usize, T>(path: PathBuf, value: fn([u8; SIZE]) -> T) -> Vec<T> {
    let bytes = fs::read(&path).unwrap_or_else(|error| panic!("{path:?}: {error}"));
    bytes.chunks_exact(SIZE).map(|chunk| value(chunk.try_into().unwrap())).collect()
}

fn facts(folder: &Path) -> HashMap<String, String> {
    let text = fs::read_to_string(folder.join("facts")).unwrap();
    text.lines().map(|line| line.split_once(' ').unwrap()).map(|(key, value)| (key.into(), value.into())).collect()
}

fn assert_bits(got: &[f64], expected: &[f64], what: &str) {
    assert_eq!(got.len(), expected.len(), "{what}");
    for (row, (got, expected)) in got.iter().zip(expected).enumerate() {
        assert_eq!(got.to_bits(), expected.to_bits(), "{what}: row {row}, {got} instead of {expected}");
    }
}

fn compare<T: Value>(folder: &Path, model: &Model, kind: &str, rows: &[T], columns: &[T]) -> usize {
    let width = model.n_features();
    let offsets = read(folder.join("offsets"), i64::from_le_bytes);
    let mut workspace = model.workspace(facts(folder)["longest"].parse().unwrap()).unwrap();
    let mut compared = 0;
    for precision in ["double", "single"] {
        let expected = read(folder.join(format!("{precision}.{kind}")), f64::from_le_bytes);
        let mut scores = vec![0.0; expected.len()];
        let chosen = |batch: Batch<'_, T>, workspace: &mut _| {
            let batch = if precision == "single" { batch.single_precision() } else { batch };
            model.score_batch(batch, workspace).unwrap();
        };
        for size in [1, 2, 7, 10, 33, 100, 1000] {
            for (number, some) in scores.chunks_mut(size).enumerate() {
                let start = number * size * width;
                chosen(Batch::new(&rows[start..start + some.len() * width], some), &mut workspace);
            }
            assert_bits(&scores, &expected, &format!("{folder:?}, {precision}.{kind}, batches of {size}"));
            compared += 1;
        }
        chosen(Batch::new(columns, &mut scores).by_columns(), &mut workspace);
        assert_bits(&scores, &expected, &format!("{folder:?}, {precision}.{kind} by columns"));

        let mut trees = vec![0; scores.len()];
        chosen(Batch::new(rows, &mut scores).queries(&offsets).trees(&mut trees), &mut workspace);
        let expected = read(folder.join(format!("exit-{precision}.{kind}")), f64::from_le_bytes);
        assert_bits(&scores, &expected, &format!("{folder:?}, {precision}.{kind} with early exit"));
        assert_eq!(trees, read(folder.join(format!("trees-{precision}.{kind}")), i32::from_le_bytes), "{folder:?}");
        compared += 3;
    }
    compared
}

#[test]
#[ignore = "NOTHING COMPARED: needs RANKWOOD_CASES and --include-ignored"]
fn scores_are_those_of_python() {
    let mut compared = 0;
    for folder in folders() {
        let model = Model::load(folder.join("model.rw")).unwrap();
        for kind in ["f32", "f64"] {
            let (rows, columns) = (folder.join(format!("rows.{kind}")), folder.join(format!("columns.{kind}")));
            compared += match kind {
                "f32" => {
                    compare(&folder, &model, kind, &read(rows, f32::from_le_bytes), &read(columns, f32::from_le_bytes))
                }
                _ => {
                    compare(&folder, &model, kind, &read(rows, f64::from_le_bytes), &read(columns, f64::from_le_bytes))
                }
            };
        }
    }
    println!("{compared} comparisons");
}

#[test]
#[ignore = "NOTHING COMPARED: needs RANKWOOD_CASES and --include-ignored"]
fn facts_are_those_of_python() {
    for folder in folders() {
        let (model, facts) = (Model::load(folder.join("model.rw")).unwrap(), facts(&folder));
        assert_eq!(model.n_features().to_string(), facts["features"]);
        assert_eq!(model.n_trees().to_string(), facts["trees"]);
        assert_eq!(model.n_leaves().to_string(), facts["leaves"]);
        assert_eq!(model.fingerprint(), facts["fingerprint"]);
        assert_eq!(model.has_early_exit(), facts["exit"] == "1");
        let names: String =
            (0..).map_while(|feature| model.feature_name(feature)).map(|name| format!("{name}\n")).collect();
        assert_eq!(names, fs::read_to_string(folder.join("names")).unwrap());
    }
}

#[test]
#[ignore = "NOTHING COMPARED: needs RANKWOOD_CASES and --include-ignored"]
fn threads_share_a_model() {
    for folder in folders() {
        let model = Model::from_bytes(&fs::read(folder.join("model.rw")).unwrap()).unwrap();
        let rows = read(folder.join("rows.f32"), f32::from_le_bytes);
        let expected = read(folder.join("double.f32"), f64::from_le_bytes);
        thread::scope(|scope| {
            for _ in 0..8 {
                let (model, rows, expected) = (model.clone(), &rows, &expected);
                scope.spawn(move || {
                    let mut workspace = model.workspace(0).unwrap();
                    let mut scores = vec![0.0; expected.len()];
                    for _ in 0..5 {
                        model.score(rows, &mut scores, &mut workspace).unwrap();
                        assert_bits(&scores, expected, "in threads");
                    }
                });
            }
        });
    }
}

#[test]
fn what_is_no_model_is_an_error() {
    assert!(matches!(Model::load("nowhere.rw"), Err(Error::File(message)) if message.contains("nowhere.rw")));
    assert!(matches!(Model::load("no\0where.rw"), Err(Error::File(_))));
    assert!(matches!(Model::from_bytes(b"no model"), Err(Error::Model(message)) if !message.is_empty()));
    assert!(matches!(Model::from_bytes(b""), Err(Error::Model(message)) if !message.is_empty()));
}

#[test]
#[ignore = "NOTHING COMPARED: needs RANKWOOD_CASES and --include-ignored"]
fn mistakes_are_errors() {
    for folder in folders() {
        let load = || Model::load(folder.join("model.rw")).unwrap();
        let (model, mut other) = (load(), load().workspace(0).unwrap()); // whose model is dropped
        let mut workspace = model.workspace(0).unwrap();
        let row = vec![f64::NAN; model.n_features() + 1];
        let (mut score, mut trees) = ([0.0], [0; 2]);
        let right = &row[1..];
        assert_eq!(model.score(right, &mut score, &mut workspace), Ok(()));
        assert!(matches!(model.score(&row, &mut score, &mut workspace), Err(Error::Argument(_))));
        assert!(matches!(model.score(right, &mut score, &mut other), Err(Error::Workspace(_))));
        let batch = Batch::new(right, &mut score).trees(&mut trees);
        assert!(matches!(model.score_batch(batch, &mut workspace), Err(Error::Argument(_))));
        let mut workspace = model.workspace(1).unwrap();
        for wrong in [&[][..], &[0], &[0, 2], &[1, 1], &[0, -1, 1], &[-1, 1]] {
            let batch = Batch::new(right, &mut score).queries(wrong);
            assert!(matches!(model.score_batch(batch, &mut workspace), Err(Error::Argument(_))), "{wrong:?}");
        }
    }
}
