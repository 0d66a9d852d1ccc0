use crate::{ffi, Error};
use std::ptr;

mod sealed {
    pub trait Sealed {
        const KIND: u32;
    }
    impl Sealed for f32 {
        const KIND: u32 = crate::ffi::RW_FLOAT32;
    }
    impl Sealed for f64 {
        const KIND: u32 = crate::ffi::RW_FLOAT64;
    }
}

/// What a feature's value may be: `f32` or `f64`, compared exactly either way. A missing value is NaN.
pub trait Value: sealed::Sealed + Copy {}
impl Value for f32 {}
impl Value for f64 {}

/// Rows to score and where their scores go, with all that scoring can do.
///
/// There are as many rows as scores.
#[must_use = "Model::score_batch scores it"]
pub struct Batch<'a, T: Value> {
    values: &'a [T],
    scores: &'a mut [f64],
    offsets: Option<&'a [i64]>,
    trees: Option<&'a mut [i32]>,
    by_columns: bool,
    flags: u32,
}

impl<'a, T: Value> Batch<'a, T> {
    /// Rows that lie one behind the other, and one score for each.
    pub fn new(values: &'a [T], scores: &'a mut [f64]) -> Self {
        Batch { values, scores, offsets: None, trees: None, by_columns: false, flags: 0 }
    }

    /// With early exit: documents of query `q` are the rows from `offsets[q]` to before `offsets[q + 1]`, and may stop
    /// before the last tree when they are far behind the best. Nothing changes for a model without early exit.
    pub fn queries(mut self, offsets: &'a [i64]) -> Self {
        self.offsets = Some(offsets);
        self
    }

    /// Where to write the number of trees that each row went through.
    pub fn trees(mut self, trees: &'a mut [i32]) -> Self {
        self.trees = Some(trees);
        self
    }

    /// The values lie column by column: those of the first feature, then those of the second.
    pub fn by_columns(mut self) -> Self {
        self.by_columns = true;
        self
    }

    /// Sums in `f32`, faster; as `precision="single"` in Python.
    pub fn single_precision(mut self) -> Self {
        self.flags |= ffi::RW_SINGLE_PRECISION;
        self
    }

    /// The same in the words of C. All pointers reach as far as the numbers say: that is what this checks.
    pub(crate) fn as_raw(&mut self, n_features: usize) -> Result<ffi::rw_batch, Error> {
        let n_rows = self.scores.len();
        if n_rows.checked_mul(n_features) != Some(self.values.len()) {
            let n_values = self.values.len();
            return Err(Error::Argument(format!("{n_values} values are not {n_rows} rows of {n_features} features")));
        }
        if let Some(trees) = self.trees.as_ref().filter(|trees| trees.len() != n_rows) {
            return Err(Error::Argument(format!("{n_rows} rows need as many trees, got room for {}", trees.len())));
        }
        if self.offsets.is_some_and(<[i64]>::is_empty) {
            return Err(Error::Argument("offsets of queries end with the number of rows, got none".into()));
        }
        let strides = if self.by_columns { (1, n_rows) } else { (n_features, 1) };
        Ok(ffi::rw_batch {
            size: size_of::<ffi::rw_batch>() as u32,
            kind: T::KIND,
            flags: self.flags,
            reserved: 0,
            values: self.values.as_ptr().cast(),
            n_rows,
            n_features,
            row_stride: strides.0 as isize,
            feature_stride: strides.1 as isize,
            query_offsets: self.offsets.map_or(ptr::null(), <[i64]>::as_ptr),
            n_queries: self.offsets.map_or(0, |offsets| offsets.len() - 1),
            scores: self.scores.as_mut_ptr(),
            trees: self.trees.as_mut().map_or(ptr::null_mut(), |trees| trees.as_mut_ptr()),
        })
    }
}
