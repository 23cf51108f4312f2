// rocBLAS: products of matrices in four types, vectors, and a triangular system.
#include "check.hpp"

#include <rocblas/rocblas.h>

#include <string>

namespace {

rocblas_handle handle;
const auto plain = rocblas_operation_none;

// c = 1.5 a b + 0.5 c, column by column, against sums in double.
template <class T, class Product>
void product(const char *name, int m, int n, int k, double limit, Product multiply) {
    const auto a = random_values<T>(size_t(m) * k), b = random_values<T>(size_t(k) * n);
    const auto before = random_values<T>(size_t(m) * n);
    Device<T> on_a(a), on_b(b), on_c(before);
    MUST(multiply(m, n, k, on_a.get(), on_b.get(), on_c.get()));
    const auto after = on_c.read();
    Worst worst;
    for (int column = 0; column < n; ++column) {
        for (int row = 0; row < m; ++row) {
            double sum = 0;
            for (int i = 0; i < k; ++i) sum += double(a[row + size_t(i) * m]) * double(b[i + size_t(column) * k]);
            const size_t at = row + size_t(column) * m;
            worst.add(1.5 * sum + 0.5 * double(before[at]) - double(after[at]));
        }
    }
    const std::string shape = std::string(name) + " " + std::to_string(m) + "x" + std::to_string(n) + "x" +
                              std::to_string(k);
    compare(shape.c_str(), worst, limit);
}

void products() {
    const auto single = [](int m, int n, int k, float *a, float *b, float *c) {
        const float alpha = 1.5f, beta = 0.5f;
        return rocblas_sgemm(handle, plain, plain, m, n, k, &alpha, a, m, b, k, &beta, c, m);
    };
    const auto twice = [](int m, int n, int k, double *a, double *b, double *c) {
        const double alpha = 1.5, beta = 0.5;
        return rocblas_dgemm(handle, plain, plain, m, n, k, &alpha, a, m, b, k, &beta, c, m);
    };
    using Half = _Float16;
    const auto half = [](int m, int n, int k, Half *a, Half *b, Half *c) {
        const Half alpha = 1.5, beta = 0.5;
        const auto as = [](const Half *pointer) { return reinterpret_cast<const rocblas_half *>(pointer); };
        return rocblas_hgemm(handle, plain, plain, m, n, k, as(&alpha), as(a), m, as(b), k, as(&beta),
                             reinterpret_cast<rocblas_half *>(c), m);
    };
    const auto mixed = [](int m, int n, int k, Half *a, Half *b, Half *c) {
        const float alpha = 1.5f, beta = 0.5f;
        const auto f16 = rocblas_datatype_f16_r;
        return rocblas_gemm_ex(handle, plain, plain, m, n, k, &alpha, a, f16, m, b, f16, k, &beta, c, f16, m, c, f16,
                               m, rocblas_datatype_f32_r, rocblas_gemm_algo_standard, 0, 0);
    };
    product<float>("sgemm", 64, 64, 64, 1e-4, single);
    product<float>("sgemm", 37, 53, 129, 1e-4, single);
    product<double>("dgemm", 64, 64, 64, 1e-12, twice);
    product<double>("dgemm", 37, 53, 129, 1e-12, twice);
    product<Half>("hgemm", 64, 64, 64, 0.1, half);
    product<Half>("gemm_ex f16 in f32", 128, 64, 96, 0.05, mixed);
}

void vectors() {
    const int n = 1000;
    const auto x = random_values<float>(n), y = random_values<float>(n);
    double dot = 0, squares = 0;
    int largest = 0;
    for (int i = 0; i < n; ++i) {
        dot += double(x[i]) * y[i];
        squares += double(x[i]) * x[i];
        if (std::fabs(x[i]) > std::fabs(x[largest])) largest = i;
    }
    Device<float> on_x(x), on_y(y);
    float value = 0;
    MUST(rocblas_sdot(handle, n, on_x.get(), 1, on_y.get(), 1, &value));
    verdict("sdot", std::fabs(value - dot) < 1e-3, "error", value - dot);
    MUST(rocblas_snrm2(handle, n, on_x.get(), 1, &value));
    verdict("snrm2", std::fabs(value - std::sqrt(squares)) < 1e-3, "error", value - std::sqrt(squares));
    int index = 0;
    MUST(rocblas_isamax(handle, n, on_x.get(), 1, &index));
    verdict("isamax", index == largest + 1, "index", index);
}

// l x = b with a lower triangle: what is left of b - l x.
void triangle() {
    const int n = 33, columns = 17;
    auto l = random_values<float>(n * n);
    for (float &value : l) value *= 0.1f;
    for (int i = 0; i < n; ++i) l[i + i * n] = 2;
    const auto b = random_values<float>(n * columns);
    Device<float> on_l(l), on_b(b);
    const float one = 1;
    MUST(rocblas_strsm(handle, rocblas_side_left, rocblas_fill_lower, plain, rocblas_diagonal_non_unit, n, columns,
                       &one, on_l.get(), n, on_b.get(), n));
    const auto x = on_b.read();
    Worst worst;
    for (int column = 0; column < columns; ++column) {
        for (int row = 0; row < n; ++row) {
            double sum = -double(b[row + column * n]);
            for (int i = 0; i <= row; ++i) sum += double(l[row + i * n]) * x[i + column * n];
            worst.add(sum);
        }
    }
    compare("strsm", worst, 1e-4);
}

} // namespace

int main() {
    print_device();
    MUST(rocblas_create_handle(&handle));
    products();
    vectors();
    triangle();
    MUST(rocblas_destroy_handle(handle));
    return wrong_results != 0;
}
