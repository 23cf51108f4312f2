// Textures and surfaces of every kind against the same computed on the host.
#include "check.h"

#include <cmath>
#include <cstring>
#include <functional>
#include <vector>

static const int MODES = 4;

__global__ void fetch1(hipTextureObject_t t, float4* out, int n) {
    int i = threadIdx.x;
    if (i < n) out[i] = tex1Dfetch<float4>(t, i);
}
__global__ void fetch1_bytes(hipTextureObject_t t, uchar4* out) {
    out[threadIdx.x] = tex1Dfetch<uchar4>(t, threadIdx.x);
}
__global__ void sample1(hipTextureObject_t t, const float* x, float* out) {
    out[threadIdx.x] = tex1D<float>(t, x[threadIdx.x]);
}
__global__ void sample2(hipTextureObject_t t, const float* x, const float* y, float4* out) {
    int i = threadIdx.x;
    out[i] = tex2D<float4>(t, x[i], y[i]);
}
__global__ void sample2_shorts(hipTextureObject_t t, const float* x, const float* y, short2* out) {
    int i = threadIdx.x;
    out[i] = tex2D<short2>(t, x[i], y[i]);
}
__global__ void sample2_level(hipTextureObject_t t, const float* x, const float* y, float4* out) {
    int i = threadIdx.x;
    float4 level = tex2DLod<float4>(t, x[i], y[i], 0.0f);
    float4 gradient = tex2DGrad<float4>(t, x[i], y[i], make_float2(0, 0), make_float2(0, 0));
    out[i] = make_float4(level.x, level.y, gradient.z, gradient.w);
}
__global__ void sample3(hipTextureObject_t t, const float* x, const float* y, const float* z, float* out) {
    int i = threadIdx.x;
    out[i] = tex3D<float>(t, x[i], y[i], z[i]);
}
__global__ void layered(hipTextureObject_t t, const float* x, const float* y, float2* out) {
    int i = threadIdx.x;
    out[i] = tex2DLayered<float2>(t, x[i], y[i], i % 5);
}
__global__ void gather(hipTextureObject_t t, const float* x, const float* y, float4* out) {
    int i = threadIdx.x;
    // The headers of HIP 5.2 count components of texture objects from 1.
    out[i] = tex2Dgather<float4>(t, x[i], y[i], 1);
}
__global__ void rows_to_surface(hipSurfaceObject_t s, int width) {
    int x = threadIdx.x, y = blockIdx.x;
    if (x < width) surf2Dwrite<float>(100.0f * y + x, s, x * 4, y);
}
__global__ void surface_to_surface(hipSurfaceObject_t from, hipSurfaceObject_t to, int width) {
    int x = threadIdx.x, y = blockIdx.x;
    float value;
    surf2Dread<float>(&value, from, x * 4, y);
    if (x < width) surf2Dwrite<float>(2 * value, to, x * 4, y);
}

// A picture in the host's memory: components as floats, by axis.
struct Picture {
    int width, height, depth, components;
    std::vector<float> values;
    Picture(int w, int h, int d, int c) : width(w), height(h), depth(d), components(c), values(w * h * d * c) {
        for (size_t n = 0; n < values.size(); n++) values[n] = float(int(n * 2654435761u >> 20) % 2001 - 1000) / 8;
    }
    float at(int x, int y, int z, int c) const { return values[((z * height + y) * width + x) * components + c]; }
};

// What becomes of a texel outside; -1 is the border.
static int inside(int at, int size, int mode) {
    switch (mode) {
    case hipAddressModeWrap: return ((at % size) + size) % size;
    case hipAddressModeClamp: return at < 0 ? 0 : at >= size ? size - 1 : at;
    case hipAddressModeMirror: {
        int period = ((at % (2 * size)) + 2 * size) % (2 * size);
        return period < size ? period : 2 * size - 1 - period;
    }
    default: return at < 0 || at >= size ? -1 : at;
    }
}

struct Look {
    int mode;
    bool linear, normalized;
};

// Texels and weights along an axis.
static int along(double at, int size, Look look, int texel[2], double weight[2]) {
    double texels = look.normalized ? at * size : at;
    if (!look.linear) {
        texel[0] = inside(int(std::floor(texels)), size, look.mode);
        weight[0] = 1;
        return 1;
    }
    double fixed = std::nearbyint((texels - 0.5) * 256) / 256;
    int first = int(std::floor(fixed));
    weight[1] = fixed - first;
    weight[0] = 1 - weight[1];
    texel[0] = inside(first, size, look.mode);
    texel[1] = inside(first + 1, size, look.mode);
    return 2;
}

