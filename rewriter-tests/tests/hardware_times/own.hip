// Kernels with the algorithms and launch shapes of programs that others measured, written for the test: the model has
// to stay near the measured times without those programs. own NAME SIZE... calls one twice; results are checked.

#include <hip/hip_runtime.h>

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

static void require(bool right, const char *what) {
    if (!right) {
        fprintf(stderr, "own: %s\n", what);
        exit(1);
    }
}

// An array on the device, with a copy on the host.
template <typename T> struct Array {
    std::vector<T> host;
    T *device = nullptr;

    explicit Array(size_t count, int step = 0) : host(count) {
        for (size_t n = 0; n < count; ++n) host[n] = T(n * step % 23);
        require(hipMalloc((void **)&device, count * sizeof(T)) == hipSuccess, "no memory");
        send();
    }
    ~Array() { (void)hipFree(device); }
    void send() {
        size_t bytes = host.size() * sizeof(T);
        require(hipMemcpy(device, host.data(), bytes, hipMemcpyHostToDevice) == hipSuccess, "not copied");
    }
    std::vector<T> result() {
        std::vector<T> back(host.size());
        size_t bytes = host.size() * sizeof(T);
        require(hipMemcpy(back.data(), device, bytes, hipMemcpyDeviceToHost) == hipSuccess, "not copied back");
        return back;
    }
};

static bool near(float a, float b) { return std::fabs(a - b) <= 1e-3f * (1 + std::fabs(b)); }

__device__ inline int item() { return blockIdx.x * blockDim.x + threadIdx.x; }

__global__ void sums(float *__restrict__ to, const float *__restrict__ a, const float *__restrict__ b, int count) {
    int n = item();
    if (n < count) to[n] = a[n] + b[n];
}

static void vectoradd(int count) {
    Array<float> to(count), a(count, 3), b(count, 5);
    for (int call = 0; call < 2; ++call) sums<<<(count + 255) / 256, 256>>>(to.device, a.device, b.device, count);
    auto got = to.result();
    for (int n = 0; n < count; ++n) require(got[n] == a.host[n] + b.host[n], "a wrong sum");
}

// A work-item has four by four elements; a workgroup of 16 by 16 goes through LDS.
__global__ void turned(float4 *to, const float4 *from, unsigned quads) {
    extern __shared__ float4 tile[];
    unsigned x = threadIdx.x, y = threadIdx.y, down = blockIdx.x, across = (blockIdx.x + blockIdx.y) % gridDim.x;
    unsigned source = across * 16 + x + (down * 16 + y) * 4 * quads;
    for (unsigned row = 0; row < 4; ++row) tile[y * 64 + row * 16 + x] = from[source + row * quads];
    __syncthreads();
    float4 rows[4];
    for (unsigned row = 0; row < 4; ++row) rows[row] = tile[x * 64 + row * 16 + y];
    unsigned target = down * 16 + x + (across * 16 + y) * 4 * quads;
    to[target] = make_float4(rows[0].x, rows[1].x, rows[2].x, rows[3].x);
    to[target + quads] = make_float4(rows[0].y, rows[1].y, rows[2].y, rows[3].y);
    to[target + 2 * quads] = make_float4(rows[0].z, rows[1].z, rows[2].z, rows[3].z);
    to[target + 3 * quads] = make_float4(rows[0].w, rows[1].w, rows[2].w, rows[3].w);
}

static void matrixtranspose(int width) {
    Array<float> to(width * width), from(width * width, 7);
    dim3 grid(width / 64, width / 64), block(16, 16);
    for (int call = 0; call < 2; ++call)
        turned<<<grid, block, 16384>>>((float4 *)to.device, (float4 *)from.device, width / 4);
    auto got = to.result();
    for (int n = 0; n < width * width; ++n)
        require(got[n] == from.host[n % width * width + n / width], "a wrong element");
}

__global__ void shorter(unsigned *lengths, unsigned *middles, unsigned nodes, unsigned middle) {
    unsigned to = item(), from = blockIdx.y * blockDim.y + threadIdx.y;
    int direct = lengths[from * nodes + to], around = lengths[from * nodes + middle] + lengths[middle * nodes + to];
    if (around < direct) {
        lengths[from * nodes + to] = around;
        middles[from * nodes + to] = middle;
    }
}

static void floydwarshall(int nodes) {
    Array<unsigned> lengths(nodes * nodes, 11), middles(nodes * nodes);
    std::vector<unsigned> shortest = lengths.host;
    for (int k = 0; k < nodes; ++k)
        for (int n = 0; n < nodes * nodes; ++n) {
            unsigned around = shortest[n / nodes * nodes + k] + shortest[k * nodes + n % nodes];
            if (around < shortest[n]) shortest[n] = around;
        }
    for (int call = 0; call < 2; ++call) {
        lengths.send();
        middles.send();
        for (int k = 0; k < nodes; ++k)
            shorter<<<dim3(nodes / 8, nodes / 8), dim3(8, 8)>>>(lengths.device, middles.device, nodes, k);
    }
    require(lengths.result() == shortest, "a path is not the shortest");
}

__global__ void filtered(float *to, float *weights, float *from, float *before, unsigned taps) {
    unsigned n = item();
    float sum = 0;
    for (unsigned tap = 0; tap < taps; ++tap)
        sum += weights[tap] * (n >= tap ? from[n - tap] : before[taps - (tap - n)]);
    to[n] = sum;
}

