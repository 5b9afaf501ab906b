// The example scheduler rr.h of usched without locks, for one native thread, here pirn's.
#define SINGLE_THREAD
#include <rr.h>

#define RING_FORM(name) rr_##name
#define RING_GROUP(group)
#ifndef RING_IMPL
#define RING_IMPL "pirn-rr-single"
#define RING_NOTE "through rr.h, with SINGLE_THREAD"
#endif
#include "usched_ring.hpp"