static double expected(const Picture& p, int axes, const double* at, int component, Look look, int layer = 0) {
    int texel[3][2] = {{0, 0}, {0, 0}, {layer, 0}}, count[3] = {1, 1, 1};
    double weight[3][2] = {{1, 0}, {1, 0}, {1, 0}};
    int size[3] = {p.width, p.height, p.depth};
    for (int a = 0; a < axes; a++) count[a] = along(at[a], size[a], look, texel[a], weight[a]);
    double sum = 0;
    for (int k = 0; k < count[2]; k++)
        for (int j = 0; j < count[1]; j++)
            for (int i = 0; i < count[0]; i++) {
                int x = texel[0][i], y = texel[1][j], z = texel[2][k];
                double value = x < 0 || y < 0 || z < 0 ? 0 : p.at(x, y, z, component);
                sum += weight[0][i] * weight[1][j] * weight[2][k] * value;
            }
    return sum;
}

static bool near(double a, double b) { return std::fabs(a - b) <= 1e-5 * (1 + std::fabs(b)); }

template <typename T> static T* on_device(const std::vector<T>& values) {
    T* out;
    OK(hipMalloc(&out, values.size() * sizeof(T)));
    OK(hipMemcpy(out, values.data(), values.size() * sizeof(T), hipMemcpyHostToDevice));
    return out;
}

template <typename T> static std::vector<T> back(T* from, size_t count) {
    OK(hipDeviceSynchronize());
    std::vector<T> out(count);
    OK(hipMemcpy(out.data(), from, count * sizeof(T), hipMemcpyDeviceToHost));
    return out;
}

// Coordinates inside and outside, away from the middle between two steps and from the edges of texels.
static std::vector<float> coordinates(int size, bool normalized, int seed) {
    std::vector<float> out;
    for (int n = 0; n < 64; n++) {
        int step = (n * 37 + seed * 11) % (3 * size) - size;
        float texels = step + 0.0625f + 0.125f * ((n * 5 + seed) % 7);
        out.push_back(normalized ? texels / size : texels);
    }
    return out;
}

static hipResourceDesc of_array(hipArray_t array) {
    hipResourceDesc resource = {};
    resource.resType = hipResourceTypeArray;
    resource.res.array.array = array;
    return resource;
}

static hipTextureDesc how(Look look) {
    hipTextureDesc texture = {};
    for (int a = 0; a < 3; a++) texture.addressMode[a] = hipTextureAddressMode(look.mode);
    texture.filterMode = look.linear ? hipFilterModeLinear : hipFilterModePoint;
    texture.readMode = hipReadModeElementType;
    texture.normalizedCoords = look.normalized;
    return texture;
}

static hipTextureObject_t make(const hipResourceDesc& resource, const hipTextureDesc& texture) {
    hipTextureObject_t object;
    OK(hipCreateTextureObject(&object, &resource, &texture, nullptr));
    return object;
}

// All address modes that exist for a kind of coordinates, filtered or not.
static void looks(std::function<void(Look)> with) {
    for (int mode = 0; mode < MODES; mode++)
        for (int linear = 0; linear < 2; linear++)
            for (int normalized = 0; normalized < 2; normalized++)
                if (normalized || mode == hipAddressModeClamp || mode == hipAddressModeBorder)
                    with({mode, linear != 0, normalized != 0});
}

static void one_dimension() {
    Picture p(23, 1, 1, 1);
    hipArray_t array;
    hipChannelFormatDesc format = hipCreateChannelDesc<float>();
    OK(hipMallocArray(&array, &format, p.width, 0));
    OK(hipMemcpyToArray(array, 0, 0, p.values.data(), p.width * 4, hipMemcpyHostToDevice));
    looks([&](Look look) {
        hipTextureObject_t object = make(of_array(array), how(look));
        std::vector<float> x = coordinates(p.width, look.normalized, 1);
        float *dx = on_device(x), *out = on_device(std::vector<float>(64));
        sample1<<<1, 64>>>(object, dx, out);
        std::vector<float> found = back(out, 64);
        for (int n = 0; n < 64; n++) {
            double at[1] = {x[n]};
            CHECK(near(found[n], expected(p, 1, at, 0, look)));
        }
        OK(hipDestroyTextureObject(object));
        OK(hipFree(dx));
        OK(hipFree(out));
    });
    OK(hipFreeArray(array));
}

