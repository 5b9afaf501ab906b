// The example scheduler ll.h of usched, whose groups stay on their native thread, here pirn's.
#include <ll.h>

#define RING_FORM(name) ll_##name
#define RING_GROUP(group) , static_cast<int>(group)
#ifndef RING_IMPL
#define RING_IMPL "pirn-ll"
#define RING_NOTE "through ll.h"
#endif
#include "usched_ring.hpp"
