// Dispatches a kernel as often as the first argument says, each time to its end, and ends in the manner that the second
// one names.
#include <hip/hip_runtime.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <sys/wait.h>
#include <unistd.h>

__global__ void some_lanes(unsigned* out) {
    if (threadIdx.x < 10) out[threadIdx.x] = threadIdx.x;
}

// Ends when the host says so, which it never does.
__global__ void goes_on(volatile unsigned* word) {
    while (*word == 0) {
    }
}

static void dispatch(int times) {
    unsigned* out;
    if (hipMalloc(reinterpret_cast<void**>(&out), 256) != hipSuccess) exit(3);
    for (int i = 0; i < times; i++) {
        some_lanes<<<1, 64>>>(out);
        if (hipDeviceSynchronize() != hipSuccess) exit(4);
    }
}

static void wait_for(pid_t child) {
    int status;
    if (waitpid(child, &status, 0) != child) exit(5);
}

// What is destroyed after main dispatches once more.
static int at_exit;
static void dispatch_at_exit() { dispatch(at_exit); }
struct Last {
    bool armed = false;
    ~Last() {
        if (armed) dispatch(at_exit);
    }
};
static thread_local Last of_thread;

int main(int argc, char** argv) {
    if (argc < 3) return 2;
    int times = atoi(argv[1]);
    const char* how = argv[2];
    auto is = [how](const char* name) { return strcmp(how, name) == 0; };
    if (is("goes_on")) {
        unsigned* word;
        if (hipHostMalloc(reinterpret_cast<void**>(&word), 4, 0) != hipSuccess) return 12;
        *word = 0;
        goes_on<<<1, 64>>>(word);
        puts("goes on");
        fflush(stdout);
        (void)hipDeviceSynchronize();
    }
    dispatch(times);
    printf("%s\n", how);
    if (is("fault")) *reinterpret_cast<volatile int*>(8) = 1;
    fflush(stdout);
    if (is("atexit")) {
        at_exit = times;
        if (atexit(dispatch_at_exit) != 0) return 11;
        exit(0);
    }
    if (is("destructors")) {
        at_exit = times;
        static Last of_program;
        of_program.armed = of_thread.armed = true;
        return 0;
    }
    if (is("exit")) exit(0);
    if (is("_exit")) _exit(0);
    if (is("quick_exit")) quick_exit(0);
    if (is("abort")) abort();
    if (is("reset")) {
        if (hipDeviceReset() != hipSuccess) return 6;
        _exit(0);
    }
    if (is("term")) kill(getpid(), SIGTERM);
    if (is("kill")) kill(getpid(), SIGKILL);
    if (is("exec")) {
        execl(argv[0], argv[0], argv[1], "return", nullptr);
        execl("/proc/self/exe", argv[0], argv[1], "return", nullptr);
        return 7;
    }
    if (is("fork")) {
        pid_t child = fork();
        if (child == 0) {
            dispatch(2 * times);
            _exit(0);
        }
        wait_for(child);
        dispatch(times);
    }
    if (is("idle")) {
        // The child does nothing and ends as a program does.
        pid_t child = fork();
        if (child == 0) exit(0);
        wait_for(child);
    }
    if (is("daemon")) {
        // The child has dispatched when the parent ends.
        int ends[2];
        char byte = 0;
        if (pipe(ends) != 0) return 8;
        if (fork() == 0) {
            setsid();
            dispatch(times);
            if (write(ends[1], &byte, 1) != 1) _exit(9);
            sleep(8);
            _exit(0);
        }
        if (read(ends[0], &byte, 1) != 1) return 10;
    }
    return 0;
}
