// The section in which a message of the linker is made, for the two objects that have it in common.
#pragma once

#define PIRN_FOREIGN_ACO_H "this_program_was_compiled_with_libaco_s_own_aco_h_not_with_pirn_s__see_docs_porting_md"
// A group of which the linker keeps the first that it comes to.
#define PIRN_FOREIGN_SECTION(section, flags)                                                                 \
  "\t.pushsection " section "." PIRN_FOREIGN_ACO_H ",\"" flags "G\",%progbits,for_those." PIRN_FOREIGN_ACO_H \
  ",comdat"                                                                                                  \
  "\n"
