//! [`Core::step`] for many environments side by side: the same operations on the same numbers in the same order, a pass of
//! columns at a time, so that the bytes are the same. What few environments need in a step (a settlement, a liquidation, the
//! margin rule itself, the next episode) is done for each of them by the functions that [`Core::step`] uses.

use super::block::{Block, Numbers, Slot};
use super::config::{MAX_LINES, RewardKind};
use super::core::Core;
use super::lanes::{Column, LANES, Lanes, SHOWN, Vector, each};
use super::ledger::Ledger;
use super::margin::{MarginLeg, requirement_and_pairs};
use super::marks::Closable;
use super::tables::{Entries, Entry, NO_CONTRACT};
use crate::ranges::StepRows;

/// What a step finds of the lines and shows later; kept from block to block to be written over.
pub(crate) struct Work {
    mark: [Column; MAX_LINES],
    delta: [Column; MAX_LINES],
    vega: [Column; MAX_LINES],
    legs: [MarginLeg; MAX_LINES],
}

impl Work {
    pub(crate) fn new() -> Self {
        Self {
            mark: [[0.0; LANES]; MAX_LINES],
            delta: [[0.0; LANES]; MAX_LINES],
            vega: [[0.0; LANES]; MAX_LINES],
            legs: [MarginLeg::default(); MAX_LINES],
        }
    }
}

/// [`Closable`] by lane.
#[derive(Clone, Copy)]
pub(crate) struct Closables {
    pub some: Lanes,
    pub oldest: Lanes,
}

impl Closables {
    fn set(&mut self, k: usize, closable: Closable) {
        self.some = self.some & !(1 << k) | u8::from(closable.some) << k;
        self.oldest = self.oldest & !(1 << k) | u8::from(closable.oldest) << k;
    }

    pub(crate) fn get(self, k: usize) -> Closable {
        Closable {
            some: self.some >> k & 1 == 1,
            oldest: self.oldest >> k & 1 == 1,
        }
    }
}

/// What marking the lines leaves to be done.
struct Found {
    closable: Closables,
    /// Lanes with a line that settles at this snapshot.
    settled: Lanes,
    /// Lanes whose margin the rule must find.
    unpaired: Lanes,
}

/// What the environments of a block do and write.
pub(crate) struct Stepped<'a, 'b> {
    /// The number of the first lane's environment.
    pub env: usize,
    /// How many lanes are environments; the others are stepped and not shown.
    pub lanes: usize,
    pub actions: &'a [u32],
    /// The place of the first lane in `out` and `finals`.
    pub at: usize,
    pub out: &'a mut StepRows<'b>,
    pub finals: &'a mut [Option<Ledger>],
}

