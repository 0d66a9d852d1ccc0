//! Tree rankers scored by librankwood: the same bits as `Ensemble.score` in Python, without Python.
//!
//! ```no_run
//! # fn main() -> Result<(), rankwood::Error> {
//! let model = rankwood::Model::load("model.rw")?; // share it between threads: clones are the same model
//! let mut workspace = model.workspace(0)?; // one per thread
//! let features = vec![0.5_f32; 100 * model.n_features()]; // of 100 documents, one behind the other
//! let mut scores = vec![0.0; 100];
//! model.score(&features, &mut scores, &mut workspace)?;
//! # Ok(())
//! # }
//! ```
//!
//! Scoring allocates nothing, takes no lock and starts no thread. Memory is freed when the last [`Model`] and the last
//! [`Workspace`] of it are dropped, in any order.

#![warn(missing_docs)]

mod batch;
mod error;
#[allow(non_camel_case_types)]
mod ffi;

pub use batch::{Batch, Value};
pub use error::Error;

use std::ffi::{c_char, c_int, CStr, CString};
use std::path::Path;
use std::ptr::{self, NonNull};
use std::sync::Arc;

/// A model that never changes. A clone is the same model, not a copy of its trees.
#[derive(Clone)]
pub struct Model(Arc<Handle>);

/// Memory that one thread at a time scores in. It keeps its model alive.
pub struct Workspace {
    raw: NonNull<ffi::rw_workspace>,
    _model: Arc<Handle>, // dropped after the workspace itself
}

struct Handle(NonNull<ffi::rw_model>);

// SAFETY: the library never changes a model once it is loaded.
unsafe impl Send for Handle {}
unsafe impl Sync for Handle {}
// SAFETY: a workspace belongs to no thread; `score` takes it mutably, so one thread at a time uses it.
unsafe impl Send for Workspace {}

impl Drop for Handle {
    fn drop(&mut self) {
        // SAFETY: the library made it, and nobody else has it any more.
        unsafe { ffi::rw_free(self.0.as_ptr()) }
    }
}

impl Drop for Workspace {
    fn drop(&mut self) {
        // SAFETY: the library made it, and nobody else has it; its model is still there.
        unsafe { ffi::rw_workspace_free(self.raw.as_ptr()) }
    }
}

impl Model {
    /// The model in a file (`.rw`).
    pub fn load(path: impl AsRef<Path>) -> Result<Self, Error> {
        let path = path.as_ref();
        let Ok(name) = CString::new(path.as_os_str().as_encoded_bytes()) else {
            return Err(Error::File(format!("{path:?}: a name cannot contain a zero byte")));
        };
        // SAFETY: the name ends with a zero; `loaded` gives the rest.
        Self::loaded(|model, message, size| unsafe { ffi::rw_load(name.as_ptr(), model, message, size) })
    }

    /// The model that a file of these bytes holds; they are not needed afterwards.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, Error> {
        Self::loaded(|model, message, size| {
            // SAFETY: pointer and length are a slice's; `loaded` gives the rest.
            unsafe { ffi::rw_load_memory(bytes.as_ptr().cast(), bytes.len(), model, message, size) }
        })
    }

    fn loaded(load: impl FnOnce(*mut *mut ffi::rw_model, *mut c_char, usize) -> c_int) -> Result<Self, Error> {
        let mut raw = ptr::null_mut();
        let mut message = [0_u8; 1024];
        let status = load(&mut raw, message.as_mut_ptr().cast(), message.len());
        match NonNull::new(raw) {
            Some(raw) if status == ffi::RW_OK => Ok(Model(Arc::new(Handle(raw)))),
            _ => {
                let text = message.split(|&byte| byte == 0).next().unwrap_or_default();
                Err(Error::new(status, String::from_utf8_lossy(text).into_owned()))
            }
        }
    }

    fn raw(&self) -> *const ffi::rw_model {
        self.0 .0.as_ptr()
    }

    /// Number of features that a row must have.
    pub fn n_features(&self) -> usize {
        // SAFETY: the model is alive, here and below.
        unsafe { ffi::rw_n_features(self.raw()) }
    }

    /// Number of trees.
    pub fn n_trees(&self) -> usize {
        unsafe { ffi::rw_n_trees(self.raw()) }
    }

    /// Number of leaves of all trees.
    pub fn n_leaves(&self) -> usize {
        unsafe { ffi::rw_n_leaves(self.raw()) }
    }

    /// Name of a feature; `None` when features have no names or there is no such feature.
    pub fn feature_name(&self, feature: usize) -> Option<&str> {
        // SAFETY: a name ends with a zero and lives as long as the model, which `self` keeps.
        unsafe { text(ffi::rw_feature_name(self.raw(), feature)) }
    }

    /// 64 hexadecimal digits that tell models apart: as `Ensemble.fingerprint()` in Python.
    pub fn fingerprint(&self) -> &str {
        // SAFETY: as for names.
        unsafe { text(ffi::rw_fingerprint(self.raw())) }.unwrap_or_default()
    }

    /// Whether documents may stop before the last tree when queries are known: see [`Batch::queries`].
    pub fn has_early_exit(&self) -> bool {
        unsafe { ffi::rw_has_early_exit(self.raw()) != 0 }
    }

    /// Memory to score in, for one thread at a time. `max_query_rows` is the number of documents of the largest query
    /// that is scored with [`Batch::queries`]; 0 where that is not used.
    pub fn workspace(&self, max_query_rows: usize) -> Result<Workspace, Error> {
        let mut raw = ptr::null_mut();
        // SAFETY: the model is alive, and `raw` is where the answer goes.
        Error::check(unsafe { ffi::rw_workspace_new(self.raw(), max_query_rows, &mut raw) })?;
        let raw = NonNull::new(raw).expect("the library reported success");
        Ok(Workspace { raw, _model: Arc::clone(&self.0) })
    }

    /// Scores of `f32` or `f64` rows that lie one behind the other, one score per row; through all trees.
    pub fn score<T: Value>(&self, rows: &[T], scores: &mut [f64], workspace: &mut Workspace) -> Result<(), Error> {
        self.score_batch(Batch::new(rows, scores), workspace)
    }

    /// The same with early exit, in single precision or column by column: see [`Batch`].
    pub fn score_batch<T: Value>(&self, mut batch: Batch<'_, T>, workspace: &mut Workspace) -> Result<(), Error> {
        let raw = batch.as_raw(self.n_features())?;
        // SAFETY: `as_raw` checked every length, the library checks offsets and whose workspace it is.
        Error::check(unsafe { ffi::rw_score(self.raw(), &raw, workspace.raw.as_ptr()) })
    }
}

/// Version of the library.
pub fn version() -> &'static str {
    // SAFETY: the text is static and ends with a zero.
    unsafe { text(ffi::rw_version()) }.unwrap_or_default()
}

/// Instruction set that scoring uses on this CPU: "avx2", say.
pub fn instruction_set() -> &'static str {
    // SAFETY: the text is static and ends with a zero.
    unsafe { text(ffi::rw_instruction_set()) }.unwrap_or_default()
}

/// SAFETY: null, or text that ends with a zero and lives as long as the caller says.
unsafe fn text<'a>(pointer: *const c_char) -> Option<&'a str> {
    if pointer.is_null() {
        return None;
    }
    unsafe { CStr::from_ptr(pointer) }.to_str().ok()
}
