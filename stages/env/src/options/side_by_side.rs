//! [`Core::step`] for many environments side by side: the same operations on the same numbers in the same order, a pass of
//! columns at a time, so that the bytes are the same. What few environments need in a step (a settlement, a liquidation, the
//! margin rule itself, the next episode) is done for each of them by the functions that [`Core::step`] uses.

use super::block::{Block, Lanes, Slot, each};
use super::config::{MAX_LINES, RewardKind};
use super::core::Core;
use super::lanes::{Column, Fields, LANES, Path, Shown};
use super::ledger::Ledger;
use super::margin::{MAX_POSITIONS, MarginLeg, requirement_and_pairs};
use super::marks::Closable;
use super::tables::{At, Entry};
use crate::ranges::StepView;

/// What a step finds of the lines and shows later; kept from block to block to be written over.
pub(crate) struct Work {
    mark: [Column; MAX_LINES],
    delta: [Column; MAX_LINES],
    vega: [Column; MAX_LINES],
    fields: Fields,
    shown: Shown,
}

impl Work {
    pub(crate) fn new() -> Self {
        Self {
            mark: [[0.0; LANES]; MAX_LINES],
            delta: [[0.0; LANES]; MAX_LINES],
            vega: [[0.0; LANES]; MAX_LINES],
            fields: Fields([[0.0; LANES]; Entry::WIDTH]),
            shown: Shown([[[0.0; 8]; 6]; LANES / 8]),
        }
    }
}

/// What the lines of each lane are worth.
struct Value {
    marks: Column,
    liquid: Column,
    greeks: [Column; 4],
    margin: Column,
    closable: Closables,
    /// Lanes with a line that settles at this snapshot.
    settled: Lanes,
    /// Lanes whose margin the rule must find.
    unpaired: Lanes,
}

/// [`Closable`] by bit.
pub(crate) struct Closables {
    some: Lanes,
    oldest: Lanes,
}

/// Environments of a block and what they write: the lanes from `first` on, `lanes` of them.
pub(crate) struct Stepped<'a, 'b> {
    /// The number of the first lane's environment.
    pub env: usize,
    /// How many lanes are environments; the others are stepped and not shown.
    pub lanes: usize,
    pub actions: &'a [u32],
    /// The place of the first lane in `out`.
    pub at: usize,
    pub out: &'a mut StepView<'b>,
    pub finals: &'a mut [Option<Ledger>],
}

/// The lanes for which `which` holds.
#[inline(always)]
fn lanes(mut which: impl FnMut(usize) -> bool) -> Lanes {
    let mut bits = 0;
    for k in 0..LANES {
        bits |= u64::from(which(k)) << k;
    }
    bits
}

