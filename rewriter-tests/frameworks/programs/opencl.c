/* OpenCL: a kernel from source, with local memory and a branch by lane, against the same sums on the CPU. */
#define CL_TARGET_OPENCL_VERSION 200
#include <CL/cl.h>
#include <stdio.h>
#include <stdlib.h>

static const char *source =
    "kernel void prefix(global const int *in, global int *out, local int *group) {\n"
    "    const int at = get_global_id(0), lane = get_local_id(0);\n"
    "    group[lane] = in[at];\n"
    "    barrier(CLK_LOCAL_MEM_FENCE);\n"
    "    int sum = 0;\n"
    "    if (lane < 20)\n"
    "        for (int i = 0; i <= lane; ++i) sum += group[i];\n"
    "    else\n"
    "        sum = -in[at];\n"
    "    out[at] = sum;\n"
    "}\n";

static void must(cl_int status, const char *call) {
    if (status == CL_SUCCESS) return;
    printf("%s returned %d\n", call, status);
    exit(2);
}

int main(void) {
    enum { count = 256, group = 64 };
    int in[count], out[count], different = 0;
    for (int i = 0; i < count; ++i) in[i] = i * 3 % 17;
    cl_platform_id platform;
    cl_device_id device;
    cl_int status;
    char name[256];
    must(clGetPlatformIDs(1, &platform, NULL), "clGetPlatformIDs");
    must(clGetDeviceIDs(platform, CL_DEVICE_TYPE_GPU, 1, &device, NULL), "clGetDeviceIDs");
    must(clGetDeviceInfo(device, CL_DEVICE_NAME, sizeof name, name, NULL), "clGetDeviceInfo");
    printf("device %s\n", name);
    cl_context context = clCreateContext(NULL, 1, &device, NULL, NULL, &status);
    must(status, "clCreateContext");
    cl_command_queue queue = clCreateCommandQueueWithProperties(context, device, NULL, &status);
    must(status, "clCreateCommandQueueWithProperties");
    cl_program program = clCreateProgramWithSource(context, 1, &source, NULL, &status);
    must(status, "clCreateProgramWithSource");
    must(clBuildProgram(program, 1, &device, "", NULL, NULL), "clBuildProgram");
    cl_kernel kernel = clCreateKernel(program, "prefix", &status);
    must(status, "clCreateKernel");
    cl_mem from = clCreateBuffer(context, CL_MEM_READ_ONLY | CL_MEM_COPY_HOST_PTR, sizeof in, in, &status);
    must(status, "clCreateBuffer");
    cl_mem to = clCreateBuffer(context, CL_MEM_WRITE_ONLY, sizeof out, NULL, &status);
    must(status, "clCreateBuffer");
    must(clSetKernelArg(kernel, 0, sizeof from, &from), "clSetKernelArg");
    must(clSetKernelArg(kernel, 1, sizeof to, &to), "clSetKernelArg");
    must(clSetKernelArg(kernel, 2, group * sizeof(int), NULL), "clSetKernelArg");
    const size_t global = count, local = group;
    must(clEnqueueNDRangeKernel(queue, kernel, 1, NULL, &global, &local, 0, NULL, NULL), "clEnqueueNDRangeKernel");
    must(clEnqueueReadBuffer(queue, to, CL_TRUE, 0, sizeof out, out, 0, NULL, NULL), "clEnqueueReadBuffer");
    for (int i = 0; i < count; ++i) {
        const int lane = i % group;
        int sum = lane < 20 ? 0 : -in[i];
        for (int k = 0; lane < 20 && k <= lane; ++k) sum += in[i - lane + k];
        different += sum != out[i];
    }
    printf("kernel: %s, different %d\n", different ? "WRONG" : "PASS", different);
    clReleaseMemObject(to);
    clReleaseMemObject(from);
    clReleaseKernel(kernel);
    clReleaseProgram(program);
    clReleaseCommandQueue(queue);
    clReleaseContext(context);
    return different != 0;
}
