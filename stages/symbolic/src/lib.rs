//! Reasoning over symbols: knowledge bases from files and simulated families, environments of proof search,
//! paths and rule worlds, and the evaluation of policies in them.
//!
//! Terms, facts, rules and resolution are those of `stages-knowledge`. Policies see an environment's states
//! and candidate actions as rows of tokens ([`stages_env::CandidateBatch`]).

pub mod env;
pub mod ingest;
pub mod reasoning;
pub mod simulated_families;

/// The environments of this family, for [`stages_env::register`].
pub const ENV_FAMILY: stages_env::EnvFamily = stages_env::EnvFamily {
    name: env::FAMILY,
    open: env::open,
    evaluation_episodes: env::evaluation_episodes,
};

/// The stage kinds of this family.
pub fn kinds() -> Vec<Box<dyn stages_core::AnyStage>> {
    let mut kinds = stages_knowledge::kinds();
    kinds.extend([
        stages_core::erase(ingest::KnowledgeBase),
        stages_core::erase(simulated_families::SimulatedFamilies),
        stages_core::erase(env::Symbolic),
        stages_core::erase(reasoning::Reasoning),
    ]);
    kinds
}
