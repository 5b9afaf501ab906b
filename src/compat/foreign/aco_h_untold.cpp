// An object before aco_h_told.cpp in its archives that resolves no symbol: both are linked only if a program takes
// whole archives (-Wl,--whole-archive). Then the group here is the first, the group there is left out, and a program
// that uses pirn's aco.h links.
#include "compat/foreign/aco_h.hpp"

asm(PIRN_FOREIGN_SECTION(".data", "aw") "\t.dc.a 0\n\t.popsection\n");
