//! The Pareto front: points that no other point beats.

/// Which points no other one beats. A point beats another if it is nowhere worse and somewhere
/// better; low values are good. Points that lack a value are never on the front.
pub fn front(points: &[Vec<f64>]) -> Vec<bool> {
    let mut order: Vec<usize> = (0..points.len()).collect();
    order.retain(|at| points[*at].iter().all(|value| value.is_finite()));
    // What beats a point comes before it in this order.
    order.sort_by(|one, two| {
        let pairs = points[*one].iter().zip(&points[*two]);
        pairs
            .map(|(one, two)| one.total_cmp(two))
            .find(|order| order.is_ne())
            .unwrap_or(std::cmp::Ordering::Equal)
    });
    let mut is_on = vec![false; points.len()];
    let mut front: Vec<usize> = Vec::new();
    for at in order {
        let beats = |one: &[f64], two: &[f64]| {
            one != two && one.iter().zip(two).all(|(one, two)| one <= two)
        };
        if !front.iter().any(|on| beats(&points[*on], &points[at])) {
            front.push(at);
            is_on[at] = true;
        }
    }
    is_on
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The front of five points by hand: equal points are both on it, what lacks a value is not.
    #[test]
    fn nobody_beats_the_front() {
        let points = [[1.0, 4.0], [2.0, 2.0], [3.0, 3.0], [2.0, 2.0], [f64::NAN, 0.0]];
        let found = front(&points.map(Vec::from));
        assert_eq!(found, [true, true, false, true, false]);
    }

    /// It agrees with the definition on random points. Canary: leaving one point out of the front
    /// is noticed.
    #[test]
    fn the_front_is_that_of_the_definition() {
        let mut random = bellwire_model::engine::Random::new(7);
        for axes in 1..4 {
            let points: Vec<Vec<f64>> =
                (0..60).map(|_| (0..axes).map(|_| random.below(8) as f64).collect()).collect();
            let beaten = |at: usize| {
                points.iter().any(|other| {
                    let pairs = || other.iter().zip(&points[at]);
                    pairs().all(|(other, own)| other <= own)
                        && pairs().any(|(other, own)| other < own)
                })
            };
            let mut expected: Vec<bool> = (0..points.len()).map(|at| !beaten(at)).collect();
            assert_eq!(front(&points), expected);
            let on = expected.iter().position(|on| *on).unwrap();
            expected[on] = false;
            assert_ne!(front(&points), expected);
        }
    }
}
