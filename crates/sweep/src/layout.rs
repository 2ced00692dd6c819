//! Where the points of a sweep lie.

use toml::Value;

use crate::axis::Axis;

/// Where the points of a sweep lie. A setting is a value for each axis.
#[derive(Clone, Debug)]
pub enum Layout {
    /// Each value of each axis with each of the others.
    Grid(Vec<Vec<Value>>),
    /// Settings that are written out; one may lack an axis.
    List(Vec<Vec<Option<Value>>>),
    /// A scrambled Sobol sequence (Burley 2020): any beginning of it covers the axes evenly.
    Sobol {
        /// The axes.
        axes: Vec<Axis>,
        /// How many settings.
        points: u32,
        /// What scrambles it.
        seed: u32,
    },
}

impl Layout {
    /// The number of settings; none if there are too many to count.
    pub fn settings(&self) -> Option<u64> {
        match self {
            Layout::Grid(axes) => {
                axes.iter().try_fold(1u64, |all, axis| all.checked_mul(axis.len() as u64))
            }
            Layout::List(settings) => Some(settings.len() as u64),
            Layout::Sobol { points, .. } => Some((*points).into()),
        }
    }

    /// The setting of a number below [`Layout::settings`]. In a grid the last axis changes first.
    pub fn setting(&self, number: u64) -> Vec<Option<Value>> {
        match self {
            Layout::Grid(axes) => {
                let mut rest = number;
                let mut values: Vec<Option<Value>> = Vec::with_capacity(axes.len());
                for axis in axes.iter().rev() {
                    let count = axis.len() as u64;
                    values.push(Some(axis[(rest % count) as usize].clone()));
                    rest /= count;
                }
                values.reverse();
                values
            }
            Layout::List(settings) => settings[number as usize].clone(),
            Layout::Sobol { axes, seed, .. } => {
                let place = |axis: u32| sobol_burley::sample(number as u32, axis, *seed).into();
                (0..).zip(axes).map(|(at, axis)| Some(axis.at(place(at)))).collect()
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn whole(values: &[i64]) -> Vec<Value> {
        values.iter().copied().map(Value::Integer).collect()
    }

    /// A grid has every combination once.
    #[test]
    fn a_grid_has_all_combinations() {
        let grid = Layout::Grid(vec![whole(&[1, 2]), whole(&[10, 20, 30])]);
        assert_eq!(grid.settings(), Some(6));
        let setting = |number| {
            let values = grid.setting(number).into_iter().flatten();
            values.map(|value| value.as_integer().unwrap()).collect::<Vec<_>>()
        };
        let all: Vec<Vec<i64>> = (0..6).map(setting).collect();
        assert_eq!(all, [[1, 10], [1, 20], [1, 30], [2, 10], [2, 20], [2, 30]]);
        let huge = Layout::Grid(vec![whole(&[0; 100]); 11]);
        assert_eq!(huge.settings(), None);
    }

    /// The sample covers two axes more evenly than chance: each cell of 8 x 8 has exactly one of
    /// the first 64 settings. Canary: the same count of a plain random sample does not.
    #[test]
    fn a_sample_covers_all_cells() {
        let axis = || Axis::Values(whole(&[0, 1, 2, 3, 4, 5, 6, 7]));
        for seed in 0..8 {
            let sample = Layout::Sobol { axes: vec![axis(), axis()], points: 64, seed };
            let mut cells = [0; 64];
            for number in 0..64 {
                let at = sample.setting(number);
                let of = |axis: usize| at[axis].as_ref().unwrap().as_integer().unwrap() as usize;
                cells[of(0) * 8 + of(1)] += 1;
            }
            assert_eq!(cells, [1; 64], "seed {seed}");
        }
        let mut random = bellwire_model::engine::Random::new(1);
        let mut cells = [0; 64];
        (0..64).for_each(|_| cells[random.below(64) as usize] += 1);
        assert_ne!(cells, [1; 64]);
    }
}
