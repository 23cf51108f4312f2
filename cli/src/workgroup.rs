//! Sizes of workgroups as they are given.

/// Most work-items of a workgroup.
const MOST_WORK_ITEMS: u32 = 1024;

/// The work-items of a workgroup, given as their number or by dimension.
pub fn size(text: &str) -> Result<u32, String> {
    sizes(text).map(|sizes| sizes.iter().product())
}

/// The same by dimension: those that are not given are 1.
pub fn sizes(text: &str) -> Result<[u32; 3], String> {
    let wrong = || {
        format!(
            "{text:?} is no size of a workgroup: a number from 1 to {MOST_WORK_ITEMS}, or X,Y or X,Y,Z with such a \
                product"
        )
    };
    let sizes =
        text.split(',').map(|size| size.trim().parse().map_err(|_| wrong())).collect::<Result<Vec<u32>, String>>()?;
    let product = sizes.iter().try_fold(1_u32, |product, size| product.checked_mul(*size));
    product.filter(|product| (1..=MOST_WORK_ITEMS).contains(product) && sizes.len() <= 3).ok_or_else(wrong)?;
    Ok(std::array::from_fn(|axis| sizes.get(axis).copied().unwrap_or(1)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_numbers_or_products() {
        assert_eq!(
            ["256", "16,16", "16, 16,1", "1", "1024"].map(|text| size(text).ok()),
            [Some(256), Some(256), Some(256), Some(1), Some(1024)]
        );
        for wrong in ["", "0", "1025", "16,0,1", "1,2,3,4", "x", "-1", "65536,65536,65536", "64,"] {
            assert!(size(wrong).is_err_and(|message| message.contains(wrong)), "{wrong}");
        }
    }
}
