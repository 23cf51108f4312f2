// OpenMP, whose runtime uses HSA without HIP: a loop of which the GPU does the iterations.
#include <omp.h>
#include <stdio.h>

enum { ITEMS = 1000 };

static unsigned out[ITEMS];

#pragma omp declare target
static unsigned steps(unsigned value) {
    unsigned count = 0;
    while (value != 1) {
        value = value % 2 ? 3 * value + 1 : value / 2;
        ++count;
    }
    return count;
}
#pragma omp end declare target

int main(void) {
    int on_host = 1;
    unsigned long total = 0, expected = 0;
#pragma omp target map(from : on_host)
    on_host = omp_is_initial_device();
    for (int round = 0; round < 3; ++round) {
#pragma omp target teams distribute parallel for map(from : out)
        for (unsigned i = 0; i < ITEMS; ++i) out[i] = steps(i * 7 + 1);
        for (unsigned i = 0; i < ITEMS; ++i) {
            total += out[i];
            expected += steps(i * 7 + 1);
        }
    }
#pragma omp target teams distribute parallel for reduction(+ : total)
    for (unsigned i = 0; i < ITEMS; ++i) total += i % 3;
    expected += ITEMS - 1;
    printf("devices: %d, steps: %lu\n", omp_get_num_devices(), total);
    puts(on_host || total != expected ? "FAIL" : "PASS");
    return 0;
}
