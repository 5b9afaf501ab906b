// The resume label, where a suspended caller proceeds. It is a local label, since each inlined switch has one. Each ISA
// file defines PIRN_RESUME_ENTRY, which ends a switch: the padding that the ISA needs, the label, and its landing pad.
#pragma once

#define PIRN_RESUME_LABEL "1:\n\t"
// That label as an operand of an instruction above it.
#define PIRN_RESUME_ADDRESS "1f"
