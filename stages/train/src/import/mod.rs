//! Policies that other libraries trained.

<<<<<<< HEAD
pub(crate) mod sb3;
=======
>>>>>>> 98442465b (ONNX models as policies, and policies from files)
pub(crate) mod stage;
