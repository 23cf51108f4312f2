// What the programs of this folder share: a check that counts failures, and how a program ends.
#pragma once
#include <hip/hip_runtime.h>

#include <cstdio>
#include <cstring>
#include <vector>

static int failures = 0;

#define CHECK(condition)                                          \
    do {                                                          \
        if (!(condition)) {                                       \
            std::printf("line %d: %s\n", __LINE__, #condition);   \
            std::fflush(stdout);                                  \
            ++failures;                                           \
        }                                                         \
    } while (0)
#define OK(call) CHECK((call) == hipSuccess)

static int verdict() {
    std::printf("%s\n", failures == 0 ? "PASS" : "FAIL");
    return failures != 0;
}
