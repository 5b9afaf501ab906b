// Before aco_h_told.cpp in its archives, and nobody's answer: both are there only if a program takes whole archives
// (-Wl,--whole-archive). Then the group here is the first, the one there is left out, and a program of pirn's aco.h
// links.
#include "compat/foreign/aco_h.hpp"

asm(PIRN_FOREIGN_SECTION(".data", "aw") "\t.dc.a 0\n\t.popsection\n");
