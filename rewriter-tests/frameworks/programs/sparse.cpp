// rocSPARSE: y = 2 a x + 3 y with a sparse matrix by rows, with and without an analysis before it.
#include "check.hpp"

#include <rocsparse/rocsparse.h>

int main() {
    print_device();
    const int m = 100;
    std::vector<int> rows(m + 1), columns;
    for (int i = 0; i < m; ++i) {
        rows[i] = int(columns.size());
        for (int j = 0; j < m; ++j) {
            if ((7 * i + 13 * j) % 5 == 0 || i == j) columns.push_back(j);
        }
    }
    const int count = rows[m] = int(columns.size());
    const auto values = random_values<double>(count), x = random_values<double>(m);
    const std::vector<double> ones(m, 1.0);
    Device<int> on_rows(rows), on_columns(columns);
    Device<double> on_values(values), on_x(x);
    rocsparse_handle handle;
    MUST(rocsparse_create_handle(&handle));
    for (bool analysed : {false, true}) {
        Device<double> on_y(ones);
        rocsparse_mat_descr description;
        rocsparse_mat_info info = nullptr;
        MUST(rocsparse_create_mat_descr(&description));
        const auto plain = rocsparse_operation_none;
        if (analysed) {
            MUST(rocsparse_create_mat_info(&info));
            MUST(rocsparse_dcsrmv_analysis(handle, plain, m, m, count, description, on_values.get(), on_rows.get(),
                                           on_columns.get(), info));
        }
        const double two = 2, three = 3;
        MUST(rocsparse_dcsrmv(handle, plain, m, m, count, &two, description, on_values.get(), on_rows.get(),
                              on_columns.get(), info, on_x.get(), &three, on_y.get()));
        const auto y = on_y.read();
        Worst worst;
        for (int i = 0; i < m; ++i) {
            double sum = 3;
            for (int k = rows[i]; k < rows[i + 1]; ++k) sum += 2 * values[k] * x[columns[k]];
            worst.add(sum - y[i]);
        }
        compare(analysed ? "dcsrmv after an analysis" : "dcsrmv", worst, 1e-12);
        if (info != nullptr) MUST(rocsparse_destroy_mat_info(info));
        MUST(rocsparse_destroy_mat_descr(description));
    }
    MUST(rocsparse_destroy_handle(handle));
    return wrong_results != 0;
}
