//! What `rankwood.h` declares.

use std::ffi::{c_char, c_int, c_void};

#[repr(C)]
pub struct rw_model {
    _private: [u8; 0],
}

#[repr(C)]
pub struct rw_workspace {
    _private: [u8; 0],
}

pub const RW_OK: c_int = 0;
pub const RW_ERROR_ARGUMENT: c_int = 1;
pub const RW_ERROR_FILE: c_int = 2;
pub const RW_ERROR_MODEL: c_int = 3;
pub const RW_ERROR_MEMORY: c_int = 4;
pub const RW_ERROR_WORKSPACE: c_int = 5;
pub const RW_ERROR_CPU: c_int = 6;

pub const RW_FLOAT32: u32 = 0;
pub const RW_FLOAT64: u32 = 1;
pub const RW_SINGLE_PRECISION: u32 = 1;

#[repr(C)]
pub struct rw_batch {
    pub size: u32,
    pub kind: u32,
    pub flags: u32,
    pub reserved: u32,
    pub values: *const c_void,
    pub n_rows: usize,
    pub n_features: usize,
    pub row_stride: isize,
    pub feature_stride: isize,
    pub query_offsets: *const i64,
    pub n_queries: usize,
    pub scores: *mut f64,
    pub trees: *mut i32,
}

extern "C" {
    pub fn rw_status_text(status: c_int) -> *const c_char;
    pub fn rw_version() -> *const c_char;
    pub fn rw_instruction_set() -> *const c_char;
    pub fn rw_load(path: *const c_char, model: *mut *mut rw_model, message: *mut c_char, size: usize) -> c_int;
    pub fn rw_load_memory(
        bytes: *const c_void,
        n_bytes: usize,
        model: *mut *mut rw_model,
        message: *mut c_char,
        size: usize,
    ) -> c_int;
    pub fn rw_free(model: *mut rw_model);
    pub fn rw_n_features(model: *const rw_model) -> usize;
    pub fn rw_n_trees(model: *const rw_model) -> usize;
    pub fn rw_n_leaves(model: *const rw_model) -> usize;
    pub fn rw_feature_name(model: *const rw_model, feature: usize) -> *const c_char;
    pub fn rw_fingerprint(model: *const rw_model) -> *const c_char;
    pub fn rw_has_early_exit(model: *const rw_model) -> c_int;
    pub fn rw_workspace_new(model: *const rw_model, max_query_rows: usize, workspace: *mut *mut rw_workspace) -> c_int;
    pub fn rw_workspace_free(workspace: *mut rw_workspace);
    pub fn rw_score(model: *const rw_model, batch: *const rw_batch, workspace: *mut rw_workspace) -> c_int;
}
