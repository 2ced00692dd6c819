//! Routers, the links between them, and the terminals at their edge.

use std::collections::VecDeque;

/// The most ports of a router: a set of ports is one machine word.
pub const MOST_PORTS: usize = 64;

/// Where a port leads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Leads {
    /// To nothing: the edge of a mesh.
    Nowhere,
    /// To a terminal, by its number.
    Terminal(u32),
    /// To another router's port.
    Router(u32, u8),
}

/// How packets are routed, and what prevents deadlock.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Shape {
    /// One router: every terminal is on it.
    Single,
    /// Digits of the router's number are coordinates; dimension order.
    Cube { radix: usize, dimensions: usize, wraps: bool },
    /// Each router has a link to every other.
    Full,
    /// Anything: shortest paths that go up a tree and then down (up*/down*).
    Free,
}

/// A network as a graph. Ports of a router are numbered from 0: terminals first, then links.
#[derive(Clone, Debug)]
pub struct Topology {
    name: String,
    ports: Vec<Vec<Leads>>,
    terminals: Vec<(u32, u8)>,
    pub(super) shape: Shape,
}

/// Why a topology cannot be built.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TopologyError {
    /// Too many ports on one router.
    #[error(
        "router {router} would have {ports} ports, the most is {MOST_PORTS}; use a topology of lower degree"
    )]
    TooManyPorts {
        /// Its number.
        router: usize,
        /// How many.
        ports: usize,
    },
    /// An impossible size.
    #[error("{0}")]
    Size(String),
    /// An invalid link in a topology file.
    #[error("link {link}: {why}")]
    Link {
        /// Its place in the list, from 1.
        link: usize,
        /// What is wrong, and what to do.
        why: String,
    },
    /// Some routers are not connected.
    #[error("router {0} cannot be reached from router 0; add a link")]
    Apart(usize),
}

impl Topology {
    /// One router with a terminal on each of its ports (C-04).
    ///
    /// # Errors
    /// No port, or more than [`MOST_PORTS`].
    pub fn crossbar(ports: usize) -> Result<Topology, TopologyError> {
        Topology::with_terminals(format!("crossbar of {ports}"), 1, ports, Shape::Single)?
            .connected()
    }

    /// A ring of routers with one terminal each.
    ///
    /// # Errors
    /// Fewer than three routers.
    pub fn ring(routers: usize) -> Result<Topology, TopologyError> {
        let ring = Topology::torus(routers, 1)?;
        Ok(Topology { name: format!("ring of {routers}"), ..ring })
    }

    /// A k-ary n-cube with wrap-around links and one terminal per router (C-02, B-07).
    ///
    /// # Errors
    /// A radix below 3 (2 is a [`Topology::hypercube`]), no dimension, or too many routers or
    /// ports.
    pub fn torus(radix: usize, dimensions: usize) -> Result<Topology, TopologyError> {
        if radix < 3 {
            return Err(TopologyError::Size(format!(
                "a torus of radix {radix} has links onto themselves or twice; take 3 or more, or a hypercube"
            )));
        }
        Topology::cube(format!("torus, {radix}-ary {dimensions}-cube"), radix, dimensions, true)
    }

    /// A k-ary n-dimensional mesh with one terminal per router (C-02, B-07).
    ///
    /// # Errors
    /// A radix below 2, no dimension, or too many routers or ports.
    pub fn mesh(radix: usize, dimensions: usize) -> Result<Topology, TopologyError> {
        if radix < 2 {
            return Err(TopologyError::Size(format!(
                "a mesh of radix {radix} has no links; take 2 or more"
            )));
        }
        Topology::cube(format!("mesh, {radix}-ary {dimensions}-cube"), radix, dimensions, false)
    }

    /// A hypercube of 2^dimensions routers with one terminal each (C-02, B-07).
    ///
    /// # Errors
    /// No dimension or too many.
    pub fn hypercube(dimensions: usize) -> Result<Topology, TopologyError> {
        let cube = Topology::mesh(2, dimensions)?;
        Ok(Topology { name: format!("hypercube of {dimensions} dimensions"), ..cube })
    }

