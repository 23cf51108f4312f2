/* Uses HSA without HIP: loads a code object from a file, and starts its kernels on several queues at the same time.
 *
 *     direct OBJECT QUEUES ROUNDS END
 *
 * Each round starts `steps` and `backwards` once on each queue. END: how the program ends: return, shutdown, _exit,
 * abort (after what has ended was collected), early (_exit while kernels may run), fork; paced: return, and each round
 * waits for its dispatches. */
#include <fcntl.h>
#include <hsa/hsa.h>
#include <hsa/hsa_ext_amd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#ifndef ITEMS
#define ITEMS 1000
#endif
#define GROUP 256
#define MOST_QUEUES 8

static void check(hsa_status_t status, const char *what) {
    if (status == HSA_STATUS_SUCCESS || status == HSA_STATUS_INFO_BREAK) return;
    const char *text = "";
    hsa_status_string(status, &text);
    fprintf(stderr, "%s: %s\n", what, text);
    exit(1);
}

static hsa_status_t find_gpu(hsa_agent_t agent, void *data) {
    hsa_device_type_t type;
    check(hsa_agent_get_info(agent, HSA_AGENT_INFO_DEVICE, &type), "an agent");
    if (type != HSA_DEVICE_TYPE_GPU) return HSA_STATUS_SUCCESS;
    *(hsa_agent_t *)data = agent;
    return HSA_STATUS_INFO_BREAK;
}

/* Memory that host and GPU see: a fine-grained pool of the host. */
static hsa_status_t find_pool(hsa_amd_memory_pool_t pool, void *data) {
    hsa_amd_segment_t segment;
    uint32_t flags = 0;
    check(hsa_amd_memory_pool_get_info(pool, HSA_AMD_MEMORY_POOL_INFO_SEGMENT, &segment), "a pool");
    if (segment != HSA_AMD_SEGMENT_GLOBAL) return HSA_STATUS_SUCCESS;
    check(hsa_amd_memory_pool_get_info(pool, HSA_AMD_MEMORY_POOL_INFO_GLOBAL_FLAGS, &flags), "a pool");
    if (!(flags & HSA_AMD_MEMORY_POOL_GLOBAL_FLAG_KERNARG_INIT)) return HSA_STATUS_SUCCESS;
    *(hsa_amd_memory_pool_t *)data = pool;
    return HSA_STATUS_INFO_BREAK;
}

static hsa_status_t find_host(hsa_agent_t agent, void *data) {
    hsa_device_type_t type;
    check(hsa_agent_get_info(agent, HSA_AGENT_INFO_DEVICE, &type), "an agent");
    if (type != HSA_DEVICE_TYPE_CPU) return HSA_STATUS_SUCCESS;
    hsa_status_t status = hsa_amd_agent_iterate_memory_pools(agent, find_pool, data);
    return status == HSA_STATUS_INFO_BREAK ? status : HSA_STATUS_SUCCESS;
}

struct kernel {
    uint64_t object;
    uint32_t group, private;
};

static struct kernel kernel_of(hsa_executable_t executable, hsa_agent_t gpu, const char *name) {
    struct kernel kernel;
    hsa_executable_symbol_t symbol;
    check(hsa_executable_get_symbol_by_name(executable, name, &gpu, &symbol), name);
    check(hsa_executable_symbol_get_info(symbol, HSA_EXECUTABLE_SYMBOL_INFO_KERNEL_OBJECT, &kernel.object), name);
    check(hsa_executable_symbol_get_info(symbol, HSA_EXECUTABLE_SYMBOL_INFO_KERNEL_GROUP_SEGMENT_SIZE, &kernel.group),
          name);
    check(hsa_executable_symbol_get_info(symbol, HSA_EXECUTABLE_SYMBOL_INFO_KERNEL_PRIVATE_SEGMENT_SIZE,
                                         &kernel.private),
          name);
    return kernel;
}

static void dispatch(hsa_queue_t *queue, struct kernel kernel, void *arguments, hsa_signal_t signal) {
    uint64_t index = hsa_queue_add_write_index_screlease(queue, 1);
    while (index - hsa_queue_load_read_index_scacquire(queue) >= queue->size) usleep(10);
    hsa_kernel_dispatch_packet_t *packet =
        (hsa_kernel_dispatch_packet_t *)queue->base_address + index % queue->size;
    memset((char *)packet + 4, 0, sizeof *packet - 4);
    packet->workgroup_size_x = GROUP;
    packet->workgroup_size_y = packet->workgroup_size_z = 1;
    packet->grid_size_x = ITEMS;
    packet->grid_size_y = packet->grid_size_z = 1;
    packet->private_segment_size = kernel.private;
    packet->group_segment_size = kernel.group;
    packet->kernel_object = kernel.object;
    packet->kernarg_address = arguments;
    packet->completion_signal = signal;
    uint32_t header = HSA_PACKET_TYPE_KERNEL_DISPATCH;
    header |= HSA_FENCE_SCOPE_SYSTEM << HSA_PACKET_HEADER_ACQUIRE_FENCE_SCOPE;
    header |= HSA_FENCE_SCOPE_SYSTEM << HSA_PACKET_HEADER_RELEASE_FENCE_SCOPE;
    __atomic_store_n((uint32_t *)packet, header | 1u << 16, __ATOMIC_RELEASE);
    hsa_signal_store_screlease(queue->doorbell_signal, index);
}

