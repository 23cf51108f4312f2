// Uses the driver without any runtime: memory, events, a queue of PM4 commands or an AQL queue whose packets name a
// buffer of commands, and a kernel that registers describe. Fields of packets are written out by hand from AMD's
// headers.

#include <errno.h>
#include <fcntl.h>
#include <linux/kfd_ioctl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#define CHECK(condition)                                                       \
  do {                                                                         \
    if (!(condition)) {                                                        \
      printf("line %d: %s (%s)\n", __LINE__, #condition, strerror(errno));     \
      exit(1);                                                                 \
    }                                                                          \
  } while (0)

// Newer than the headers of some machines.
struct runtime_enable {
  uint64_t r_debug;
  uint32_t mode_mask;
  uint32_t capabilities_mask;
};
#define RUNTIME_ENABLE _IOWR('K', 0x25, struct runtime_enable)

// Stores its user data's third word plus the lane at the address in the first two: the work-items of all workgroups one
// after the other. By llvm-mc; the comments are gfx942's.
static const uint32_t KERNELS[2][10] = {
    {
        0x260000ff, 0x000003ff, // v_and_b32 v0, 0x3ff, v0
        0x8e038603,             // s_lshl_b32 s3, s3, 6
        0x68020003,             // v_add_u32 v1, s3, v0
        0x24020282,             // v_lshlrev_b32 v1, 2, v1
        0x68040002,             // v_add_u32 v2, s2, v0
        0xdc708000, 0x00000201, // global_store_dword v1, v2, s[0:1]
        0xbf810000,             // s_endpgm
    },
    {0x360000ff, 0x000003ff, 0x84038603, 0x4a020003, 0x30020282, 0x4a040002, 0xdc6a0000, 0x00000201, 0xbfb00000},
};

enum { GPU = 2, RING = 0x10000, PAGE = 0x1000 };

static int kfd, render, later;

static void *allocate(size_t size, uint32_t flags, uint64_t *handle) {
  void *at = mmap(NULL, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  struct kfd_ioctl_alloc_memory_of_gpu_args made = {
      .va_addr = (uintptr_t)at, .size = size, .gpu_id = GPU, .flags = flags};
  CHECK(!ioctl(kfd, AMDKFD_IOC_ALLOC_MEMORY_OF_GPU, &made));
  CHECK(mmap(at, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, render, made.mmap_offset) == at);
  uint32_t gpus[] = {GPU};
  struct kfd_ioctl_map_memory_to_gpu_args map = {
      .handle = made.handle, .device_ids_array_ptr = (uintptr_t)gpus, .n_devices = 1};
  CHECK(!ioctl(kfd, AMDKFD_IOC_MAP_MEMORY_TO_GPU, &map) && map.n_success == 1);
  if (handle)
    *handle = made.handle;
  return at;
}

static uint32_t *commands, *words;

static void put(uint32_t word) { *words++ = word; }

static void packet(uint32_t operation, int count, const uint32_t *body) {
  put(3u << 30 | (uint32_t)(count - 1) << 16 | operation << 8);
  while (count--)
    put(*body++);
}
#define PACKET(operation, ...)                                                 \
  do {                                                                         \
    const uint32_t body[] = {__VA_ARGS__};                                     \
    packet(operation, sizeof body / 4, body);                                  \
  } while (0)
#define ADDRESS(pointer) (uint32_t)(uintptr_t)(pointer), (uint32_t)((uintptr_t)(pointer) >> 32)

enum {
  NOP = 0x10,
  DISPATCH_DIRECT = 0x15,
  WRITE_DATA = 0x37,
  WAIT_REG_MEM = 0x3c,
  INDIRECT_BUFFER = 0x3f,
  COPY_DATA = 0x40,
  EVENT_WRITE = 0x46,
  RELEASE_MEM = 0x49,
  ACQUIRE_MEM = 0x58,
  SET_SH_REG = 0x76,
  SET_UCONFIG_REG = 0x79,
};

static void acquire(void) {
  if (later)
    PACKET(ACQUIRE_MEM, 0, ~0u, ~0u, 0, 0, 0, 3 | 0x3fff0);
  else
    PACKET(ACQUIRE_MEM, 1u << 29 | 1u << 27 | 1u << 23, ~0u, ~0u, 0, 0, 10);
}

// Waits for an event for at most so long; whether it came.
static int wait_for(uint32_t event, uint32_t milliseconds) {
  struct kfd_event_data data = {.event_id = event};
  struct kfd_ioctl_wait_events_args wait = {
      .events_ptr = (uintptr_t)&data, .num_events = 1, .wait_for_all = 1, .timeout = milliseconds};
  CHECK(!ioctl(kfd, AMDKFD_IOC_WAIT_EVENTS, &wait));
  return wait.wait_result == 0;
}

int main(int count, char **arguments) {
  CHECK(count == 3);
  later = !strcmp(arguments[1], "gfx1100");
  const char *way = arguments[2];
  int is_packet = !strcmp(way, "packet") || !strcmp(way, "short") || !strcmp(way, "notbuffer");
  int is_good = !strcmp(way, "packet") || !strcmp(way, "queue");

  kfd = open("/dev/kfd", O_RDWR | O_CLOEXEC);
  render = open("/dev/dri/renderD128", O_RDWR | O_CLOEXEC);
  CHECK(kfd >= 0 && render >= 0);
  struct kfd_ioctl_get_version_args version;
  CHECK(!ioctl(kfd, AMDKFD_IOC_GET_VERSION, &version) && version.major_version == 1 && version.minor_version == 14);
  struct kfd_ioctl_acquire_vm_args vm = {.drm_fd = render, .gpu_id = GPU};
  CHECK(!ioctl(kfd, AMDKFD_IOC_ACQUIRE_VM, &vm));
  struct runtime_enable enable = {.mode_mask = 1};
  CHECK(!ioctl(kfd, RUNTIME_ENABLE, &enable));
  CHECK(ioctl(kfd, RUNTIME_ENABLE, &enable) == -1 && errno == EBUSY);
  enable.mode_mask = 0;
  CHECK(!ioctl(kfd, RUNTIME_ENABLE, &enable));

  const uint32_t host = KFD_IOC_ALLOC_MEM_FLAGS_GTT | KFD_IOC_ALLOC_MEM_FLAGS_WRITABLE |
                        KFD_IOC_ALLOC_MEM_FLAGS_EXECUTABLE | KFD_IOC_ALLOC_MEM_FLAGS_COHERENT;
  uint64_t page;
  uint64_t *slots = allocate(0x8000, host, &page);
  struct kfd_ioctl_create_event_args event = {.event_page_offset = page};
  CHECK(!ioctl(kfd, AMDKFD_IOC_CREATE_EVENT, &event));
  event = (struct kfd_ioctl_create_event_args){.event_type = KFD_IOC_EVENT_SIGNAL, .auto_reset = 1};
  CHECK(!ioctl(kfd, AMDKFD_IOC_CREATE_EVENT, &event) && event.event_id);
  uint64_t *slot = slots + event.event_slot_index;

  uint32_t *ring = allocate(RING, host, NULL);
  uint64_t *queue = allocate(PAGE, host, NULL);
  uint32_t *code = allocate(PAGE, KFD_IOC_ALLOC_MEM_FLAGS_VRAM | host, NULL);
  volatile uint32_t *out = allocate(PAGE, host, NULL);
  volatile uint64_t *signals = allocate(PAGE, host, NULL);
  commands = allocate(2 * PAGE, host, NULL);
  memcpy(code, KERNELS[later], sizeof KERNELS[later]);
  // The write and the read index of `amd_queue_t`.
  volatile uint64_t *write_index = queue + 7, *read_index = queue + 16;
  struct kfd_ioctl_create_queue_args made = {
      .ring_base_address = (uintptr_t)ring,
      .write_pointer_address = (uintptr_t)write_index,
      .read_pointer_address = (uintptr_t)read_index,
      .ring_size = RING,
      .gpu_id = GPU,
      .queue_type = is_packet ? KFD_IOC_QUEUE_TYPE_COMPUTE_AQL : KFD_IOC_QUEUE_TYPE_COMPUTE,
      .queue_percentage = 100,
      .queue_priority = 7,
  };
  CHECK(!ioctl(kfd, AMDKFD_IOC_CREATE_QUEUE, &made));

  // Commands, which the ring names or has itself.
  words = is_packet ? commands : ring;
  uint32_t *inner = commands + PAGE / 4;
  if (is_good) {
    acquire();
    // The host's writes are flushed.
    PACKET(WAIT_REG_MEM, 1 << 6 | 3, 0xe26, 0xe27, ~0u, ~0u, 4);
    PACKET(WRITE_DATA, 5 << 8 | 1 << 20, ADDRESS(&signals[0]), 0x11, 0x22);
    PACKET(COPY_DATA, 5 << 8 | 1 | 1 << 16, ADDRESS(&signals[0]), ADDRESS(&signals[1]));
    PACKET(COPY_DATA, 2 << 8 | 5, 0x33, 0, ADDRESS(&signals[2]));
    PACKET(NOP, 1, 2, 3);
    put(2u << 30);
    put(3u << 30 | 0x3fffu << 16 | NOP << 8);
    // A buffer inside: the kernel's registers.
    PACKET(INDIRECT_BUFFER, ADDRESS(inner), 1 << 23);
    uint32_t *outer = words;
    words = inner;
    PACKET(SET_SH_REG, 0x20c, (uint32_t)((uintptr_t)code >> 8), (uint32_t)((uintptr_t)code >> 40));
    // 8 vector registers; 3 user registers, and the workgroup's number in x.
    PACKET(SET_SH_REG, 0x212, 0xc0000, 3 << 1 | 1 << 7);
    PACKET(SET_SH_REG, 0x240, ADDRESS(out), 1000);
    PACKET(SET_SH_REG, 0x204, 0, 0, 0, 64, 1, 1);
    outer[-1] |= words - inner;
    words = outer;
    PACKET(DISPATCH_DIRECT, 3, 1, 1, 1 | 1 << 2 | (later ? 1u << 15 : 0));
    PACKET(EVENT_WRITE, 7 | 4 << 8);
    PACKET(RELEASE_MEM, 20 | 5 << 8, 3u << 29, ADDRESS(&signals[3]), 0, 0, 0);
    PACKET(RELEASE_MEM, 20 | 5 << 8, 2u << 29, ADDRESS(&signals[4]), 0x55, 0x66, 0);
    // An interrupt that names no event: the slot that is written does.
    PACKET(RELEASE_MEM, 20 | 5 << 8, 1u << 29 | 2 << 24, ADDRESS(slot), event.event_id, 0, 0);
    // At least 7, which comes from the host.
    PACKET(WAIT_REG_MEM, 1 << 4 | 5, ADDRESS(&signals[5]), 7, 0xff, 4);
    PACKET(RELEASE_MEM, 20 | 5 << 8, 1u << 29 | 2 << 24, ADDRESS(&signals[6]), 0x77, 0, event.event_id);
  } else if (!strcmp(way, "unknown"))
    PACKET(0x50, 0, 0, 0, 0, 0, 0);
  else if (!strcmp(way, "register"))
    PACKET(SET_SH_REG, 0x400, 1);
  else if (!strcmp(way, "uconfig"))
    PACKET(SET_UCONFIG_REG, 0x200, 1);
  else if (!strcmp(way, "initiator"))
    PACKET(DISPATCH_DIRECT, 1, 1, 1, 3);
  else if (!strcmp(way, "wait"))
    PACKET(WAIT_REG_MEM, 3, 0x1234, 0, 1, 1, 4);
  else if (!strcmp(way, "type0"))
    put(0x1234);
  else if (!strcmp(way, "short"))
    put(3u << 30 | 5 << 16 | NOP << 8), put(0);

  if (is_packet) {
    uint32_t size = words - commands;
    uint32_t *aql = ring;
    aql[1] = 3u << 30 | 2 << 16 | INDIRECT_BUFFER << 8;
    if (!strcmp(way, "notbuffer"))
      aql[1] = 3u << 30 | EVENT_WRITE << 8;
    aql[2] = (uint32_t)(uintptr_t)commands;
    aql[3] = (uint32_t)((uintptr_t)commands >> 32);
    aql[4] = size | 1 << 23;
    aql[5] = 10;
    // AMD's own packet, with commands.
    __atomic_store_n(aql, 1 << 8 | 1 << 16, __ATOMIC_RELEASE);
    *write_index = 1;
  } else
    *write_index = words - ring;

  if (!is_good) {
    sleep(20);
    puts("nothing happened");
    return 1;
  }
  CHECK(wait_for(event.event_id, 60000));
  CHECK(signals[0] == 0x2200000011 && signals[1] == signals[0] && signals[2] == 0x33);
  for (uint32_t n = 0; n < 3 * 64; n++)
    CHECK(out[n] == 1000 + n % 64);
  CHECK(out[3 * 64] == 0);
  struct timespec now;
  clock_gettime(CLOCK_BOOTTIME, &now);
  uint64_t ticks = ((uint64_t)now.tv_sec * 1000000000 + now.tv_nsec) / 10;
  CHECK(signals[3] <= ticks && signals[3] + 6000000000 > ticks);
  CHECK(signals[4] == 0x6600000055 && (uint32_t)*slot == event.event_id);
  CHECK(signals[6] == 0 && !wait_for(event.event_id, 50));
  signals[5] = 0x107;
  CHECK(wait_for(event.event_id, 60000) && signals[6] == 0x77);
  for (int n = 0; *read_index != (is_packet ? 1u : (uint64_t)(words - ring)) && n < 10000; n++)
    usleep(1000);
  CHECK(*read_index == (is_packet ? 1u : (uint64_t)(words - ring)));
  struct kfd_ioctl_destroy_queue_args end = {.queue_id = made.queue_id};
  CHECK(!ioctl(kfd, AMDKFD_IOC_DESTROY_QUEUE, &end));
  puts("PASS");
  return 0;
}
