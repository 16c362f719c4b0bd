// Moving the processor from one device thread to another.
#pragma once
#include <stdint.h>

extern "C" __attribute__((visibility("hidden"))) void tk_switch(void **save, void *to);

namespace tk {
// A stack that starts in `entry` when it is switched to for the first time.
void *fresh_stack(char *high, void (*entry)());
}  // namespace tk
