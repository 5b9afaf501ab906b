// A generator on a buffer in the consumer's frame.
#include "frame.hpp"

int main() { bench::sum_rows_in_frame<pirn::frame<2048>>("pirn-frame"); }