static unsigned steps_of(unsigned i) {
    unsigned value = i * 7 + 1, count = 0;
    for (; value != 1; ++count) value = value % 2 ? 3 * value + 1 : value / 2;
    return count;
}

int main(int argc, char **argv) {
    if (argc != 5) return 2;
    int queues = atoi(argv[2]), rounds = atoi(argv[3]);
    const char *end = argv[4];
    hsa_agent_t gpu = {0};
    hsa_amd_memory_pool_t pool = {0};
    check(hsa_init(), "hsa_init");
    check(hsa_iterate_agents(find_gpu, &gpu), "the GPU");
    check(hsa_iterate_agents(find_host, &pool), "the pool");

    int file = open(argv[1], O_RDONLY);
    hsa_code_object_reader_t reader;
    hsa_executable_t executable;
    check(hsa_code_object_reader_create_from_file(file, &reader), "the reader");
    check(hsa_executable_create_alt(HSA_PROFILE_FULL, HSA_DEFAULT_FLOAT_ROUNDING_MODE_DEFAULT, NULL, &executable),
          "the executable");
    check(hsa_executable_load_agent_code_object(executable, gpu, reader, NULL, NULL), "the code object");
    check(hsa_executable_freeze(executable, NULL), "freezing");
    check(hsa_code_object_reader_destroy(reader), "the reader");
    close(file);
    struct kernel steps = kernel_of(executable, gpu, "steps.kd");
    struct kernel backwards = kernel_of(executable, gpu, "backwards.kd");
    if (backwards.group != GROUP * sizeof(unsigned)) return fprintf(stderr, "LDS: %u bytes\n", backwards.group), 1;

    unsigned *out;
    void **arguments;
    check(hsa_amd_memory_pool_allocate(pool, ITEMS * sizeof *out, 0, (void **)&out), "memory");
    check(hsa_amd_memory_pool_allocate(pool, 4096, 0, (void **)&arguments), "memory");
    check(hsa_amd_agents_allow_access(1, &gpu, NULL, out), "access");
    check(hsa_amd_agents_allow_access(1, &gpu, NULL, arguments), "access");
    memset(out, 0, ITEMS * sizeof *out);
    memset(arguments, 0, 4096);
    arguments[0] = out;

    hsa_queue_t *all[MOST_QUEUES];
    hsa_signal_t ended;
    check(hsa_signal_create(2 * queues * rounds, 0, NULL, &ended), "a signal");
    for (int q = 0; q < queues; ++q)
        check(hsa_queue_create(gpu, 64, HSA_QUEUE_TYPE_MULTI, NULL, NULL, UINT32_MAX, UINT32_MAX, &all[q]), "a queue");
    for (int round = 0; round < rounds; ++round)
        for (int q = 0; q < queues; ++q) {
            dispatch(all[q], steps, arguments, ended);
            dispatch(all[q], backwards, arguments, ended);
            hsa_signal_value_t left = 2 * (queues * (rounds - round) - q - 1);
            if (!strcmp(end, "paced"))
                while (hsa_signal_load_scacquire(ended) > left) {}
        }
    if (!strcmp(end, "early")) _exit(0);
    while (hsa_signal_wait_scacquire(ended, HSA_SIGNAL_CONDITION_LT, 1, UINT64_MAX, HSA_WAIT_STATE_BLOCKED) > 0) {}

    for (unsigned i = 0; i < ITEMS; ++i) {
        unsigned last = i / GROUP * GROUP + GROUP - 1 - i % GROUP;
        /* The last workgroup has fewer work-items, and reads LDS that none of them has written. */
        if (i / GROUP == ITEMS / GROUP) continue;
        unsigned expected = (steps_of(i) + (i % 3 ? last : 0)) * queues * rounds;
        if (out[i] != expected) return fprintf(stderr, "%u: %u, expected %u\n", i, out[i], expected), 1;
    }
    puts("PASS");
    fflush(stdout);
    if (!strcmp(end, "_exit") || !strcmp(end, "abort")) {
        sleep(5);
        if (!strcmp(end, "abort")) abort();
        _exit(0);
    }
    if (!strcmp(end, "fork")) {
        pid_t child = fork();
        if (child == 0) exit(0);
        int status = 0;
        if (waitpid(child, &status, 0) != child || status != 0) return fprintf(stderr, "the child: %d\n", status), 1;
    }
    if (!strcmp(end, "shutdown")) {
        for (int q = 0; q < queues; ++q) check(hsa_queue_destroy(all[q]), "a queue");
        check(hsa_executable_destroy(executable), "the executable");
        check(hsa_signal_destroy(ended), "the signal");
        check(hsa_shut_down(), "hsa_shut_down");
    }
    return 0;
}
