// Looks at the driver's files by each function that does so: two GPUs, of which the first is at 0000:03:00.0.

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#define CHECK(condition)                                                       \
  do {                                                                         \
    if (!(condition)) {                                                        \
      printf("line %d: %s (%s)\n", __LINE__, #condition, strerror(errno));     \
      exit(1);                                                                 \
    }                                                                          \
  } while (0)

#define CARD "/sys/class/drm/card0/device/"
#define PCI "/sys/devices/pci0000:00/0000:03:00.0"

// What programs have that were linked with a C library before 2.33.
int __xstat(int, const char *, struct stat *);
int __lxstat(int, const char *, struct stat *);
int __fxstat(int, int, struct stat *);
int __fxstatat(int, int, const char *, struct stat *, int);

static int is_device(const struct stat *st, int major_number, int minor_number) {
  return S_ISCHR(st->st_mode) && (st->st_mode & 0777) == 0666 && major(st->st_rdev) == (unsigned)major_number &&
         minor(st->st_rdev) == (unsigned)minor_number && st->st_size == 0;
}

static void read_is(const char *path, const char *expected) {
  char text[256];
  FILE *file = fopen(path, "r");
  if (!file || !fgets(text, sizeof text, file) || strcmp(text, expected)) {
    printf("%s is not %s", path, expected);
    exit(1);
  }
  fclose(file);
}

static int names(const char *path, const char *wanted) {
  DIR *folder = opendir(path);
  int found = 0;
  CHECK(folder);
  for (struct dirent *entry; (entry = readdir(folder));)
    found += !strcmp(entry->d_name, wanted);
  closedir(folder);
  return found;
}

static int visible(const struct dirent *entry) { return entry->d_name[0] != '.'; }

int main(void) {
  struct stat st;
  struct statx stx;
  char text[PATH_MAX];
  ssize_t length;

  // Devices.
  CHECK(!stat("/dev/dri/renderD129", &st) && is_device(&st, 226, 129));
  CHECK(!lstat("/dev/dri/card0", &st) && is_device(&st, 226, 0));
  CHECK(!fstatat(AT_FDCWD, "/dev/kfd", &st, 0) && S_ISCHR(st.st_mode));
  CHECK(!__xstat(1, "/dev/dri/renderD128", &st) && is_device(&st, 226, 128));
  CHECK(!__lxstat(1, "/dev/dri/renderD128", &st) && is_device(&st, 226, 128));
  CHECK(!__fxstatat(1, AT_FDCWD, "/dev/dri/card1", &st, 0) && is_device(&st, 226, 1));
  CHECK(__xstat(7, "/dev/kfd", &st) == -1 && errno == EINVAL);
  CHECK(!statx(AT_FDCWD, "/dev/dri/renderD128", 0, STATX_BASIC_STATS, &stx));
  CHECK(S_ISCHR(stx.stx_mode) && stx.stx_rdev_major == 226 && stx.stx_rdev_minor == 128);
  int render = open("/dev/dri/renderD129", O_RDWR | O_CLOEXEC);
  CHECK(render >= 0 && !fstat(render, &st) && is_device(&st, 226, 129));
  CHECK(!__fxstat(1, render, &st) && is_device(&st, 226, 129));
  CHECK(!fstatat(render, "", &st, AT_EMPTY_PATH) && is_device(&st, 226, 129));
  CHECK(!statx(render, "", AT_EMPTY_PATH, STATX_BASIC_STATS, &stx) && stx.stx_rdev_minor == 129);
  CHECK(!close(render));
  CHECK(stat("/dev/dri/renderD130", &st) == -1 && errno == ENOENT);
  CHECK(open("/dev/dri/renderD130", O_RDWR) == -1 && errno == ENOENT);
  CHECK(!access("/dev/kfd", R_OK | W_OK) && !faccessat(AT_FDCWD, "/dev/dri/card1", R_OK, AT_EACCESS));
  CHECK(!eaccess("/dev/kfd", R_OK) && !euidaccess("/dev/kfd", R_OK));
  CHECK(names("/dev/dri", "renderD128") && names("/dev/dri/", "card1") && !names("/dev/dri", "card2"));

  // Files.
  read_is(CARD "vendor", "0x1002\n");
  read_is("/sys/class/drm/renderD129/device/mem_info_vram_total", "8589934592\n");
  read_is("/sys/bus/pci/devices/0000:04:00.0/vendor", "0x1002\n");
  read_is("/sys/dev/char/226:128/dev", "226:128\n");
  read_is("/sys//class/./kfd/kfd/topology/nodes/1/gpu_id", "2\n");
  read_is("/sys/module/amdgpu/initstate", "live\n");
  read_is("/sys/class/drm/renderD128/device/ip_discovery/die/0/11/0/major", "9\n");
  read_is(CARD "mem_info_vram_used", "0\n");
  CHECK(!stat(CARD "vendor", &st) && S_ISREG(st.st_mode));
  CHECK(access(CARD "hwmon", F_OK) == -1 && errno == ENOENT);
  CHECK(access(CARD "pp_dpm_sclk", F_OK) == -1 && access(CARD "gpu_busy_percent", F_OK) == -1);
  CHECK(names("/sys/class/drm", "card1") && names("/sys/class/kfd/kfd/topology/nodes", "2"));
  CHECK(names(CARD, "uevent") && names("/sys/class/drm/card0/device/drm", "renderD128"));
  struct dirent **list;
  CHECK(scandir("/sys/class/drm", &list, visible, alphasort) == 5 && !strcmp(list[0]->d_name, "card0"));
  CHECK(scandir64("/dev/dri", (struct dirent64 ***)&list, NULL, NULL) == 6);
  int folder = open("/sys/class/drm/card0/device", O_RDONLY | O_DIRECTORY);
  CHECK(folder >= 0 && !fstatat(folder, "uevent", &st, 0) && openat(folder, "device", O_RDONLY) >= 0);

  // Links.
  CHECK(!lstat("/sys/class/drm/card0", &st) && S_ISLNK(st.st_mode));
  length = readlink("/sys/class/drm/card0", text, sizeof text);
  CHECK(length > 0 && !strncmp(text, "../../devices/pci0000:00/0000:03:00.0/drm/card0", length));
  length = readlinkat(AT_FDCWD, CARD "driver", text, sizeof text);
  CHECK(length > 0 && !strncmp(text, "../../../bus/pci/drivers/amdgpu", length));
  CHECK(realpath("/sys/class/drm/renderD128/device", text) == text && !strcmp(text, PCI));
  char *own = realpath("/sys/class/kfd/kfd", NULL);
  CHECK(own && !strcmp(own, "/sys/devices/virtual/kfd/kfd"));
  free(own);
  own = canonicalize_file_name(CARD "subsystem");
  CHECK(own && !strcmp(own, "/sys/bus/pci"));
  free(own);
  int vendor = open(CARD "vendor", O_RDONLY);
  snprintf(text, sizeof text, "/proc/self/fd/%d", vendor);
  length = readlink(text, text, sizeof text);
  CHECK(length == sizeof PCI "/vendor" - 1 && !memcmp(text, PCI "/vendor", length));

  // Nothing can be written or made.
  CHECK(open(CARD "vendor", O_RDWR) == -1 && errno == EACCES);
  CHECK(!fopen(CARD "power_dpm_force_performance_level", "w") && errno == EACCES);

  // Other files are other programs'.
  CHECK(!stat("/dev/null", &st) && major(st.st_rdev) == 1 && minor(st.st_rdev) == 3);
  CHECK(stat("/sys/class/drm2", &st) == -1 && readlink("/proc/self/exe", text, sizeof text) > 0);
  CHECK(realpath("/dev/../dev/null", text) && !strcmp(text, "/dev/null"));
  puts("PASS");
  return 0;
}
