// The example scheduler rr.h of usched, with its locks, here pirn's.
#include <rr.h>

#define RING_FORM(name) rr_##name
#define RING_GROUP(group)
#ifndef RING_IMPL
#define RING_IMPL "pirn-rr"
#define RING_NOTE "through rr.h"
#endif
#include "usched_ring.hpp"
