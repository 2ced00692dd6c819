//! Deadlock-free routing: output port and permitted virtual channels at each router.

use std::collections::VecDeque;

use super::topology::{Leads, Shape, Topology};

/// Routes of one topology: computed where that is fast, otherwise by table.
pub(crate) enum Routes {
    /// One router: the terminal's number is the port.
    Single,
    /// Dimension order over coordinates.
    Cube(Cube),
    /// Directly to the other router.
    Full,
    /// up*/down* by table.
    Table(Table),
}

/// Coordinates of every router.
pub(crate) struct Cube {
    radix: u8,
    dimensions: usize,
    wraps: bool,
    coordinates: Vec<u8>,
}

/// The next port for each (router, whether the packet has gone down, destination router).
pub(crate) struct Table {
    routers: usize,
    next: Vec<u8>,
    /// Per router and input port: whether packets that come in there came down the tree.
    down: Vec<Vec<bool>>,
}

/// One step of a route.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Step {
    pub port: u8,
    /// The half of the virtual channels that it may use: datelines of rings.
    pub dateline_class: DatelineClass,
}

/// The virtual channels that a step may use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DatelineClass {
    Any,
    /// The half for packets that will still cross this ring's dateline.
    Before,
    /// The half for packets that have crossed it.
    After,
}

/// The inputs of a routing decision.
#[derive(Clone, Copy)]
pub(crate) struct Way {
    pub router: u32,
    /// The port that the packet came in by.
    pub came_by: u8,
    pub source_router: u32,
    pub router_to: u32,
    /// The port of the destination terminal on its router.
    pub port_to: u8,
    /// Random bits of the packet. They choose the direction when both are equally long, and the
    /// half when both are allowed.
    pub bits: u32,
}

impl Routes {
    pub fn new(topology: &Topology) -> Routes {
        match topology.shape {
            Shape::Single => Routes::Single,
            Shape::Full => Routes::Full,
            Shape::Cube { radix, dimensions, wraps } => {
                let coordinates = (0..topology.routers())
                    .flat_map(|router| {
                        (0..dimensions).map(move |d| (router / radix.pow(d as u32) % radix) as u8)
                    })
                    .collect();
                // The radix fits: above 256, 2^20 routers allow one or two dimensions only, see
                // `needs`.
                Routes::Cube(Cube { radix: radix as u8, dimensions, wraps, coordinates })
            }
            Shape::Free => Routes::Table(Table::new(topology)),
        }
    }

    /// Groups of virtual channels that these routes need to be deadlock-free: two on rings.
    pub fn dateline_classes(topology: &Topology) -> usize {
        if matches!(topology.shape, Shape::Cube { wraps: true, .. }) { 2 } else { 1 }
    }

    /// Why the routes do not fit in memory, if they do not.
    pub fn refuses(topology: &Topology) -> Option<String> {
        match topology.shape {
            Shape::Cube { radix, .. } if radix > 255 => {
                Some(format!("a radix of {radix} is more than the 255 that routing knows"))
            }
            Shape::Free if topology.routers() > 4096 => Some(format!(
                "a table of routes for {} routers is too large; 4096 is the most",
                topology.routers()
            )),
            _ => None,
        }
    }

    #[inline]
    pub fn step(&self, way: Way) -> Step {
        let any = |port| Step { port, dateline_class: DatelineClass::Any };
        if way.router == way.router_to {
            return any(way.port_to);
        }
        match self {
            Routes::Single => any(way.port_to),
            Routes::Full => any((1 + way.router_to - u32::from(way.router_to > way.router)) as u8),
            Routes::Cube(cube) => cube.step(way),
            Routes::Table(table) => any(table.step(way)),
        }
    }
}

impl Cube {
    #[inline]
    fn at(&self, router: u32) -> &[u8] {
        let from = router as usize * self.dimensions;
        &self.coordinates[from..from + self.dimensions]
    }

