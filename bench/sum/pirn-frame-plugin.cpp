// A generator on as many bytes of the consumer's frame as the compiler plugin finds that its body needs.
#include "frame.hpp"

int main() { bench::sum_rows_in_frame<pirn::frame<>>("pirn-frame-plugin"); }