impl Core {
    /// One step of each lane.
    #[inline(always)]
    pub(crate) fn step_block<P: Path>(&self, block: &mut Block, slots: &mut [Slot], work: &mut Work, mut to: Stepped) {
        let before = (block.nav, block.peak, block.traded);
        self.act_block(block, slots, &to);
        for k in 0..LANES {
            let interest = block.cash[k] * self.tables.accrual[block.t[k] as usize];
            block.cash[k] += interest;
            block.interest[k] += interest;
            block.t[k] += 1;
        }
        let now: [At<'_>; LANES] = std::array::from_fn(|k| self.tables.at(block.t[k] as usize));
        let mut underlying: Column = std::array::from_fn(|k| now[k].underlying);

        let used = block.lines.iter().copied().max().unwrap_or(0) as usize;
        let Value {
            marks,
            liquid,
            greeks,
            margin,
            mut closable,
            settled,
            unpaired,
        } = self.value_block::<P>(&now, &underlying, block, &slots[..used], work);
        self.mark_block(block, &underlying, &marks, &liquid, &greeks, &margin);
        for k in each(unpaired & !settled) {
            self.pair(now[k], block, &mut slots[..used], work, k);
        }
        let short_of_margin = lanes(|k| {
            block.cash[k] + 0.5 * block.units[k] * underlying[k] < self.config.margin.maintenance * block.margin[k]
        });
        // Lanes whose lines are no longer those that `work` has the marks of.
        let mut changed = settled | short_of_margin;
        for k in each(changed) {
            let found = self.settle_lane(now[k], block, slots, k);
            closable.set(k, found);
        }
        let over = self.reward_block(block, &underlying, before, &mut to);
        self.mask_block::<P>(&now, block, slots, &closable);

        for k in each(over) {
            let mut lane = block.lane(slots, k);
            let mut one = lane.one(self.config.lines);
            if k < to.lanes {
                self.observe(one.account, one.lines, to.out.final_obs.row(to.at + k));
                to.finals[to.at + k] = Some(self.ledger(&one));
            }
            one.account.episode += 1;
            self.begin(to.env + k, &mut one);
            block.put(self, slots, k, &lane);
            underlying[k] = self.tables.underlying[block.t[k] as usize];
        }
        changed |= over;
        self.show_block::<P>(block, slots, used, &underlying, work, &mut to);
        for k in each(changed) {
            if k < to.lanes {
                let mut lane = block.lane(slots, k);
                let one = lane.one(self.config.lines);
                self.observe(one.account, one.lines, to.out.obs.row(to.at + k));
            }
        }
    }

    /// Marks the lines, and finds the margin of accounts that are paired as they were.
    #[inline(always)]
    fn value_block<P: Path>(
        &self,
        now: &[At<'_>; LANES],
        underlying: &Column,
        block: &Block,
        slots: &[Slot],
        work: &mut Work,
    ) -> Value {
        let rule = &self.config.margin;
        let mut marks = [0.0; LANES];
        let mut liquid = [0.0; LANES];
        let mut greeks = [[0.0; LANES]; 4];
        let mut sides = [[0.0; LANES]; 2];
        let mut premium = [0.0; LANES];
        let (mut some, mut oldest) = ([0_u64; LANES], [1_u64; LANES]);
        let (mut settled, mut unpaired) = ([0_u64; LANES], [0_u64; LANES]);
        for (s, slot) in slots.iter().enumerate() {
            let entries: [&Entry; LANES] = std::array::from_fn(|k| now[k].entry_or_none(slot.contract[k]));
            P::fields(&entries, &mut work.fields);
            let [bid, ask, mark, delta, gamma, vega, theta, source] = &work.fields.0;
            for k in 0..LANES {
                let units = f64::from(slot.quantity[k]) * self.multiplier;
                marks[k] += units * mark[k];
                let exit = if slot.quantity[k] < 0 { ask[k] } else { bid[k] };
                let unquoted = if source[k] == Entry::QUOTED { 0.0 } else { mark[k] };
                liquid[k] += units * if exit.is_nan() { unquoted } else { exit };
                greeks[0][k] += units * delta[k];
                greeks[1][k] += units * gamma[k];
                greeks[2][k] += units * vega[k];
                greeks[3][k] += units * theta[k];
            }
            for k in 0..LANES {
                let exit = if slot.quantity[k] < 0 { ask[k] } else { bid[k] };
                let held = slot.contract[k] != super::tables::NO_CONTRACT;
                some[k] |= u64::from(held & !exit.is_nan());
                oldest[k] &= u64::from(!exit.is_nan() | (slot.group[k] != slots[0].group[k]));
                settled[k] |= u64::from(source[k] == Entry::SETTLED);
            }
            let pairing = &slot.pairing;
            for k in 0..LANES {
                let strike = slot.strike[k];
                let call = slot.call[k] != 0;
                let (out, base) = if call {
                    (strike - underlying[k], underlying[k])
                } else {
                    (underlying[k] - strike, strike)
                };
                let naked = (rule.rate * underlying[k] - out.max(0.0)).max(rule.minimum * base);
                let need = naked + mark[k];
                unpaired[k] |= u64::from(!(pairing.worst[k] < need) | (pairing.next[k] < need));
                for cost in [
                    pairing.costs[0][k],
                    pairing.costs[1][k],
                    pairing.left[k] * naked,
                ] {
                    sides[0][k] += if call { cost } else { 0.0 };
                    sides[1][k] += if call { 0.0 } else { cost };
                }
                premium[k] += pairing.left[k] * mark[k];
            }
            work.mark[s] = *mark;
            work.delta[s] = *delta;
            work.vega[s] = *vega;
        }
        let mut margin = [0.0; LANES];
        for k in 0..LANES {
            margin[k] = (sides[0][k].max(sides[1][k]) + premium[k]) * self.multiplier;
        }
        Value {
            marks,
            liquid,
            greeks,
            margin,
            closable: Closables {
                some: lanes(|k| some[k] != 0),
                oldest: lanes(|k| oldest[k] != 0 && block.lines[k] != 0),
            },
            settled: lanes(|k| settled[k] != 0),
            unpaired: lanes(|k| unpaired[k] != 0) | block.unpaired,
        }
    }

    /// What follows from the value of the lines.
    #[inline(always)]
    fn mark_block(
        &self,
        block: &mut Block,
        underlying: &Column,
        marks: &Column,
        liquid: &Column,
        greeks: &[Column; 4],
        margin: &Column,
    ) {
        let slippage = self.config.fills.underlying_slippage;
        let sizing = &self.config.sizing;
        for k in 0..LANES {
            let held = block.cash[k] + block.units[k] * underlying[k];
            block.nav[k] = held + marks[k];
            block.liquidation[k] = block.cash[k] + block.units[k] * underlying[k] * (1.0 - slippage) + liquid[k];
            block.delta[k] = greeks[0][k] + block.units[k];
        }
        [block.gamma, block.vega, block.theta] = [greeks[1], greeks[2], greeks[3]];
        block.margin = *margin;
        for k in 0..LANES {
            block.size[k] = match sizing.contracts {
                0 => {
                    let one_contract = self.multiplier * underlying[k];
                    (sizing.notional * block.nav[k] / one_contract + 0.5).clamp(1.0, 1e5) as u32
                }
                n => n.min(100_000),
            };
        }
    }

    /// Finds the margin of a lane by the rule itself, and remembers how it was paired.
    fn pair(&self, now: At<'_>, block: &mut Block, slots: &mut [Slot], work: &Work, k: usize) {
        let n = block.lines[k] as usize;
        let mut legs = [MarginLeg::default(); MAX_POSITIONS];
        for (s, (leg, slot)) in legs.iter_mut().zip(&mut slots[..n]).enumerate() {
            *leg = MarginLeg {
                expiry: slot.expiry[k],
                strike: slot.strike[k],
                call: slot.call[k] != 0,
                quantity: slot.quantity[k],
                mark: work.mark[s][k],
            };
            slot.pair(k, &super::margin::Pairing::NONE);
        }
        let mut more = false;
        block.margin[k] = requirement_and_pairs(
            &legs[..n],
            block.units[k],
            now.underlying,
            self.multiplier,
            &self.config.margin,
            |s, pairing| {
                more |= pairing.more;
                slots[s].pair(k, pairing);
            },
        );
        block.unpaired = block.unpaired & !(1 << k) | u64::from(more) << k;
    }

    /// Settles, marks and liquidates a lane as [`Core::step`] does.
    fn settle_lane(&self, now: At<'_>, block: &mut Block, slots: &mut [Slot], k: usize) -> Closable {
        let mut lane = block.lane(slots, k);
        let mut one = lane.one(self.config.lines);
        let closable = self.settle_and_value(now, &mut one);
        block.put(self, slots, k, &lane);
        closable
    }

    /// Rewards; gives the lanes whose episode is over.
    #[inline(always)]
    fn reward_block(
        &self,
        block: &mut Block,
        underlying: &Column,
        (nav, peak, traded): (Column, Column, Column),
        to: &mut Stepped,
    ) -> Lanes {
        let config = &self.config.reward;
        let capital = self.config.capital;
        let mut rewards = [0.0_f32; LANES];
        for k in 0..LANES {
            let drawdown = 1.0 - nav[k] / peak[k];
            block.peak[k] = block.peak[k].max(block.nav[k]);
            let deeper = (1.0 - block.nav[k] / block.peak[k] - drawdown).max(0.0);
            let scale = 1.0 / nav[k].max(1e-3 * capital);
            let gain = match config.kind {
                RewardKind::Simple => (block.nav[k] - nav[k]) / capital,
                RewardKind::Log => libm::log(block.nav[k].max(1e-3 * capital) * scale),
            };
            let penalty = config.turnover * (block.traded[k] - traded[k]) * scale
                + config.drawdown * deeper
                + config.delta * (block.delta[k] * underlying[k] * scale).abs();
            rewards[k] = (config.scale * (gain - penalty)) as f32;
        }
        let terminated = lanes(|k| block.nav[k] <= self.config.ruin * capital);
        let truncated = lanes(|k| block.t[k] >= block.last[k]) & !terminated;
        let (at, n) = (to.at, to.lanes);
        to.out.reward[at..at + n].copy_from_slice(&rewards[..n]);
        for (k, flag) in to.out.terminated[at..at + n].iter_mut().enumerate() {
            *flag = terminated >> k & 1 == 1;
        }
        for (k, flag) in to.out.truncated[at..at + n].iter_mut().enumerate() {
            *flag = truncated >> k & 1 == 1;
        }
        terminated | truncated
    }

    /// Shows the state.
    #[inline(always)]
    fn show_block<P: Path>(
        &self,
        block: &Block,
        slots: &[Slot],
        used: usize,
        underlying: &Column,
        work: &mut Work,
        to: &mut Stepped,
    ) {
        let tables = &self.tables;
        let width = tables.width();
        let capital = self.config.capital;
        let clip = f64::from(self.clip);
        let cut = |value: f64| value.clamp(-clip, clip) as f32;
        let stride = to.out.obs.width;
        let actions = to.out.mask.width;
        for k in 0..to.lanes {
            let row = to.out.obs.row(to.at + k);
            row[..width].copy_from_slice(tables.row(block.t[k] as usize));
            for (action, legal) in to.out.mask.row(to.at + k)[..actions].iter_mut().enumerate() {
                *legal = block.legal[k] >> action & 1 == 1;
            }
        }
        let mut scale = [0.0; LANES];
        let mut date = [0_i32; LANES];
        for k in 0..LANES {
            scale[k] = 1.0 / block.nav[k].max(1e-3 * capital);
            date[k] = tables.dates[block.t[k] as usize];
        }
        for (s, slot) in slots[..used].iter().enumerate() {
            let shown = &mut work.shown.0;
            let (mark, delta, vega) = (&work.mark[s], &work.delta[s], &work.vega[s]);
            for k in 0..LANES {
                let held = slot.contract[k] != super::tables::NO_CONTRACT;
                let units = f64::from(slot.quantity[k]) * self.multiplier * scale[k];
                let to = &mut shown[k / 8];
                let moneyness = cut(10.0 * (slot.strike[k] / underlying[k] - 1.0));
                let days_left = cut(f64::from(slot.expiry[k] - date[k]) / 30.0);
                to[0][k % 8] = if held { moneyness } else { 0.0 };
                to[1][k % 8] = if held { days_left } else { 0.0 };
                to[2][k % 8] = cut(units * underlying[k]);
                to[3][k % 8] = cut(10.0 * units * mark[k]);
                to[4][k % 8] = cut(units * delta[k] * underlying[k]);
                to[5][k % 8] = cut(units * vega[k]);
            }
            P::rows(&work.shown, to.out.obs.values, to.at * stride + width + 6 * s, stride, to.lanes);
        }
        let mut totals = [[0.0_f32; LANES]; 9];
        for k in 0..LANES {
            let available = block.cash[k] + 0.5 * block.units[k] * underlying[k];
            let use_ = block.margin[k] / available.max(1e-3 * capital);
            totals[0][k] = cut(block.cash[k] / capital - 1.0);
            totals[1][k] = cut(10.0 * (block.nav[k] / capital - 1.0));
            totals[2][k] = cut(block.units[k] * underlying[k] * scale[k]);
            totals[3][k] = cut(block.delta[k] * underlying[k] * scale[k]);
            totals[4][k] = cut(block.gamma[k] * underlying[k] * underlying[k] * 0.1 * scale[k]);
            totals[5][k] = cut(block.vega[k] * scale[k]);
            totals[6][k] = cut(block.theta[k] * 1000.0 / 365.0 * scale[k]);
            totals[7][k] = cut(if block.margin[k] > 0.0 { use_ } else { 0.0 });
            totals[8][k] = cut(10.0 * (1.0 - block.nav[k] / block.peak[k]));
        }
        for k in 0..to.lanes {
            let row = to.out.obs.row(to.at + k);
            row[width + 6 * used..stride - 9].fill(0.0);
            for (i, out) in row[stride - 9..].iter_mut().enumerate() {
                *out = totals[i][k];
            }
        }
    }
}

impl Closables {
    fn set(&mut self, k: usize, closable: Closable) {
        self.some = self.some & !(1 << k) | u64::from(closable.some) << k;
        self.oldest = self.oldest & !(1 << k) | u64::from(closable.oldest) << k;
    }

    pub(crate) fn get(&self, k: usize) -> Closable {
        Closable {
            some: self.some >> k & 1 == 1,
            oldest: self.oldest >> k & 1 == 1,
        }
    }
}
