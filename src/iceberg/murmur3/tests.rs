use super::hash;

/// Hashes of the spec's Appendix B, "32-bit Hash Requirements".
#[test]
fn rule_47_murmur3_has_the_values_of_appendix_b() {
    let of_long = |v: i64| hash(&v.to_le_bytes()) as i32;
    assert_eq!(of_long(34), 2_017_239_379); // int 34, long 34
    assert_eq!(of_long(17_486), -653_330_422); // date 2017-11-16
    assert_eq!(of_long(81_068_000_000), -662_762_989); // time 22:31:08
    assert_eq!(of_long(1_510_871_468_000_000), -2_047_944_441); // timestamp 2017-11-16T22:31:08
    assert_eq!(of_long(1_510_871_468_000_001), -1_207_196_810); // 2017-11-16T22:31:08.000001
    assert_eq!(hash(b"iceberg") as i32, 1_210_000_089);
    assert_eq!(hash(&[0, 1, 2, 3]) as i32, -188_683_207);
    assert_eq!(hash(&[5, 0x8C]) as i32, -500_754_589); // decimal 14.20, unscaled 1420
    let uuid = uuid::uuid!("f79c3e09-677c-4bbd-a479-3f349cb785e7");
    assert_eq!(hash(uuid.as_bytes()) as i32, 1_488_055_340);
}

#[test]
fn murmur3_of_nothing_is_zero() {
    assert_eq!(hash(&[]), 0);
}
