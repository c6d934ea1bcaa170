//! Memory that Rust writes and NumPy views.
#![expect(unsafe_code, reason = "a view from Python lives beside the slice that a step writes")]

use pyo3::exceptions::PyBufferError;
use pyo3::ffi;
use pyo3::prelude::*;
use std::cell::UnsafeCell;
use std::ffi::c_int;

/// Bytes at a fixed address, aligned to 8, exposed to Python by the buffer protocol.
#[pyclass(frozen, module = "runner._native")]
pub struct Buffer {
    words: Box<[UnsafeCell<u64>]>,
    len: usize,
    writable: bool,
}

// SAFETY: Rust reads and writes the bytes only in `Buffer::values`, whose callers hold the environment
// exclusively. Python's views of what an environment writes are read-only; that another thread reads them
// during a step is as wrong as with any array of NumPy's that a function writes without the global lock, and
// yields old or new numbers.
unsafe impl Sync for Buffer {}

/// A type of which every pattern of bits that a buffer can hold is a value.
///
/// # Safety
/// No larger alignment than 8, no padding, zero is a value; and all patterns are if the buffer is writable
/// from Python.
pub(crate) unsafe trait Plain: Copy {}
// SAFETY: numbers.
unsafe impl Plain for f32 {}
// SAFETY: numbers.
unsafe impl Plain for u32 {}
// SAFETY: zeroed at first, and then written by Rust alone: `Buffer::values` refuses writable buffers.
unsafe impl Plain for bool {}

impl Buffer {
    /// A buffer of `len` zeros of `T`. With `writable`, Python may write to it.
    pub(crate) fn zeros<T: Plain>(len: usize, writable: bool) -> Self {
        let bytes = len * size_of::<T>();
        let words = (0..bytes.div_ceil(8)).map(|_| UnsafeCell::new(0)).collect();
        Self {
            words,
            len: bytes,
            writable,
        }
    }

    /// The values.
    ///
    /// # Safety
    /// The caller owns the environment of this buffer exclusively, and holds no other slice of it.
    #[expect(clippy::mut_from_ref, reason = "the bytes are in cells")]
    pub(crate) unsafe fn values<T: Plain + 'static>(&self) -> &mut [T] {
        assert!(!self.writable || std::any::TypeId::of::<T>() != std::any::TypeId::of::<bool>());
        // SAFETY: cells have the layout of their values, `T` is smaller and less aligned than a word, and the
        // bytes are values of `T`.
        unsafe { std::slice::from_raw_parts_mut(self.words.as_ptr() as *mut T, self.len / size_of::<T>()) }
    }
}

#[pymethods]
impl Buffer {
    unsafe fn __getbuffer__(slf: Bound<'_, Self>, view: *mut ffi::Py_buffer, flags: c_int) -> PyResult<()> {
        if view.is_null() {
            return Err(PyBufferError::new_err("no view is given"));
        }
        let buffer = slf.get();
        let (data, len) = (buffer.words.as_ptr() as *mut std::ffi::c_void, buffer.len);
        // SAFETY: the view keeps this object alive, and with it the bytes, which never move.
        let code = unsafe {
            ffi::PyBuffer_FillInfo(
                view,
                slf.as_ptr(),
                data,
                len as ffi::Py_ssize_t,
                c_int::from(!buffer.writable),
                flags,
            )
        };
        if code == 0 { Ok(()) } else { Err(PyErr::fetch(slf.py())) }
    }
}
