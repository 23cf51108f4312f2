//! Arguments of kernels that compute matrix products, by the names that AMD's generator of them (Tensile, of hipBLASLt)
//! gives arguments and kernels: numbers that are made up without that seldom get such a kernel to its main loop.

use wavetap::code_object::KernelMetadata;

use crate::random::Random;

/// A product of matrices and the workgroups that compute it.
#[derive(Clone, Copy)]
pub(super) struct Product {
    rows: u32,
    columns: u32,
    depth: u32,
    /// The first matrix, and the second, lie with the summed index first.
    first_by_depth: bool,
    second_by_depth: bool,
    pub(super) workgroups: u32,
}

impl Product {
    /// A product for a kernel, if it computes one. Its largest matrix fits into a buffer even of doubles.
    pub(super) fn of(kernel: &KernelMetadata, random: &mut Random) -> Option<Product> {
        let has = |name: &str| kernel.args.iter().any(|argument| argument.name.as_deref() == Some(name));
        if !["Gemm info", "SizesFree0", "SizesSum0", "strideA0"].into_iter().all(has) {
            return None;
        }
        let (rows, columns) = ([32, 40, 17][random.below(3)], [32, 40, 9][random.below(3)]);
        let depth = [100, 96, 64, 33][random.below(4)];
        let [tall, wide] = tile(&kernel.name)?;
        Some(Product {
            rows,
            columns,
            depth,
            first_by_depth: kernel.name.contains("_Alik_"),
            second_by_depth: kernel.name.contains("_Bljk_"),
            workgroups: rows.div_ceil(tall) * columns.div_ceil(wide),
        })
    }

    /// What an argument of this name is, if it is not made up.
    pub(super) fn argument(&self, name: &str) -> Option<u32> {
        let Product { rows, columns, depth, .. } = *self;
        Some(match name {
            // One product, whose sizes are arguments; not split along its depth; workgroups in their order, on one die.
            "Gemm info" | "kernel info0" | "SizesFree2" => 1,
            "kernel info1" => 1 | 1 << 16,
            "numWG" => self.workgroups,
            "SizesFree0" | "strideD0" | "strideC0" => rows,
            "SizesFree1" => columns,
            "SizesSum0" => depth,
            "strideD1" | "strideC1" => rows * columns,
            "strideA0" if self.first_by_depth => depth,
            "strideA0" => rows,
            "strideA1" => rows * depth,
            "strideB0" if self.second_by_depth => depth,
            "strideB0" => columns,
            "strideB1" => columns * depth,
            "alpha" => 1.5_f32.to_bits(),
            "beta" => 0.5_f32.to_bits(),
            "biasType" | "StrideBias" | "activationType" => 0,
            _ => return None,
        })
    }
}

/// How many rows and columns a workgroup computes: `MT32x64x16` in the name.
fn tile(name: &str) -> Option<[u32; 2]> {
    let mut numbers = name.split("_MT").nth(1)?.split('_').next()?.split('x').map(|number| number.parse().ok());
    Some([numbers.next()??, numbers.next()??])
}
