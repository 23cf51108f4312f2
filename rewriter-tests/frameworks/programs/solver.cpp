// rocSOLVER: a linear system by LU, and the eigenvectors of a symmetric matrix.
#include "check.hpp"

#include <rocsolver/rocsolver.h>

namespace {

const int n = 40;

void linear_system(rocblas_handle handle) {
    const auto a = random_values<double>(n * n), b = random_values<double>(n);
    Device<double> on_a(a), on_b(b);
    Device<rocblas_int> pivots(n), info(1);
    MUST(rocsolver_dgetrf(handle, n, n, on_a.get(), n, pivots.get(), info.get()));
    MUST(rocsolver_dgetrs(handle, rocblas_operation_none, n, 1, on_a.get(), n, pivots.get(), on_b.get(), n));
    const auto x = on_b.read();
    Worst worst;
    for (int row = 0; row < n; ++row) {
        double sum = -b[row];
        for (int i = 0; i < n; ++i) sum += a[row + i * n] * x[i];
        worst.add(sum);
    }
    compare("getrf and getrs", worst, 1e-10);
}

void eigenvectors(rocblas_handle handle) {
    auto symmetric = random_values<double>(n * n);
    for (int i = 0; i < n; ++i) {
        for (int j = 0; j < i; ++j) symmetric[i + j * n] = symmetric[j + i * n];
    }
    Device<double> on_a(symmetric), on_values(n), space(n);
    Device<rocblas_int> info(1);
    MUST(rocsolver_dsyev(handle, rocblas_evect_original, rocblas_fill_upper, n, on_a.get(), n, on_values.get(),
                         space.get(), info.get()));
    const auto vectors = on_a.read(), values = on_values.read();
    Worst worst;
    for (int which = 0; which < n; ++which) {
        for (int row = 0; row < n; ++row) {
            double sum = -values[which] * vectors[row + which * n];
            for (int i = 0; i < n; ++i) sum += symmetric[row + i * n] * vectors[i + which * n];
            worst.add(sum);
        }
    }
    compare("syev", worst, 1e-10);
}

} // namespace

int main() {
    print_device();
    rocblas_handle handle;
    MUST(rocblas_create_handle(&handle));
    linear_system(handle);
    eigenvectors(handle);
    MUST(rocblas_destroy_handle(handle));
    return wrong_results != 0;
}
