use crate::ffi;
use std::ffi::{c_int, CStr};
use std::fmt;

/// Why something was refused: a kind, and a sentence that says what is wrong.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Error {
    /// Rows, scores, trees or offsets that do not fit each other or the model.
    Argument(String),
    /// The file cannot be read.
    File(String),
    /// It is not a model, or is damaged.
    Model(String),
    /// There is not enough memory.
    Memory(String),
    /// The workspace is another model's, or too small for the documents of a query.
    Workspace(String),
    /// `RANKWOOD_ISA` names an instruction set that this CPU cannot run.
    Cpu(String),
    /// A status that this version of the crate does not know.
    Other(String),
}

impl Error {
    pub(crate) fn new(status: c_int, message: String) -> Self {
        match status {
            ffi::RW_ERROR_ARGUMENT => Error::Argument(message),
            ffi::RW_ERROR_FILE => Error::File(message),
            ffi::RW_ERROR_MODEL => Error::Model(message),
            ffi::RW_ERROR_MEMORY => Error::Memory(message),
            ffi::RW_ERROR_WORKSPACE => Error::Workspace(message),
            ffi::RW_ERROR_CPU => Error::Cpu(message),
            _ => Error::Other(message),
        }
    }

    /// The error of a status, with the library's own words for it.
    pub(crate) fn check(status: c_int) -> Result<(), Self> {
        if status == ffi::RW_OK {
            return Ok(());
        }
        // SAFETY: the text is static and ends with a zero.
        let text = unsafe { CStr::from_ptr(ffi::rw_status_text(status)) };
        Err(Self::new(status, text.to_string_lossy().into_owned()))
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Argument(message)
            | Error::File(message)
            | Error::Model(message)
            | Error::Memory(message)
            | Error::Workspace(message)
            | Error::Cpu(message)
            | Error::Other(message) => f.write_str(message),
        }
    }
}

impl std::error::Error for Error {}
