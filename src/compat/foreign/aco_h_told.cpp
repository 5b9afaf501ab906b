// An object of an archive that is linked only into a program compiled with libaco's original aco.h, whose names it
// defines; ours begin with pirn_. It needs an undefined symbol whose name is the message, so the link fails with that
// message. All of it is in the group that aco_h_untold.cpp has too.
#include "compat/foreign/aco_h.hpp"

#define PIRN_FOREIGN_NAME(name, section, flags, type)                                                \
  asm(PIRN_FOREIGN_SECTION(section, flags) "\t.globl " #name "\n\t.type " #name ",%" type "\n" #name \
                                           ":\n\t.dc.a " PIRN_FOREIGN_ACO_H "\n\t.popsection\n")
#define PIRN_FOREIGN_FUNCTION(name) PIRN_FOREIGN_NAME(name, ".data", "aw", "function")

PIRN_FOREIGN_FUNCTION(acosw);
PIRN_FOREIGN_FUNCTION(aco_create);
PIRN_FOREIGN_FUNCTION(aco_destroy);
PIRN_FOREIGN_FUNCTION(aco_exit);
PIRN_FOREIGN_FUNCTION(aco_exit1);
PIRN_FOREIGN_FUNCTION(aco_funcp_protector);
PIRN_FOREIGN_FUNCTION(aco_funcp_protector_asm);
PIRN_FOREIGN_FUNCTION(aco_reset);
PIRN_FOREIGN_FUNCTION(aco_resume);
PIRN_FOREIGN_FUNCTION(aco_runtime_test);
PIRN_FOREIGN_FUNCTION(aco_save_fpucw_mxcsr);
PIRN_FOREIGN_FUNCTION(aco_share_stack_destroy);
PIRN_FOREIGN_FUNCTION(aco_share_stack_new);
PIRN_FOREIGN_FUNCTION(aco_share_stack_new2);
PIRN_FOREIGN_FUNCTION(aco_thread_init);
PIRN_FOREIGN_FUNCTION(aco_yield);
PIRN_FOREIGN_FUNCTION(aco_yield1);
PIRN_FOREIGN_NAME(aco_gtls_co, ".tdata", "awT", "tls_object");
