use super::*;

const STEP: Step = Step {
    source: true,
    target: true,
};

#[test]
fn the_same_nodes_on_both_sides_keep_their_levels() {
    assert_eq!(def_map(&[STEP, STEP], 2), [0, 1, 2]);
}

#[test]
fn a_column_that_became_optional_is_present_wherever_its_parent_is() {
    let required = Step {
        source: false,
        target: true,
    };
    assert_eq!(def_map(&[required], 0), [1]);
    // optional struct { required leaf, optional now }
    assert_eq!(def_map(&[STEP, required], 1), [0, 2]);
    // required struct, optional now { optional leaf }
    assert_eq!(def_map(&[required, STEP], 1), [1, 2]);
}

#[test]
fn a_two_level_list_has_a_list_and_an_element_that_are_never_null() {
    // repeated int32 array: the list is never null, nor is an element; in the view both are optional.
    let never_null = Step {
        source: false,
        target: true,
    };
    assert_eq!(def_map(&[never_null, STEP, never_null], 1), [1, 3]);
}