static void two_dimensions() {
    Picture p(19, 13, 1, 4);
    hipArray_t array;
    hipChannelFormatDesc format = hipCreateChannelDesc<float4>();
    OK(hipMallocArray(&array, &format, p.width, p.height));
    OK(hipMemcpy2DToArray(array, 0, 0, p.values.data(), p.width * 16, p.width * 16, p.height, hipMemcpyHostToDevice));
    float4* out = on_device(std::vector<float4>(64));
    looks([&](Look look) {
        hipTextureObject_t object = make(of_array(array), how(look));
        std::vector<float> x = coordinates(p.width, look.normalized, 1), y = coordinates(p.height, look.normalized, 2);
        float *dx = on_device(x), *dy = on_device(y);
        for (int level = 0; level < 2; level++) {
            // The device library looks up levels without its help for single texels.
            if (level && !look.linear) continue;
            if (level) sample2_level<<<1, 64>>>(object, dx, dy, out);
            else sample2<<<1, 64>>>(object, dx, dy, out);
            std::vector<float4> found = back(out, 64);
            for (int n = 0; n < 64; n++) {
                double at[2] = {x[n], y[n]};
                const float all[4] = {found[n].x, found[n].y, found[n].z, found[n].w};
                for (int c = 0; c < 4; c++) CHECK(near(all[c], expected(p, 2, at, c, look)));
            }
        }
        if (look.linear) {
            gather<<<1, 64>>>(object, dx, dy, out);
            std::vector<float4> found = back(out, 64);
            for (int n = 0; n < 64; n++) {
                int tx[2], ty[2];
                double w[2];
                along(x[n], p.width, look, tx, w);
                along(y[n], p.height, look, ty, w);
                const float all[4] = {found[n].x, found[n].y, found[n].z, found[n].w};
                const int i[4] = {0, 1, 1, 0}, j[4] = {1, 1, 0, 0};
                for (int k = 0; k < 4; k++) {
                    bool border = tx[i[k]] < 0 || ty[j[k]] < 0;
                    CHECK(all[k] == (border ? 0 : p.at(tx[i[k]], ty[j[k]], 0, 0)));
                }
            }
        }
        OK(hipDestroyTextureObject(object));
        OK(hipFree(dx));
        OK(hipFree(dy));
    });
    OK(hipFree(out));
    OK(hipFreeArray(array));
}

static void three_dimensions() {
    Picture p(11, 7, 5, 1);
    hipArray_t array;
    hipChannelFormatDesc format = hipCreateChannelDesc<float>();
    OK(hipMalloc3DArray(&array, &format, make_hipExtent(p.width, p.height, p.depth), 0));
    hipMemcpy3DParms copy = {};
    copy.srcPtr = make_hipPitchedPtr(p.values.data(), p.width * 4, p.width, p.height);
    copy.dstArray = array;
    copy.extent = make_hipExtent(p.width, p.height, p.depth);
    copy.kind = hipMemcpyHostToDevice;
    OK(hipMemcpy3D(&copy));
    looks([&](Look look) {
        hipTextureObject_t object = make(of_array(array), how(look));
        std::vector<float> x = coordinates(p.width, look.normalized, 1), y = coordinates(p.height, look.normalized, 2),
                           z = coordinates(p.depth, look.normalized, 3);
        float *dx = on_device(x), *dy = on_device(y), *dz = on_device(z), *out = on_device(std::vector<float>(64));
        sample3<<<1, 64>>>(object, dx, dy, dz, out);
        std::vector<float> found = back(out, 64);
        for (int n = 0; n < 64; n++) {
            double at[3] = {x[n], y[n], z[n]};
            CHECK(near(found[n], expected(p, 3, at, 0, look)));
        }
        OK(hipDestroyTextureObject(object));
        for (float* pointer : {dx, dy, dz, out}) OK(hipFree(pointer));
    });
    OK(hipFreeArray(array));
}

