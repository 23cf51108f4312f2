// malloc and free in kernels: small pieces of slabs, large ones of their own, new and delete, from one kernel to the
// next.
#include "check.h"

constexpr int LANES = 128;

__global__ void take(int** kept, int* wrong) {
    int lane = threadIdx.x;
    int* mine = static_cast<int*>(malloc(16 + 8 * lane));
    if (!mine) {
        atomicAdd(wrong, 1);
        return;
    }
    for (int i = 0; i < 4; ++i) mine[i] = 10 * lane + i;
    if (lane % 3 == 0) {
        int sum = mine[0] + mine[1] + mine[2] + mine[3];
        if (sum != 40 * lane + 6) atomicAdd(wrong, 1);
        free(mine);
        mine = nullptr;
    }
    kept[lane] = mine;
}

__global__ void give_back(int** kept, int* wrong) {
    int lane = threadIdx.x;
    if (!kept[lane]) return;
    for (int other = 0; other < LANES; ++other)
        if (other != lane && kept[other] == kept[lane]) atomicAdd(wrong, 1);
    for (int i = 0; i < 4; ++i)
        if (kept[lane][i] != 10 * lane + i) atomicAdd(wrong, 1);
    free(kept[lane]);
}

// More than a slab has room for goes to the host by itself; again and again, so that what is freed must be given again.
__global__ void large(int* wrong) {
    for (int round = 0; round < 3; ++round) {
        size_t words = 100000 + 1000 * threadIdx.x;
        int* mine = new int[words];
        if (!mine) {
            atomicAdd(wrong, 1);
            return;
        }
        mine[0] = threadIdx.x;
        mine[words - 1] = round;
        if (mine[0] != int(threadIdx.x) || mine[words - 1] != round) atomicAdd(wrong, 1);
        delete[] mine;
    }
}

// More than there is: null.
__global__ void impossible(int* wrong) {
    if (malloc(size_t(1) << 40)) atomicAdd(wrong, 1);
}

int main(int argc, char** argv) {
    int** kept = nullptr;
    int* wrong = nullptr;
    OK(hipMalloc(&kept, LANES * sizeof *kept));
    OK(hipMalloc(&wrong, sizeof *wrong));
    OK(hipMemset(wrong, 0, sizeof *wrong));
    if (argc > 1) {
        impossible<<<1, 1>>>(wrong);
    } else {
        for (int round = 0; round < 2; ++round) {
            take<<<1, LANES>>>(kept, wrong);
            give_back<<<1, LANES>>>(kept, wrong);
            large<<<2, 5>>>(wrong);
        }
    }
    OK(hipDeviceSynchronize());
    int found = -1;
    OK(hipMemcpy(&found, wrong, sizeof found, hipMemcpyDeviceToHost));
    CHECK(found == 0);
    return verdict();
}
