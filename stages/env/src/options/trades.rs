//! What accounts that are stepped side by side do of the menu: one account after another, on columns.

use super::account::Line;
use super::block::{Block, Slot};
use super::core::Core;
use super::env::Instrument;
use super::lanes::{Lanes, each};
use super::menu::{CLOSE_OLDEST, FIRST_OPEN, HOLD};
use super::side_by_side::Stepped;

/// The sums of an account that trades change.
struct Sums {
    cash: f64,
    units: f64,
    commission: f64,
    contracts_traded: f64,
    traded: f64,
    spread_cost: f64,
}

impl Sums {
    #[inline(always)]
    fn of(block: &Block, k: usize) -> Self {
        Self {
            cash: block.cash[k],
            units: block.units[k],
            commission: block.commission[k],
            contracts_traded: block.contracts_traded[k],
            traded: block.traded[k],
            spread_cost: block.spread_cost[k],
        }
    }

    #[inline(always)]
    fn put(&self, block: &mut Block, k: usize) {
        block.cash[k] = self.cash;
        block.units[k] = self.units;
        block.commission[k] = self.commission;
        block.contracts_traded[k] = self.contracts_traded;
        block.traded[k] = self.traded;
        block.spread_cost[k] = self.spread_cost;
    }

    /// As [`Core::trade`].
    #[inline(always)]
    fn trade(&mut self, core: &Core, instrument: Instrument, quantity: f64, (price, mark): (f64, f64)) {
        let units = match instrument {
            Instrument::Underlying => {
                self.units += quantity;
                quantity
            }
            Instrument::Contract(_) => {
                let commission = quantity.abs() * core.config.fills.commission;
                self.cash -= commission;
                self.commission += commission;
                self.contracts_traded += quantity.abs();
                quantity * core.multiplier
            }
        };
        self.cash -= units * price;
        self.traded += (units * price).abs();
        self.spread_cost += units * (price - mark);
    }
}

impl Core {
    /// Does the action of each lane, if it is legal; lanes beyond the environments hold.
    #[inline(always)]
    pub(crate) fn act_block(&self, block: &mut Block, slots: &mut [Slot], to: &Stepped) {
        let actions = &to.actions[..to.lanes];
        let (mut open, mut close, mut refused): (Lanes, Lanes, Lanes) = (0, 0, 0);
        for (k, &action) in actions.iter().enumerate() {
            // No bit is set beyond the menu.
            let legal = action < u64::BITS && block.legal[k] >> (action % u64::BITS) & 1 == 1;
            refused |= u8::from(!legal) << k;
            open |= u8::from(legal & (action as usize >= FIRST_OPEN)) << k;
            close |= u8::from(legal & (action as usize != HOLD)) << k;
        }
        close &= !open;
        for k in each(open) {
            self.open_lane(block, slots, k, actions[k] as usize - FIRST_OPEN);
        }
        for k in each(close) {
            let group = (actions[k] as usize == CLOSE_OLDEST).then_some(slots[0].group[k]);
            self.close_lane(block, slots, k, group);
        }
        block.unpaired |= open | close;
        for k in each(refused) {
            let reason = self.refusal(block.t[k], block.lines[k], block.units[k], actions[k] as usize);
            block.illegal[reason as usize][k] += 1;
        }
    }

    #[inline(always)]
    fn open_lane(&self, block: &mut Block, slots: &mut [Slot], k: usize, strategy: usize) {
        let t = block.t[k];
        let now = self.tables.at(t as usize);
        let (size, chosen) = (f64::from(block.size[k]), self.slots(t as usize));
        let group = block.groups[k];
        block.groups[k] += 1;
        let mut sums = Sums::of(block, k);
        for &leg in &self.menu.strategies[strategy] {
            let (instrument, quantity) = self.leg(leg, chosen, size);
            sums.trade(self, instrument, quantity, self.price(now, instrument, quantity > 0.0));
            if let Instrument::Contract(contract) = instrument {
                let line = Line {
                    contract,
                    quantity: quantity as i32,
                    opened: t,
                    group,
                };
                slots[block.lines[k] as usize].put(self, now, k, &line);
                block.lines[k] += 1;
            }
        }
        sums.put(block, k);
    }

    /// Closes the lines of `group` that have a quote, or all of them and the underlying.
    #[inline(always)]
    fn close_lane(&self, block: &mut Block, slots: &mut [Slot], k: usize, group: Option<u32>) {
        let now = self.tables.at(block.t[k] as usize);
        let mut sums = Sums::of(block, k);
        let (mut kept, lines) = (0, block.lines[k] as usize);
        for s in 0..lines {
            let line = slots[s].line(k);
            if group.is_none_or(|group| line.group == group) && self.closable(now, &line) {
                let contract = Instrument::Contract(line.contract);
                let quantity = -f64::from(line.quantity);
                sums.trade(self, contract, quantity, self.price(now, contract, quantity > 0.0));
            } else {
                if kept < s {
                    slots[kept].put(self, now, k, &line);
                }
                kept += 1;
            }
        }
        for slot in &mut slots[kept..lines] {
            slot.clear(k);
        }
        block.lines[k] = kept as u32;
        if group.is_none() && sums.units != 0.0 {
            let quantity = -sums.units;
            let price = self.price(now, Instrument::Underlying, quantity > 0.0);
            sums.trade(self, Instrument::Underlying, quantity, price);
        }
        sums.put(block, k);
    }
}