static void layers() {
    Picture p(9, 6, 5, 2);
    hipArray_t array;
    hipChannelFormatDesc format = hipCreateChannelDesc<float2>();
    OK(hipMalloc3DArray(&array, &format, make_hipExtent(p.width, p.height, p.depth), hipArrayLayered));
    hipMemcpy3DParms copy = {};
    copy.srcPtr = make_hipPitchedPtr(p.values.data(), p.width * 8, p.width, p.height);
    copy.dstArray = array;
    copy.extent = make_hipExtent(p.width, p.height, p.depth);
    copy.kind = hipMemcpyHostToDevice;
    OK(hipMemcpy3D(&copy));
    for (int linear = 0; linear < 2; linear++) {
        Look look = {hipAddressModeClamp, linear != 0, false};
        hipTextureDesc texture = how(look);
        hipResourceDesc resource = of_array(array);
        hipTextureObject_t object;
        hipError_t made = hipCreateTextureObject(&object, &resource, &texture, nullptr);
        OK(made);
        std::vector<float> x = coordinates(p.width, false, 1), y = coordinates(p.height, false, 2);
        float *dx = on_device(x), *dy = on_device(y);
        float2* out = on_device(std::vector<float2>(64));
        layered<<<1, 64>>>(object, dx, dy, out);
        std::vector<float2> found = back(out, 64);
        for (int n = 0; n < 64; n++) {
            double at[2] = {x[n], y[n]};
            CHECK(near(found[n].x, expected(p, 2, at, 0, look, n % 5)));
            CHECK(near(found[n].y, expected(p, 2, at, 1, look, n % 5)));
        }
        OK(hipDestroyTextureObject(object));
        OK(hipFree(dx));
        OK(hipFree(dy));
        OK(hipFree(out));
    }
    OK(hipFreeArray(array));
}

// Elements of plain memory, of rows of it, and as fractions.
static void plain_memory() {
    std::vector<float4> values(40);
    for (int n = 0; n < 40; n++) values[n] = make_float4(n, n + 0.25f, n * n, -n);
    float4 *from = on_device(values), *out = on_device(std::vector<float4>(64));
    hipResourceDesc resource = {};
    resource.resType = hipResourceTypeLinear;
    resource.res.linear.devPtr = from;
    resource.res.linear.desc = hipCreateChannelDesc<float4>();
    resource.res.linear.sizeInBytes = values.size() * sizeof(float4);
    hipTextureObject_t object = make(resource, how({0, false, false}));
    fetch1<<<1, 64>>>(object, out, 40);
    CHECK(std::memcmp(back(out, 40).data(), values.data(), 40 * sizeof(float4)) == 0);
    OK(hipDestroyTextureObject(object));

    const int width = 70, height = 5;
    unsigned char* bytes;
    size_t pitch;
    OK(hipMallocPitch(reinterpret_cast<void**>(&bytes), &pitch, width * 4, height));
    std::vector<unsigned char> picture(width * 4 * height);
    for (size_t n = 0; n < picture.size(); n++) picture[n] = n * 7 + n / 256;
    OK(hipMemcpy2D(bytes, pitch, picture.data(), width * 4, width * 4, height, hipMemcpyHostToDevice));
    resource = {};
    resource.resType = hipResourceTypePitch2D;
    resource.res.pitch2D.devPtr = bytes;
    // The headers of HIP 5.2 take it for signed.
    resource.res.pitch2D.desc = hipCreateChannelDesc(8, 8, 8, 8, hipChannelFormatKindUnsigned);
    resource.res.pitch2D.width = width;
    resource.res.pitch2D.height = height;
    resource.res.pitch2D.pitchInBytes = pitch;
    hipTextureDesc texture = how({hipAddressModeClamp, false, false});
    texture.readMode = hipReadModeNormalizedFloat;
    object = make(resource, texture);
    std::vector<float> x(64), y(64);
    for (int n = 0; n < 64; n++) {
        x[n] = n + 0.5f;
        y[n] = n % height + 0.25f;
    }
    float *dx = on_device(x), *dy = on_device(y);
    sample2<<<1, 64>>>(object, dx, dy, out);
    std::vector<float4> found = back(out, 64);
    for (int n = 0; n < 64; n++) {
        const unsigned char* texel = &picture[(n % height * width + n) * 4];
        CHECK(found[n].x == texel[0] / 255.0f && found[n].y == texel[1] / 255.0f && found[n].z == texel[2] / 255.0f &&
              found[n].w == texel[3] / 255.0f);
    }
    hipResourceDesc told;
    hipTextureDesc sampling;
    OK(hipGetTextureObjectResourceDesc(&told, object));
    OK(hipGetTextureObjectTextureDesc(&sampling, object));
    CHECK(told.resType == hipResourceTypePitch2D && told.res.pitch2D.width == size_t(width) &&
          told.res.pitch2D.pitchInBytes == pitch);
    CHECK(sampling.readMode == hipReadModeNormalizedFloat && sampling.addressMode[0] == hipAddressModeClamp);
    OK(hipDestroyTextureObject(object));

    resource = {};
    resource.resType = hipResourceTypeLinear;
    resource.res.linear.devPtr = bytes;
    resource.res.linear.desc = hipCreateChannelDesc(8, 8, 8, 8, hipChannelFormatKindUnsigned);
    resource.res.linear.sizeInBytes = 64 * 4;
    object = make(resource, how({0, false, false}));
    uchar4* copied = on_device(std::vector<uchar4>(64));
    fetch1_bytes<<<1, 64>>>(object, copied);
    CHECK(std::memcmp(back(copied, 64).data(), picture.data(), 64 * 4) == 0);
    OK(hipDestroyTextureObject(object));
    for (void* pointer : {(void*)from, (void*)out, (void*)bytes, (void*)dx, (void*)dy, (void*)copied})
        OK(hipFree(pointer));
}