    /// Routers with one terminal each, and a link between every two routers.
    ///
    /// # Errors
    /// Fewer than two routers, or more than the ports allow.
    pub fn fully_connected(routers: usize) -> Result<Topology, TopologyError> {
        if routers < 2 {
            return Err(TopologyError::Size(format!(
                "{routers} routers have nothing to connect; take 2 or more"
            )));
        }
        let name = format!("{routers} fully connected");
        let mut topology = Topology::with_terminals(name, routers, 1, Shape::Full)?;
        if routers > MOST_PORTS {
            return Err(TopologyError::TooManyPorts { router: 0, ports: routers });
        }
        for router in 0..routers {
            for other in (0..routers).filter(|&other| other != router) {
                let back = 1 + router - usize::from(router > other);
                topology.ports[router].push(Leads::Router(other as u32, back as u8));
            }
        }
        topology.connected()
    }

    /// Any graph: `routers` routers with `terminals` terminals each, and bidirectional links.
    ///
    /// # Errors
    /// A link to itself or to a router that does not exist, too many ports, or parts that are not
    /// connected.
    pub fn from_links(
        name: impl Into<String>,
        routers: usize,
        terminals: usize,
        links: &[(usize, usize)],
    ) -> Result<Topology, TopologyError> {
        let mut topology = Topology::with_terminals(name.into(), routers, terminals, Shape::Free)?;
        for (at, &(a, b)) in links.iter().enumerate() {
            let wrong = |why| TopologyError::Link { link: at + 1, why };
            if a.max(b) >= routers {
                let (none, last) = (a.max(b), routers - 1);
                return Err(wrong(format!("there is no router {none}, the last is {last}")));
            }
            if a == b {
                return Err(wrong(format!("it joins router {a} to itself; take it out")));
            }
            let (port_a, port_b) = (topology.ports[a].len() as u8, topology.ports[b].len() as u8);
            if port_a.max(port_b) as usize >= MOST_PORTS {
                return Err(TopologyError::TooManyPorts { router: a, ports: MOST_PORTS + 1 });
            }
            topology.ports[a].push(Leads::Router(b as u32, port_b));
            topology.ports[b].push(Leads::Router(a as u32, port_a));
        }
        topology.connected()
    }

    /// A readable name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The number of routers.
    pub fn routers(&self) -> usize {
        self.ports.len()
    }

    /// The number of terminals.
    pub fn terminals(&self) -> usize {
        self.terminals.len()
    }

    /// The router and port of a terminal.
    pub fn place(&self, terminal: usize) -> (u32, u8) {
        self.terminals[terminal]
    }

    /// What the ports of a router lead to.
    pub fn ports(&self, router: usize) -> &[Leads] {
        &self.ports[router]
    }

    /// Links on the shortest path from router `from` to each router, by breadth-first search.
    pub fn distances(&self, from: usize) -> Vec<Option<u32>> {
        let mut distances = vec![None; self.routers()];
        distances[from] = Some(0);
        let mut queue = VecDeque::from([(from, 0)]);
        while let Some((router, distance)) = queue.pop_front() {
            for leads in &self.ports[router] {
                if let Leads::Router(next, _) = *leads
                    && distances[next as usize].is_none()
                {
                    distances[next as usize] = Some(distance + 1);
                    queue.push_back((next as usize, distance + 1));
                }
            }
        }
        distances
    }

    /// The mean number of links between two terminals. As in the formulas of Table 1, it includes
    /// the pairs of a terminal with itself (C-51).
    pub fn mean_distance(&self) -> f64 {
        // In the built-in networks except meshes, all routers see the same distances. A search from
        // each router is exact for every network.
        let mut weights = vec![0; self.routers()];
        self.terminals.iter().for_each(|&(router, _)| weights[router as usize] += 1);
        let sum: u64 = (0..self.routers())
            .map(|from| {
                let distances = self.distances(from);
                let far = distances.iter().zip(&weights);
                weights[from] * far.map(|(d, w)| u64::from(d.unwrap_or(0)) * w).sum::<u64>()
            })
            .sum();
        sum as f64 / (self.terminals() as f64).powi(2)
    }

