#pragma once

extern thread_local int counted_elsewhere;
void count_elsewhere();
int* where_counted();