    #[inline]
    fn step(&self, way: Way) -> Step {
        let (here, there) = (self.at(way.router), self.at(way.router_to));
        let dimension = here.iter().zip(there).position(|(a, b)| a != b).unwrap_or(0);
        let (from, to) = (here[dimension], there[dimension]);
        if self.radix == 2 {
            return Step { port: 1 + dimension as u8, dateline_class: DatelineClass::Any };
        }
        let (up, down) = (1 + 2 * dimension as u8, 2 + 2 * dimension as u8);
        if !self.wraps {
            let port = if to > from { up } else { down };
            return Step { port, dateline_class: DatelineClass::Any };
        }
        let radix = u16::from(self.radix);
        let ahead = (u16::from(to) + radix - u16::from(from)) % radix;
        // Both directions are equally long: a bit of the packet decides, the same at each step.
        let goes_up = 2 * ahead < radix || 2 * ahead == radix && way.bits >> dimension & 1 == 0;
        // The dateline is the link between the last and the first router of each ring. A packet
        // that will cross it starts in the lower half of the channels and changes to the upper half
        // there. A packet that will not cross it stays in one half. So neither half has a cycle of
        // waits, whatever the load (Dally and Seitz 1987).
        let start = self.at(way.source_router)[dimension];
        let crosses = if goes_up { start > to } else { start < to };
        let crossing_now = if goes_up { from + 1 == self.radix } else { from == 0 };
        let crossing_ahead = if goes_up { from > to } else { from < to };
        let dateline_class = match (crosses, crossing_ahead && !crossing_now) {
            (true, true) => DatelineClass::Before,
            (true, false) => DatelineClass::After,
            (false, _) if way.bits >> 31 == 0 => DatelineClass::Before,
            (false, _) => DatelineClass::After,
        };
        Step { port: if goes_up { up } else { down }, dateline_class }
    }
}

impl Table {
    /// up*/down*: each link has a direction towards the root of a breadth-first tree (ties by
    /// number). A legal route never goes up after it has gone down, so no graph has a cycle of
    /// waits (Schroeder et al. 1991). The route is the shortest legal one.
    fn new(topology: &Topology) -> Table {
        let routers = topology.routers();
        let level = topology.distances(0);
        let above = |a: usize, b: usize| (level[a], a) < (level[b], b);
        let mut next = vec![u8::MAX; routers * 2 * routers];
        for to in 0..routers {
            // Backwards from the destination over (router, phase). In phase 1 the packet has gone
            // down, and may only go down.
            let mut queue = VecDeque::from([(to, 0), (to, 1)]);
            let mut seen = vec![[false; 2]; routers];
            seen[to] = [true; 2];
            while let Some((router, phase)) = queue.pop_front() {
                for leads in topology.ports(router) {
                    let Leads::Router(from, port) = *leads else { continue };
                    let from = from as usize;
                    let goes_down = above(from, router);
                    // A step down from `from` leads into phase 1. A step up keeps phase 0 and must
                    // start there.
                    let phases: &[usize] = match (goes_down, phase) {
                        (true, 1) => &[0, 1],
                        (false, 0) => &[0],
                        _ => continue,
                    };
                    for &before in phases {
                        if !seen[from][before] {
                            seen[from][before] = true;
                            next[(from * 2 + before) * routers + to] = port;
                            queue.push_back((from, before));
                        }
                    }
                }
            }
        }
        let comes_down = |router, leads: &Leads| match *leads {
            Leads::Router(from, _) => above(from as usize, router),
            _ => false,
        };
        let down =
            |router| topology.ports(router).iter().map(move |leads| comes_down(router, leads));
        let down = (0..routers).map(|router| down(router).collect()).collect();
        Table { routers, next, down }
    }

