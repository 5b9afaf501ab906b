/* Two functions of C on two stacks that switch to each other. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Makes the other side. Returns 0, or an error of pirn/pirn.h. */
int begin_in_c(size_t stack_size);
/** Switches to the other side and back `turns` times; returns the number that it sent last. */
uint64_t switch_in_c(uint64_t sent, uint64_t turns);

#ifdef __cplusplus
}
#endif