    fn with_terminals(
        name: String,
        routers: usize,
        each: usize,
        shape: Shape,
    ) -> Result<Topology, TopologyError> {
        if routers == 0 || each == 0 {
            return Err(TopologyError::Size(
                "a network needs a router and a terminal at least".to_owned(),
            ));
        }
        if each > MOST_PORTS {
            return Err(TopologyError::TooManyPorts { router: 0, ports: each });
        }
        if routers.saturating_mul(each) > 1 << 20 {
            return Err(TopologyError::Size(format!(
                "{routers} routers with {each} terminals each are more than 1048576 terminals"
            )));
        }
        let terminal = |router: usize, at: usize| (router * each + at) as u32;
        let ports = (0..routers)
            .map(|router| (0..each).map(|at| Leads::Terminal(terminal(router, at))).collect())
            .collect();
        let terminals = (0..routers)
            .flat_map(|router| (0..each).map(move |at| (router as u32, at as u8)))
            .collect();
        Ok(Topology { name, ports, terminals, shape })
    }

    /// Port 1 + 2d goes up in dimension d, port 2 + 2d down. With radix 2 there is one link in each
    /// dimension, on port 1 + d.
    fn cube(
        name: String,
        radix: usize,
        dimensions: usize,
        wraps: bool,
    ) -> Result<Topology, TopologyError> {
        if dimensions == 0 || dimensions > 20 {
            return Err(TopologyError::Size(format!("{dimensions} dimensions; take 1 to 20")));
        }
        let routers = u32::try_from(dimensions).ok().and_then(|power| radix.checked_pow(power));
        let Some(routers) = routers.filter(|&routers| routers <= 1 << 20) else {
            return Err(TopologyError::Size(format!(
                "{radix} to the power of {dimensions} is more than 1048576 routers"
            )));
        };
        let shape = Shape::Cube { radix, dimensions, wraps };
        let mut topology = Topology::with_terminals(name, routers, 1, shape)?;
        for router in 0..routers {
            let mut stride = 1;
            for dimension in 0..dimensions {
                let at = router / stride % radix;
                let to = |digit: usize| (router + digit * stride - at * stride) as u32;
                if radix == 2 {
                    topology.ports[router].push(Leads::Router(to(1 - at), 1 + dimension as u8));
                } else {
                    let (up, down) = (1 + 2 * dimension as u8, 2 + 2 * dimension as u8);
                    let rim = |inside: bool, leads: Leads| {
                        if inside || wraps { leads } else { Leads::Nowhere }
                    };
                    let above = Leads::Router(to((at + 1) % radix), down);
                    let below = Leads::Router(to((at + radix - 1) % radix), up);
                    topology.ports[router].push(rim(at + 1 < radix, above));
                    topology.ports[router].push(rim(at > 0, below));
                }
                stride *= radix;
            }
        }
        topology.connected()
    }

