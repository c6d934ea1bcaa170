//! The names of the crate `tokenizers` that candle-core 0.11 needs to compile its reader of GGUF tokenizers.
//!
//! The real crate tokenizes text for language models. Nothing here does, and it brings 26 crates. No model
//! can be built of this one (`BpeBuilder::build` fails, and `BPE` has no value), so everything behind it
//! cannot be reached.

use std::convert::Infallible;
use std::error::Error;

pub use tokenizer::{AddedToken, Tokenizer};

type Result<T> = std::result::Result<T, Box<dyn Error + Send + Sync>>;

/// A type without contents, into which the listed types convert.
macro_rules! wrapper {
    ($name:ident from $($from:ty),*) => {
        /// Any of its kind.
        #[derive(Clone)]
        pub struct $name;
        $(impl From<$from> for $name {
            fn from(_: $from) -> Self {
                Self
            }
        })*
    };
}

/// A step over bytes.
macro_rules! byte_level {
    () => {
        /// A step over bytes.
        #[derive(Default)]
        pub struct ByteLevel;
        impl ByteLevel {
            /// The step, whatever its settings.
            pub fn new(_: bool, _: bool, _: bool) -> Self {
                Self
            }
        }
    };
}

/// Models of tokens.
pub mod models {
    /// Byte-pair encoding.
    pub mod bpe {
        use super::super::{Infallible, Result};

        /// Ids by token.
        pub type Vocab = std::collections::HashMap<String, u32>;

        /// A model, which has no value here.
        pub struct BPE(pub(crate) Infallible);

        impl BPE {
            /// The settings of a model.
            pub fn builder() -> BpeBuilder {
                BpeBuilder
            }
        }

        /// The settings of a model.
        pub struct BpeBuilder;

        impl BpeBuilder {
            /// Ignored.
            pub fn vocab_and_merges(self, _: Vocab, _: Vec<(String, String)>) -> Self {
                self
            }

            /// Ignored.
            pub fn unk_token(self, _: String) -> Self {
                self
            }

            /// Ignored.
            pub fn byte_fallback(self, _: bool) -> Self {
                self
            }

            /// Ignored.
            pub fn ignore_merges(self, _: bool) -> Self {
                self
            }

            /// Always an error.
            pub fn build(self) -> Result<BPE> {
                Err("this program has no tokenizers".into())
            }
        }
    }
}

/// Normalizers of text.
pub mod normalizers {
    wrapper!(NormalizerWrapper from unicode::NFC);

    /// Unicode forms.
    pub mod unicode {
        /// Canonical composition.
        pub struct NFC;
    }
}

/// Splitters of text.
pub mod pre_tokenizers {
    wrapper!(PreTokenizerWrapper from byte_level::ByteLevel, split::Split, sequence::Sequence);

    /// Over bytes.
    pub mod byte_level {
        byte_level!();
    }

    /// One after another.
    pub mod sequence {
        /// Steps.
        pub struct Sequence;
        impl Sequence {
            /// The steps, whatever they are.
            pub fn new(_: Vec<super::PreTokenizerWrapper>) -> Self {
                Self
            }
        }
    }

    /// By a pattern.
    pub mod split {
        use crate::tokenizer::SplitDelimiterBehavior;

        /// A pattern.
        pub enum SplitPattern {
            /// A regular expression.
            Regex(String),
        }

        /// A split by a pattern.
        pub struct Split;

        impl Split {
            /// The split, whatever its pattern.
            pub fn new(_: SplitPattern, _: SplitDelimiterBehavior, _: bool) -> crate::Result<Self> {
                Ok(Self)
            }
        }
    }
}

/// Decoders of tokens.
pub mod decoders {
    wrapper!(DecoderWrapper from byte_level::ByteLevel);

    /// Over bytes.
    pub mod byte_level {
        byte_level!();
    }
}

/// Steps after tokens.
pub mod processors {
    /// Any of its kind.
    #[derive(Clone)]
    pub enum PostProcessorWrapper {
        /// By a template.
        Template(template::TemplateProcessing),
        /// Any other.
        Other,
    }

    impl From<byte_level::ByteLevel> for PostProcessorWrapper {
        fn from(_: byte_level::ByteLevel) -> Self {
            Self::Other
        }
    }

    impl From<sequence::Sequence> for PostProcessorWrapper {
        fn from(_: sequence::Sequence) -> Self {
            Self::Other
        }
    }

    /// Over bytes.
    pub mod byte_level {
        byte_level!();
    }

    /// One after another.
    pub mod sequence {
        /// Steps.
        pub struct Sequence;
        impl Sequence {
            /// The steps, whatever they are.
            pub fn new(_: Vec<super::PostProcessorWrapper>) -> Self {
                Self
            }
        }
    }

    /// By a template.
    pub mod template {
        use crate::Result;

        /// A template.
        #[derive(Clone)]
        pub struct TemplateProcessing;

        impl TemplateProcessing {
            /// The settings of a template.
            pub fn builder() -> Builder {
                Builder
            }
        }

        /// The settings of a template.
        pub struct Builder;

        impl Builder {
            /// Ignored.
            pub fn try_single(&mut self, _: Vec<String>) -> Result<&mut Self> {
                Ok(self)
            }

            /// Ignored.
            pub fn try_pair(&mut self, _: Vec<String>) -> Result<&mut Self> {
                Ok(self)
            }

            /// Ignored.
            pub fn special_tokens(&mut self, _: Vec<(String, u32)>) -> &mut Self {
                self
            }

            /// The template.
            pub fn build(&mut self) -> Result<TemplateProcessing> {
                Ok(TemplateProcessing)
            }
        }
    }
}

/// The whole of it.
pub mod tokenizer {
    use super::models::bpe::BPE;
    use super::{Infallible, Result, decoders, normalizers, pre_tokenizers, processors};

    /// The place of a delimiter.
    pub enum SplitDelimiterBehavior {
        /// By itself.
        Isolated,
    }

    /// A token added to a model's.
    pub struct AddedToken;

    impl AddedToken {
        /// The token, whatever it is.
        pub fn from(_: String, _: bool) -> Self {
            Self
        }
    }

    /// A tokenizer, which has no value here.
    pub struct Tokenizer(Infallible);

    impl Tokenizer {
        /// Cannot be called, as there is no model.
        pub fn new(model: BPE) -> Self {
            match model.0 {}
        }

        /// Cannot be called.
        pub fn with_normalizer(&mut self, _: Option<normalizers::NormalizerWrapper>) -> Result<&mut Self> {
            match self.0 {}
        }

        /// Cannot be called.
        pub fn with_pre_tokenizer(&mut self, _: Option<pre_tokenizers::PreTokenizerWrapper>) -> &mut Self {
            match self.0 {}
        }

        /// Cannot be called.
        pub fn with_decoder(&mut self, _: Option<decoders::DecoderWrapper>) -> &mut Self {
            match self.0 {}
        }

        /// Cannot be called.
        pub fn with_post_processor(&mut self, _: Option<processors::PostProcessorWrapper>) -> &mut Self {
            match self.0 {}
        }

        /// Cannot be called.
        pub fn add_special_tokens(&mut self, _: Vec<AddedToken>) -> Result<usize> {
            match self.0 {}
        }
    }
}
