// Texture references: bound to plain memory, to rows and to an array, one after the other.
#include "check.h"

texture<float, hipTextureType1D, hipReadModeElementType> line;
texture<float, hipTextureType2D, hipReadModeElementType> picture;

__global__ void of_line(float* out) { out[threadIdx.x] = tex1Dfetch(line, threadIdx.x); }
__global__ void of_picture(float* out, int width) {
    out[threadIdx.x] = tex2D(picture, threadIdx.x % width + 0.5f, threadIdx.x / width + 0.5f);
}

int main() {
    const int width = 8, height = 8;
    std::vector<float> values(64), found(64);
    for (int n = 0; n < 64; n++) values[n] = n * 1.5f - 7;
    float *from, *rows, *out;
    size_t pitch, offset = 1;
    OK(hipMalloc(&from, 256));
    OK(hipMalloc(&out, 256));
    OK(hipMallocPitch(reinterpret_cast<void**>(&rows), &pitch, width * 4, height));
    OK(hipMemcpy(from, values.data(), 256, hipMemcpyHostToDevice));
    OK(hipMemcpy2D(rows, pitch, values.data(), width * 4, width * 4, height, hipMemcpyHostToDevice));
    auto check = [&] {
        OK(hipDeviceSynchronize());
        OK(hipMemcpy(found.data(), out, 256, hipMemcpyDeviceToHost));
        CHECK(found == values);
        OK(hipMemset(out, 0, 256));
    };

    hipChannelFormatDesc format = hipCreateChannelDesc<float>();
    OK(hipBindTexture(&offset, &line, from, &format, 256));
    CHECK(offset == 0);
    of_line<<<1, 64>>>(out);
    check();
    OK(hipUnbindTexture(&line));

    OK(hipBindTexture2D(&offset, &picture, rows, &format, width, height, pitch));
    of_picture<<<1, 64>>>(out, width);
    check();

    hipArray_t array;
    OK(hipMallocArray(&array, &format, width, height));
    OK(hipMemcpy2DToArray(array, 0, 0, values.data(), width * 4, width * 4, height, hipMemcpyHostToDevice));
    OK(hipBindTextureToArray(&picture, array, &format));
    of_picture<<<1, 64>>>(out, width);
    check();
    OK(hipUnbindTexture(&picture));
    const textureReference* same = nullptr;
    OK(hipGetTextureReference(&same, &picture));
    CHECK(same == &picture);
    OK(hipFreeArray(array));
    return verdict();
}