static void fir(int length, int taps) {
    Array<float> to(length), weights(taps, 1), from(length, 3), before(taps);
    for (int call = 0; call < 2; ++call)
        filtered<<<length / 256, 256>>>(to.device, weights.device, from.device, before.device, taps);
    auto got = to.result();
    for (int n = 0; n < length; ++n) {
        float sum = 0;
        for (int tap = 0; tap < taps && tap <= n; ++tap) sum += weights.host[tap] * from.host[n - tap];
        require(near(got[n], sum), "a wrong sum of taps");
    }
}

__global__ void nearest(float *features, float *centers, int *of, int points, int clusters, int count) {
    unsigned point = item();
    if (point >= unsigned(points)) return;
    int best = 0;
    float least = 3.4e38f;
    for (int cluster = 0; cluster < clusters; ++cluster) {
        float distance = 0;
        for (int n = 0; n < count; ++n) {
            float apart = features[n * points + point] - centers[cluster * count + n];
            distance += apart * apart;
        }
        if (distance < least) {
            least = distance;
            best = cluster;
        }
    }
    of[point] = best;
}

static void kmeans(int points, int count) {
    const int clusters = 5;
    Array<float> features(points * count, 5), centers(clusters * count, 9);
    Array<int> of(points);
    for (int call = 0; call < 2; ++call)
        nearest<<<(points + 255) / 256, 256>>>(features.device, centers.device, of.device, points, clusters, count);
    auto got = of.result();
    for (int point = 0; point < points; ++point) {
        int best = 0;
        float least = 3.4e38f;
        for (int cluster = 0; cluster < clusters; ++cluster) {
            float distance = 0;
            for (int n = 0; n < count; ++n) {
                float apart = features.host[n * points + point] - centers.host[cluster * count + n];
                distance += apart * apart;
            }
            if (distance < least) least = distance, best = cluster;
        }
        require(got[point] == best, "a wrong cluster");
    }
}

__global__ void by_rows(float *matrix, float *vector, float *to, int rows, int columns) {
    int row = item();
    if (row < rows)
        for (int column = 0; column < columns; ++column) to[row] += matrix[row * columns + column] * vector[column];
}

__global__ void by_columns(float *matrix, float *to, float *vector, int rows, int columns) {
    int column = item();
    if (column < columns)
        for (int row = 0; row < rows; ++row) to[column] += matrix[row * columns + column] * vector[row];
}

static void atax(int size) {
    Array<float> matrix(size * size, 3), vector(size, 1), middle(size), to(size);
    for (int call = 0; call < 2; ++call) {
        (void)hipMemset(middle.device, 0, size * sizeof(float));
        (void)hipMemset(to.device, 0, size * sizeof(float));
        by_rows<<<(size + 255) / 256, 256>>>(matrix.device, vector.device, middle.device, size, size);
        by_columns<<<(size + 255) / 256, 256>>>(matrix.device, to.device, middle.device, size, size);
    }
    std::vector<float> first(size), second(size);
    for (int n = 0; n < size * size; ++n) first[n / size] += matrix.host[n] * vector.host[n % size];
    for (int n = 0; n < size * size; ++n) second[n % size] += matrix.host[n] * first[n / size];
    auto got = to.result();
    for (int n = 0; n < size; ++n) require(near(got[n], second[n]), "a wrong product");
}

// One row of a sparse matrix for each work-item.
__global__ void rows_of_sparse(const float *__restrict__ values, const float *__restrict__ vector,
                               const int *__restrict__ columns, const int *__restrict__ starts, int rows,
                               float *__restrict__ to) {
    int row = item();
    if (row >= rows) return;
    float sum = 0;
    for (int n = starts[row], end = starts[row + 1]; n < end; ++n) sum += values[n] * vector[columns[n]];
    to[row] = sum;
}

static void spmv(int rows, int each) {
    Array<float> values(rows * each, 3), vector(rows, 5), to(rows);
    Array<int> columns(rows * each), starts(rows + 1);
    for (int n = 0; n < rows * each; ++n) columns.host[n] = (n / each + n % each) % rows;
    for (int n = 0; n <= rows; ++n) starts.host[n] = n * each;
    columns.send();
    starts.send();
    for (int call = 0; call < 2; ++call)
        rows_of_sparse<<<(rows + 255) / 256, 256>>>(values.device, vector.device, columns.device, starts.device, rows,
                                                    to.device);
    auto got = to.result();
    for (int row = 0; row < rows; ++row) {
        float sum = 0;
        for (int n = row * each; n < (row + 1) * each; ++n) sum += values.host[n] * vector.host[columns.host[n]];
        require(near(got[row], sum), "a wrong row");
    }
}

int main(int count, char **words) {
    require(count >= 3, "own NAME SIZE...");
    const char *name = words[1];
    int first = atoi(words[2]), second = count > 3 ? atoi(words[3]) : 0;
    auto is = [&](const char *other) { return strcmp(name, other) == 0; };
    if (is("vectoradd")) vectoradd(first);
    else if (is("matrixtranspose")) matrixtranspose(first);
    else if (is("floydwarshall")) floydwarshall(first);
    else if (is("fir")) fir(first, second);
    else if (is("kmeans")) kmeans(first, second);
    else if (is("atax")) atax(first);
    else if (is("spmv")) spmv(first, second);
    else require(false, "no such kernel");
    return 0;
}