static void integers() {
    const int width = 12, height = 4;
    std::vector<short2> values(width * height);
    for (int n = 0; n < width * height; n++) values[n] = make_short2(n * 700 - 16000, -n);
    hipArray_t array;
    hipChannelFormatDesc format = hipCreateChannelDesc<short2>();
    OK(hipMallocArray(&array, &format, width, height));
    OK(hipMemcpy2DToArray(array, 0, 0, values.data(), width * 4, width * 4, height, hipMemcpyHostToDevice));
    hipTextureObject_t object = make(of_array(array), how({hipAddressModeClamp, false, false}));
    std::vector<float> x(64), y(64);
    for (int n = 0; n < 64; n++) {
        x[n] = n % width + 0.75f;
        y[n] = n % height + 0.5f;
    }
    float *dx = on_device(x), *dy = on_device(y);
    short2* out = on_device(std::vector<short2>(64));
    sample2_shorts<<<1, 64>>>(object, dx, dy, out);
    std::vector<short2> found = back(out, 64);
    for (int n = 0; n < 64; n++) {
        short2 wanted = values[n % height * width + n % width];
        CHECK(found[n].x == wanted.x && found[n].y == wanted.y);
    }
    OK(hipDestroyTextureObject(object));
    OK(hipFreeArray(array));
    for (void* pointer : {(void*)dx, (void*)dy, (void*)out}) OK(hipFree(pointer));
}

static void surfaces() {
    const int width = 50, height = 6;
    hipArray_t arrays[2];
    hipSurfaceObject_t objects[2];
    hipChannelFormatDesc format = hipCreateChannelDesc<float>();
    for (int n = 0; n < 2; n++) {
        OK(hipMallocArray(&arrays[n], &format, width, height, hipArraySurfaceLoadStore));
        hipResourceDesc resource = of_array(arrays[n]);
        OK(hipCreateSurfaceObject(&objects[n], &resource));
    }
    rows_to_surface<<<height, 64>>>(objects[0], width);
    surface_to_surface<<<height, 64>>>(objects[0], objects[1], width);
    OK(hipDeviceSynchronize());
    std::vector<float> found(width * height);
    OK(hipMemcpy2DFromArray(found.data(), width * 4, arrays[1], 0, 0, width * 4, height, hipMemcpyDeviceToHost));
    for (int y = 0; y < height; y++)
        for (int x = 0; x < width; x++) CHECK(found[y * width + x] == 2 * (100.0f * y + x));
    for (int n = 0; n < 2; n++) {
        OK(hipDestroySurfaceObject(objects[n]));
        OK(hipFreeArray(arrays[n]));
    }
}

// What HIP refuses.
static void refusals() {
    float* memory;
    OK(hipMalloc(&memory, 4096));
    hipResourceDesc resource = {};
    resource.resType = hipResourceTypeLinear;
    resource.res.linear.devPtr = memory + 1;
    resource.res.linear.desc = hipCreateChannelDesc<float>();
    resource.res.linear.sizeInBytes = 64;
    hipTextureDesc texture = how({0, false, false});
    hipTextureObject_t object;
    CHECK(hipCreateTextureObject(&object, &resource, &texture, nullptr) == hipErrorInvalidValue);
    resource.res.linear.devPtr = memory;
    CHECK(hipCreateTextureObject(nullptr, &resource, &texture, nullptr) == hipErrorInvalidValue);
    texture.maxAnisotropy = 2;
    CHECK(hipCreateTextureObject(&object, &resource, &texture, nullptr) == hipErrorNotSupported);
    OK(hipDestroyTextureObject(nullptr));
    OK(hipFree(memory));
}

int main() {
    int images = 0;
    OK(hipDeviceGetAttribute(&images, hipDeviceAttributeImageSupport, 0));
    CHECK(images == 1);
    plain_memory();
    one_dimension();
    two_dimensions();
    three_dimensions();
    layers();
    integers();
    surfaces();
    refusals();
    return verdict();
}
