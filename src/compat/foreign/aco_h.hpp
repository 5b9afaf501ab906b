// The section that carries a linker message, shared by two objects.
#pragma once

#define PIRN_FOREIGN_ACO_H "this_program_was_compiled_with_libaco_s_own_aco_h_not_with_pirn_s__see_docs_porting_md"
// A group: the linker keeps the first copy that it finds.
#define PIRN_FOREIGN_SECTION(section, flags)                                                                 \
  "\t.pushsection " section "." PIRN_FOREIGN_ACO_H ",\"" flags "G\",%progbits,for_those." PIRN_FOREIGN_ACO_H \
  ",comdat"                                                                                                  \
  "\n"
