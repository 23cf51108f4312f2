// The source of kernels.zebin, for the tests of this crate:
// ocloc compile -file kernels.cl -device pvc -output kernels.zebin -output_no_suffix \
//     -internal_options "-cl-intel-allow-zebin"

__kernel void gather(__global const int *index, __global const float *from, __global float *to, int count)
{
    const int item = get_global_id(0);
    if (item < count)
        to[item] = sqrt(from[index[item]]) + 1.0f;
}

__kernel void reduce(__global const float *from, __global float *to, __local float *shared)
{
    const int item = get_local_id(0);
    shared[item] = from[get_global_id(0)];
    for (int step = get_local_size(0) / 2; step > 0; step /= 2) {
        barrier(CLK_LOCAL_MEM_FENCE);
        if (item < step)
            shared[item] += shared[item + step];
    }
    if (item == 0)
        to[get_group_id(0)] = shared[0];
}