impl Core {
    /// One step of each lane.
    #[inline(always)]
    pub(crate) fn step_block<V: Vector>(
        &self,
        block: &mut Block,
        slots: &mut [Slot],
        work: &mut Work,
        mut to: Stepped,
    ) {
        let before = (V::load(&block.nav), V::load(&block.peak), V::load(&block.traded));
        self.act_block(block, slots, &to);
        let cash = V::load(&block.cash);
        let interest = cash * V::look_up(&self.tables.accrual, &block.t);
        (cash + interest).store(&mut block.cash);
        (V::load(&block.interest) + interest).store(&mut block.interest);
        block.t = block.t.map(|t| t + 1);
        for k in 0..LANES {
            if self.tables.part(block.t[k] as usize) != block.part[k] {
                self.next_part(block, slots, k);
            }
        }
        let mut underlying = V::look_up(&self.tables.underlying, &block.t);

        let used = block.lines.iter().copied().max().unwrap_or(0) as usize;
        let mut found = self.value_block::<V>(underlying, block, &slots[..used], work);
        for k in each(found.unpaired & !found.settled) {
            self.pair(block, &mut slots[..used], work, k);
        }
        // Lanes whose lines are no longer those that `work` has the marks of.
        let mut changed = found.settled | self.short_of_margin::<V>(block, underlying);
        for k in each(changed) {
            let closable = self.settle_lane(block, slots, k);
            found.closable.set(k, closable);
        }
        let over = self.reward_block::<V>(block, underlying, before, &mut to);
        self.mask_block::<V>(underlying, block, slots, found.closable);

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
        }
        if over != 0 {
            underlying = V::look_up(&self.tables.underlying, &block.t);
        }
        changed |= over;
        self.show_block::<V>(block, &slots[..used], underlying, work, &mut to);
        for k in each(changed) {
            if k < to.lanes {
                let mut lane = block.lane(slots, k);
                let one = lane.one(self.config.lines);
                self.observe(one.account, one.lines, to.out.obs.row(to.at + k));
            }
        }
    }

    /// Marks the accounts. The margin is that of lines which are paired as they were.
    #[inline(always)]
    fn value_block<V: Vector>(&self, underlying: V, block: &mut Block, slots: &[Slot], work: &mut Work) -> Found {
        let zero = V::all(0.0);
        let multiplier = V::all(self.multiplier);
        let (rate, minimum) = (V::all(self.config.margin.rate), V::all(self.config.margin.minimum));
        let (mut marks, mut liquid) = (zero, zero);
        let (mut delta, mut gamma, mut vega, mut theta) = (zero, zero, zero, zero);
        let (mut calls, mut puts, mut premium) = (zero, zero, zero);
        let mut found = Found {
            closable: Closables {
                some: 0,
                oldest: V::differ(&block.lines, &[0; LANES]),
            },
            settled: 0,
            unpaired: 0,
        };
        let mut shorts = 0;
        let parts: [Entries<'_>; LANES] = std::array::from_fn(|k| self.tables.entries(block.part[k]));
        let first_group: Numbers = slots.first().map_or([0; LANES], |slot| slot.group);
        for (s, slot) in slots.iter().enumerate() {
            let entries: [&Entry; LANES] = std::array::from_fn(|k| parts[k].get(slot.base[k].wrapping_add(block.t[k])));
            let [bid, ask, mark, d, g, v, th, source] = V::fields(&entries);
            mark.store(&mut work.mark[s]);
            d.store(&mut work.delta[s]);
            v.store(&mut work.vega[s]);

            let quantity = V::whole(&slot.quantity);
            let units = quantity * multiplier;
            marks = marks + units * mark;
            let short = quantity.below(zero);
            shorts |= short;
            let exit = ask.choose(short, bid);
            let quoted = exit.equals(exit);
            // A quote without a bid: nobody pays anything for it.
            let unquoted = zero.choose(source.equals(V::all(Entry::QUOTED)), mark);
            liquid = liquid + units * exit.choose(quoted, unquoted);
            delta = delta + units * d;
            gamma = gamma + units * g;
            vega = vega + units * v;
            theta = theta + units * th;

            let held = V::differ(&slot.contract, &[NO_CONTRACT; LANES]);
            let others = V::differ(&slot.group, &first_group);
            found.closable.some |= held & quoted;
            found.closable.oldest &= quoted | others;
            found.settled |= source.equals(V::all(Entry::SETTLED));

            // `charge`, and what `requirement` adds up.
            let call = V::differ(&slot.call, &[0; LANES]);
            let (strike, pairing) = (V::load(&slot.strike), &slot.pairing);
            let out = (strike - underlying).choose(call, underlying - strike);
            let base = underlying.choose(call, strike);
            let naked = (rate * underlying - out.above_or(zero)).above_or(minimum * base);
            let need = naked + mark;
            found.unpaired |= !V::load(&pairing.worst).below(need) | V::load(&pairing.next).below(need);
            let left = V::load(&pairing.left);
            for cost in [V::load(&pairing.costs[0]), V::load(&pairing.costs[1]), left * naked] {
                calls = calls.plus(cost, call);
                puts = puts.plus(cost, !call);
            }
            premium = premium + left * mark;
        }
        block.unpaired &= shorts;
        found.unpaired |= block.unpaired;
        let (cash, units) = (V::load(&block.cash), V::load(&block.units));
        let held = cash + units * underlying;
        let nav = held + marks;
        nav.store(&mut block.nav);
        let slippage = V::all(1.0 - self.config.fills.underlying_slippage);
        (cash + units * underlying * slippage + liquid).store(&mut block.liquidation);
        (delta + units).store(&mut block.delta);
        gamma.store(&mut block.gamma);
        vega.store(&mut block.vega);
        theta.store(&mut block.theta);
        ((calls.above_or(puts) + premium) * multiplier).store(&mut block.margin);
        block.size = match self.config.sizing.contracts {
            0 => {
                let one_contract = multiplier * underlying;
                let size = V::all(self.config.sizing.notional) * nav / one_contract + V::all(0.5);
                V::all(1e5).below_or(V::all(1.0).above_or(size)).unsigned()
            }
            n => [n.min(100_000); LANES],
        };
        found
    }

    /// Finds the lines of a lane in another part of the tables.
    #[cold]
    fn next_part(&self, block: &mut Block, slots: &mut [Slot], k: usize) {
        let t = block.t[k] as usize;
        block.part[k] = self.tables.part(t);
        for slot in &mut slots[..block.lines[k] as usize] {
            slot.base[k] = self.tables.at(t).base(slot.contract[k]);
        }
    }

    /// Finds the margin of a lane by the rule itself, and remembers how it was paired.
    fn pair(&self, block: &mut Block, slots: &mut [Slot], work: &mut Work, k: usize) {
        let n = block.lines[k] as usize;
        for (s, (leg, slot)) in work.legs.iter_mut().zip(&slots[..n]).enumerate() {
            *leg = MarginLeg {
                expiry: slot.expiry[k],
                strike: slot.strike[k],
                call: slot.call[k] != 0,
                quantity: slot.quantity[k],
                mark: work.mark[s][k],
            };
        }
        let mut more = false;
        block.margin[k] = requirement_and_pairs(
            &work.legs[..n],
            block.units[k],
            self.tables.underlying[block.t[k] as usize],
            self.multiplier,
            &self.config.margin,
            |s, pairing| {
                more |= pairing.more;
                slots[s].pair(k, pairing);
            },
        );
        block.unpaired = block.unpaired & !(1 << k) | u8::from(more) << k;
    }

    #[inline(always)]
    fn short_of_margin<V: Vector>(&self, block: &Block, underlying: V) -> Lanes {
        let available = V::load(&block.cash) + V::all(0.5) * V::load(&block.units) * underlying;
        available.below(V::all(self.config.margin.maintenance) * V::load(&block.margin))
    }

    /// Settles, marks and liquidates a lane as [`Core::step`] does.
    fn settle_lane(&self, block: &mut Block, slots: &mut [Slot], k: usize) -> Closable {
        let mut lane = block.lane(slots, k);
        let now = self.now(&lane.account);
        let closable = self.settle_and_value(now, &mut lane.one(self.config.lines));
        block.put(self, slots, k, &lane);
        closable
    }

    /// Rewards; gives the lanes whose episode is over.
    #[inline(always)]
    fn reward_block<V: Vector>(
        &self,
        block: &mut Block,
        underlying: V,
        (nav, peak, traded): (V, V, V),
        to: &mut Stepped,
    ) -> Lanes {
        let config = &self.config.reward;
        let capital = V::all(self.config.capital);
        let least = V::all(1e-3 * self.config.capital);
        let (zero, one) = (V::all(0.0), V::all(1.0));
        let after = V::load(&block.nav);
        let drawdown = one - nav / peak;
        let new_peak = after.above_or(peak);
        new_peak.store(&mut block.peak);
        let deeper = (one - after / new_peak - drawdown).above_or(zero);
        let scale = one / nav.above_or(least);
        let gain = match config.kind {
            RewardKind::Simple => (after - nav) / capital,
            RewardKind::Log => V::load(&(after.above_or(least) * scale).column().map(libm::log)),
        };
        let penalty = V::all(config.turnover) * (V::load(&block.traded) - traded) * scale
            + V::all(config.drawdown) * deeper
            + V::all(config.delta) * (V::load(&block.delta) * underlying * scale).abs();
        let rewards = (V::all(config.scale) * (gain - penalty)).single();
        let ruin = V::all(self.config.ruin * self.config.capital);
        let terminated = after.below(ruin) | after.equals(ruin);
        let truncated = !(V::less(&block.t, &block.last) | terminated);
        let (at, n) = (to.at, to.lanes);
        to.out.reward[at..at + n].copy_from_slice(&rewards[..n]);
        to.out.terminated[at..at + n].copy_from_slice(&bools(terminated)[..n]);
        to.out.truncated[at..at + n].copy_from_slice(&bools(truncated)[..n]);
        terminated | truncated
    }

    /// Shows the state.
    #[inline(always)]
    fn show_block<V: Vector>(&self, block: &Block, slots: &[Slot], underlying: V, work: &Work, to: &mut Stepped) {
        let tables = &self.tables;
        let width = tables.width();
        let row = to.out.obs.width;
        let clip = V::all(f64::from(self.clip));
        let least = V::all(0.0) - clip;
        let cut = |value: V| clip.below_or(least.above_or(value)).single();
        let (one, ten) = (V::all(1.0), V::all(10.0));
        let multiplier = V::all(self.multiplier);
        for k in 0..to.lanes {
            to.out.obs.row(to.at + k)[..width].copy_from_slice(tables.row(block.t[k] as usize));
            show_mask(block.legal[k], to.out.action_mask.row(to.at + k));
        }

        let floor = V::all(1e-3 * self.config.capital);
        let nav = V::load(&block.nav);
        let scale = one / nav.above_or(floor);
        let dates: [i32; LANES] = std::array::from_fn(|k| tables.dates[block.t[k] as usize]);
        for (s, slot) in slots.iter().enumerate() {
            let held = V::differ(&slot.contract, &[NO_CONTRACT; LANES]);
            let units = V::whole(&slot.quantity) * multiplier * scale;
            let (mark, delta, vega) = (V::load(&work.mark[s]), V::load(&work.delta[s]), V::load(&work.vega[s]));
            let days = V::whole(&std::array::from_fn(|k| slot.expiry[k].wrapping_sub(dates[k])));
            let shown: [V; SHOWN] = [
                (ten * (V::load(&slot.strike) / underlying - one)).only(held),
                (days / V::all(30.0)).only(held),
                units * underlying,
                ten * units * mark,
                units * delta * underlying,
                units * vega,
            ];
            let first = to.at * row + width + SHOWN * s;
            V::rows(shown, self.clip, to.out.obs.values, first, row, to.lanes);
        }

        let capital = V::all(self.config.capital);
        let (cash, units, margin) = (V::load(&block.cash), V::load(&block.units), V::load(&block.margin));
        let available = cash + V::all(0.5) * units * underlying;
        let margin_use = (margin / available.above_or(floor)).only(V::all(0.0).below(margin));
        let totals = [
            cut(cash / capital - one),
            cut(ten * (nav / capital - one)),
            cut(units * underlying * scale),
            cut(V::load(&block.delta) * underlying * scale),
            cut(V::load(&block.gamma) * underlying * underlying * V::all(0.1) * scale),
            cut(V::load(&block.vega) * scale),
            cut(V::load(&block.theta) * V::all(1000.0) / V::all(365.0) * scale),
            cut(margin_use),
            cut(ten * (one - nav / V::load(&block.peak))),
        ];
        for k in 0..to.lanes {
            let (lines, account) = to.out.obs.row(to.at + k).split_at_mut(row - totals.len());
            lines[width + SHOWN * slots.len()..].fill(0.0);
            for (out, total) in account.iter_mut().zip(&totals) {
                *out = total[k];
            }
        }
    }
}

/// The bits of a byte.
#[inline(always)]
fn bools(bits: u8) -> [bool; 8] {
    const ALL: [[bool; 8]; 256] = {
        let mut all = [[false; 8]; 256];
        let mut i = 0;
        while i < 256 * 8 {
            all[i / 8][i % 8] = (i / 8) >> (i % 8) & 1 == 1;
            i += 1;
        }
        all
    };
    ALL[bits as usize]
}

/// Legal actions from their bits.
#[inline(always)]
fn show_mask(legal: u64, mask: &mut [bool]) {
    for (i, actions) in mask.chunks_mut(8).enumerate() {
        let legal = bools((legal >> (8 * i)) as u8);
        match <&mut [bool; 8]>::try_from(&mut *actions) {
            Ok(eight) => *eight = legal,
            Err(_) => actions.copy_from_slice(&legal[..actions.len()]),
        }
    }
}