    fn step(&self, way: Way) -> u8 {
        let router = way.router as usize;
        let phase = usize::from(self.down[router][way.came_by as usize]);
        self.next[(router * 2 + phase) * self.routers + way.router_to as usize]
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::engine::Waits;

    /// A channel: the link that leaves `router` by `port`, in one half of its virtual channels.
    type Channel = (u32, u8, usize);

    /// Walks all pairs of terminals. Returns the mean number of links, and the channel dependencies
    /// (held, wanted).
    fn walk(topology: &Topology) -> (f64, BTreeSet<(Channel, Channel)>) {
        let routes = Routes::new(topology);
        let (mut links, mut ways) = (0, 0);
        let mut wants = BTreeSet::new();
        for from in 0..topology.terminals() {
            for to in 0..topology.terminals() {
                for bits in [0, u32::MAX, 0x5555_5555, 0xaaaa_aaaa] {
                    let (mut router, mut came_by) = topology.place(from);
                    let (router_to, port_to) = topology.place(to);
                    let source_router = router;
                    let mut held: Option<Channel> = None;
                    loop {
                        let way = Way { router, came_by, source_router, router_to, port_to, bits };
                        let step = routes.step(way);
                        let leads = topology.ports(router as usize)[step.port as usize];
                        if let Leads::Terminal(terminal) = leads {
                            assert_eq!(terminal as usize, to);
                            break;
                        }
                        let after = step.dateline_class == DatelineClass::After;
                        let channel = (router, step.port, usize::from(after));
                        wants.extend(held.map(|held| (held, channel)));
                        held = Some(channel);
                        let Leads::Router(next, by) = leads else { panic!("off the rim") };
                        (router, came_by) = (next, by);
                        links += 1;
                    }
                    ways += 1;
                }
            }
        }
        (f64::from(links) / f64::from(ways), wants)
    }

    fn cycle(wants: &BTreeSet<(Channel, Channel)>) -> Option<crate::engine::Cycle> {
        let mut waits = Waits::default();
        for (held, wanted) in wants {
            waits.add(format!("{held:?}"), format!("{wanted:?}"), "a virtual channel");
        }
        waits.cycle()
    }

    /// Routes join every pair, on shortest paths where promised, and the channel dependencies have
    /// no cycle.
    // shows: C-02
    #[test]
    fn routes_arrive_and_cannot_deadlock() {
        crate::limit::limited(|| {
            let links = [(0, 1), (1, 2), (2, 3), (3, 4), (4, 5), (5, 0), (1, 4), (5, 6), (6, 2)];
            for (topology, shortest) in [
                (Topology::ring(8), true),
                (Topology::ring(5), true),
                (Topology::torus(4, 2), true),
                (Topology::torus(3, 3), true),
                (Topology::mesh(4, 2), true),
                (Topology::mesh(3, 3), true),
                (Topology::hypercube(4), true),
                (Topology::fully_connected(6), true),
                (Topology::crossbar(4), true),
                (Topology::from_links("file", 7, 1, &links), false),
            ] {
                let topology = topology.unwrap();
                let (mean, wants) = walk(&topology);
                assert_eq!(cycle(&wants), None, "{}", topology.name());
                let (name, least) = (topology.name(), topology.mean_distance());
                assert!(mean >= least - 1e-9, "{name}: {mean} {least}");
                assert!(!shortest || mean <= least + 1e-9, "{name}: {mean} {least}");
            }
        });
    }

    /// A coordinate fits into a byte, and a table of routes into memory.
    #[test]
    fn routes_have_limits() {
        let cube = |radix| Routes::refuses(&Topology::torus(radix, 1).unwrap());
        assert_eq!(cube(255), None);
        assert!(cube(256).unwrap().contains("radix of 256"));
        assert!(cube(300).unwrap().contains("radix of 300"));
        let row = |routers: usize| {
            let links: Vec<(usize, usize)> = (1..routers).map(|at| (at - 1, at)).collect();
            Routes::refuses(&Topology::from_links("row", routers, 1, &links).unwrap())
        };
        assert_eq!(row(4096), None);
        assert!(row(4097).unwrap().contains("4096 is the most"));
        assert!(row(5000).unwrap().contains("5000 routers"));
    }

    /// Canary: without the dateline the same walk finds a ring's cycle of waits.
    #[test]
    fn a_ring_without_dateline_is_caught() {
        let (_, wants) = walk(&Topology::ring(8).unwrap());
        let without = wants.iter().map(|&((a, b, _), (c, d, _))| ((a, b, 0), (c, d, 0))).collect();
        assert!(cycle(&without).is_some());
    }
}
