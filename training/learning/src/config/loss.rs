//! `[rl.loss]`: the kind of the loss and the parameters of that kind.
//!
//! [`LossConfig`] is one variant per loss; a parameter that the kind does not have is an unknown key. The
//! parameters are the fields of the loss itself, so that a new loss is one file in `loss`, and one [`LossKind`] and one
//! variant with their arms here. [`TrainOptions::loss`](crate::TrainOptions) trains with a loss that is not here.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::loss::{Apo, ApoLagged, Awr, DrGrpo, Gigpo, Grpo, Gspo, Loss, Ppo, Raft, Reinforce, Rloo, Wsft};

/// A loss with its parameters.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum LossConfig {
    /// A*-PO.
    Apo(Apo),
    /// A*-PO with a lagging reference. Its β₁ is `value.beta1`.
    ApoLagged {
        /// β₂ > 0, weight of the KL to the reference.
        beta2: f64,
    },
    /// Weighted SFT.
    Wsft(Wsft),
    /// AWR.
    Awr(Awr),
    /// RAFT.
    Raft(Raft),
    /// REINFORCE.
    Reinforce(Reinforce),
    /// RLOO.
    Rloo(Rloo),
    /// GRPO.
    Grpo(Grpo),
    /// Dr. GRPO.
    DrGrpo(DrGrpo),
    /// GSPO.
    Gspo(Gspo),
    /// GiGPO.
    Gigpo(Gigpo),
    /// PPO.
    Ppo(Ppo),
}

impl LossConfig {
    /// The loss of this kind with its default parameters.
    pub(crate) fn of(kind: LossKind) -> Self {
        match kind {
            LossKind::Apo => Self::Apo(Apo::default()),
            LossKind::ApoLagged => Self::ApoLagged { beta2: Apo::default().beta2 },
            LossKind::Wsft => Self::Wsft(Wsft::default()),
            LossKind::Awr => Self::Awr(Awr::default()),
            LossKind::Raft => Self::Raft(Raft::default()),
            LossKind::Reinforce => Self::Reinforce(Reinforce::default()),
            LossKind::Rloo => Self::Rloo(Rloo::default()),
            LossKind::Grpo => Self::Grpo(Grpo::default()),
            LossKind::DrGrpo => Self::DrGrpo(DrGrpo::default()),
            LossKind::Gspo => Self::Gspo(Gspo::default()),
            LossKind::Gigpo => Self::Gigpo(Gigpo::default()),
            LossKind::Ppo => Self::Ppo(Ppo::default()),
        }
    }

    /// Its kind.
    pub fn kind(&self) -> LossKind {
        match self {
            Self::Apo(_) => LossKind::Apo,
            Self::ApoLagged { .. } => LossKind::ApoLagged,
            Self::Wsft(_) => LossKind::Wsft,
            Self::Awr(_) => LossKind::Awr,
            Self::Raft(_) => LossKind::Raft,
            Self::Reinforce(_) => LossKind::Reinforce,
            Self::Rloo(_) => LossKind::Rloo,
            Self::Grpo(_) => LossKind::Grpo,
            Self::DrGrpo(_) => LossKind::DrGrpo,
            Self::Gspo(_) => LossKind::Gspo,
            Self::Gigpo(_) => LossKind::Gigpo,
            Self::Ppo(_) => LossKind::Ppo,
        }
    }

    /// The parameters of the critic's learning; `None` for a loss without a critic.
    pub(crate) fn with_critic(&self) -> Option<&Ppo> {
        match self {
            Self::Ppo(loss) => Some(loss),
            _ => None,
        }
    }

    /// The loss itself; `beta1` is `value.beta1`.
    pub(crate) fn loss(self, beta1: f64) -> Box<dyn Loss> {
        match self {
            Self::Apo(loss) => Box::new(loss),
            Self::ApoLagged { beta2 } => Box::new(ApoLagged { beta1, beta2 }),
            Self::Wsft(loss) => Box::new(loss),
            Self::Awr(loss) => Box::new(loss),
            Self::Raft(loss) => Box::new(loss),
            Self::Reinforce(loss) => Box::new(loss),
            Self::Rloo(loss) => Box::new(loss),
            Self::Grpo(loss) => Box::new(loss),
            Self::DrGrpo(loss) => Box::new(loss),
            Self::Gspo(loss) => Box::new(loss),
            Self::Gigpo(loss) => Box::new(loss),
            Self::Ppo(loss) => Box::new(loss),
        }
    }
}

impl Default for LossConfig {
    fn default() -> Self {
        Self::of(LossKind::Apo)
    }
}

/// The losses of this crate, by the names used in configurations and logs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum LossKind {
    /// A*-PO: regression of the log-ratio on the optimal advantage.
    Apo,
    /// A*-PO against a reference that follows the policy.
    ApoLagged,
    /// Weighted supervised fine-tuning with a KL term.
    Wsft,
    /// Advantage-weighted regression.
    Awr,
    /// Filtered supervised fine-tuning.
    Raft,
    /// REINFORCE.
    Reinforce,
    /// REINFORCE leave-one-out.
    Rloo,
    /// Group-relative policy optimization.
    Grpo,
    /// GRPO without division by standard deviation and length.
    DrGrpo,
    /// GRPO with one ratio per sequence.
    Gspo,
    /// GRPO with additional groups of turns at equal states.
    Gigpo,
    /// PPO with a critic.
    Ppo,
}

impl LossKind {
    /// All kinds, in the order of the documentation.
    pub const ALL: [Self; 12] = [
        Self::Apo,
        Self::ApoLagged,
        Self::Wsft,
        Self::Awr,
        Self::Raft,
        Self::Reinforce,
        Self::Rloo,
        Self::Grpo,
        Self::DrGrpo,
        Self::Gspo,
        Self::Gigpo,
        Self::Ppo,
    ];

    /// The name in prose.
    pub fn title(self) -> &'static str {
        match self {
            Self::Apo => "A*-PO",
            Self::ApoLagged => "lagged A*-PO",
            Self::Wsft => "weighted SFT",
            Self::Awr => "AWR",
            Self::Raft => "RAFT",
            Self::Reinforce => "REINFORCE",
            Self::Rloo => "RLOO",
            Self::Grpo => "GRPO",
            Self::DrGrpo => "Dr. GRPO",
            Self::Gspo => "GSPO",
            Self::Gigpo => "GiGPO",
            Self::Ppo => "PPO",
        }
    }

    /// The name in configurations and logs.
    pub fn name(self) -> &'static str {
        match self {
            Self::Apo => "apo",
            Self::ApoLagged => "apo-lagged",
            Self::Wsft => "wsft",
            Self::Awr => "awr",
            Self::Raft => "raft",
            Self::Reinforce => "reinforce",
            Self::Rloo => "rloo",
            Self::Grpo => "grpo",
            Self::DrGrpo => "dr-grpo",
            Self::Gspo => "gspo",
            Self::Gigpo => "gigpo",
            Self::Ppo => "ppo",
        }
    }
}

impl fmt::Display for LossKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_reads_back_with_its_parameters() {
        for kind in LossKind::ALL {
            let config = LossConfig::of(kind);
            assert_eq!(config.kind(), kind);
            let text = toml::to_string(&config).unwrap();
            assert!(text.contains(&format!("kind = \"{kind}\"")), "{text}");
            assert_eq!(toml::from_str::<LossConfig>(&text).unwrap(), config);
        }
    }
}
