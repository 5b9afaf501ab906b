// Boost.Coroutine2 with all inlined that can be, a step of figure 1 of Li and others, "Stackful Coroutine Made Fast".
#include "boost-coroutine2.cpp"