    /// All routers must be connected.
    fn connected(self) -> Result<Topology, TopologyError> {
        match self.distances(0).iter().position(Option::is_none) {
            Some(router) => Err(TopologyError::Apart(router)),
            None => Ok(self),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Both ends of each link name each other, in every kind of network.
    #[test]
    fn links_have_two_ends() {
        let networks = [
            Topology::crossbar(16),
            Topology::ring(5),
            Topology::torus(4, 3),
            Topology::mesh(3, 2),
            Topology::hypercube(5),
            Topology::fully_connected(6),
            Topology::from_links("file", 4, 2, &[(0, 1), (1, 2), (2, 3), (3, 0), (0, 2)]),
        ];
        for topology in networks {
            let topology = topology.unwrap();
            for router in 0..topology.routers() {
                for (port, leads) in topology.ports(router).iter().enumerate() {
                    let port = port as u8;
                    match *leads {
                        Leads::Router(to, at) => {
                            let back = topology.ports(to as usize)[at as usize];
                            assert_eq!(back, Leads::Router(router as u32, port), "{topology:?}");
                        }
                        Leads::Terminal(terminal) => {
                            assert_eq!(topology.place(terminal as usize), (router as u32, port));
                        }
                        Leads::Nowhere => {}
                    }
                }
            }
        }
    }

    /// Mean distances match Dally and Towles: torus n k/4, mesh n (k^2-1)/(3k), hypercube n/2.
    #[test]
    fn mean_distances_are_known() {
        let close = |topology: Result<Topology, TopologyError>, expected: f64| {
            let got = topology.unwrap().mean_distance();
            assert!((got - expected).abs() < 1e-9, "{got} {expected}");
        };
        close(Topology::torus(8, 2), 4.0);
        close(Topology::torus(4, 3), 3.0);
        close(Topology::mesh(8, 2), 2.0 * 63.0 / 24.0);
        close(Topology::mesh(4, 3), 3.0 * 15.0 / 12.0);
        close(Topology::hypercube(6), 3.0);
        close(Topology::fully_connected(8), 7.0 / 8.0);
    }

    /// Networks have the names of their sizes.
    #[test]
    fn networks_have_names() {
        let name = |topology: Result<Topology, TopologyError>| topology.unwrap().name().to_owned();
        assert_eq!(name(Topology::ring(5)), "ring of 5");
        assert_eq!(name(Topology::hypercube(3)), "hypercube of 3 dimensions");
        assert_eq!(name(Topology::mesh(3, 2)), "mesh, 3-ary 2-cube");
        assert_eq!(name(Topology::crossbar(4)), "crossbar of 4");
    }

    /// The largest networks are built, and those that are one larger are not.
    #[test]
    fn limits_belong_to_what_is_possible() {
        let said = |topology: Result<Topology, TopologyError>| topology.unwrap_err().to_string();
        assert_eq!(Topology::crossbar(MOST_PORTS).unwrap().terminals(), 64);
        assert_eq!(Topology::fully_connected(MOST_PORTS).unwrap().ports(63).len(), 64);
        // 2^20 terminals are possible, but these routers have no links.
        assert_eq!(
            Topology::from_links("x", 1 << 14, 64, &[]).unwrap_err(),
            TopologyError::Apart(1)
        );
        assert!(said(Topology::from_links("x", (1 << 14) + 1, 64, &[])).contains("1048576"));
        assert!(said(Topology::mesh(2, 0)).contains("take 1 to 20"));
        assert!(said(Topology::mesh(3, 20)).contains("3 to the power of 20"));
        assert!(said(Topology::mesh(3, 21)).contains("take 1 to 20"));
        let links = |count| vec![(0, 1); count];
        assert_eq!(Topology::from_links("x", 2, 1, &links(63)).unwrap().ports(1).len(), 64);
        assert!(
            said(Topology::from_links("x", 2, 1, &links(64))).contains("router 0 would have 65")
        );
        let wrong = said(Topology::from_links("x", 3, 1, &[(0, 1), (4, 1)]));
        assert_eq!(wrong, "link 2: there is no router 4, the last is 2");
    }

    /// An impossible network is refused with the fault and the remedy.
    #[test]
    fn impossible_networks_are_refused() {
        let said = |topology: Result<Topology, TopologyError>| topology.unwrap_err().to_string();
        assert!(said(Topology::crossbar(65)).contains("most is 64"));
        assert!(said(Topology::crossbar(0)).contains("at least"));
        assert!(said(Topology::torus(2, 3)).contains("hypercube"));
        assert!(said(Topology::torus(1000, 9)).contains("more than"));
        assert!(said(Topology::fully_connected(100)).contains("most is 64"));
        assert!(
            said(Topology::from_links("x", 3, 1, &[(0, 1)])).contains("router 2 cannot be reached")
        );
        assert!(said(Topology::from_links("x", 3, 1, &[(0, 3)])).contains("no router 3"));
        assert!(said(Topology::from_links("x", 3, 1, &[(1, 1)])).contains("itself"));
    }
}
