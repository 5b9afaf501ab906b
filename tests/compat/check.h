/* The checks of the C programs of this folder. */
#ifndef PIRN_TESTS_COMPAT_CHECK_H
#define PIRN_TESTS_COMPAT_CHECK_H

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define CHECK(what)                                                      \
  do {                                                                   \
    if (!(what)) {                                                       \
      fprintf(stderr, "%s:%d: failed: %s\n", __FILE__, __LINE__, #what); \
      exit(1);                                                           \
    }                                                                    \
  } while (0)

/* Runs `what` in a child, which must end by the signal `by`, 0 for a sanitizer's exit, and print the given text. */
static __inline__ void check_dies_at(const char* file, int line, void (*what)(void), int by, const char* says) {
  static char text[4096];
  size_t size = 0;
  ssize_t got;
  int status = 0;
  int ends[2];
  pid_t child;
  CHECK(pipe(ends) == 0);
  fflush(NULL);
  child = fork();
  CHECK(child >= 0);
  if (child == 0) {
    close(ends[0]);
    dup2(ends[1], STDERR_FILENO);
    what();
    _exit(0);
  }
  close(ends[1]);
  while (size < sizeof text - 1 && (got = read(ends[0], text + size, sizeof text - 1 - size)) > 0) {
    size += (size_t)got;
  }
  text[size] = '\0';
  close(ends[0]);
  CHECK(waitpid(child, &status, 0) == child);
  if ((by != 0 ? !WIFSIGNALED(status) || WTERMSIG(status) != by : !WIFEXITED(status) || WEXITSTATUS(status) == 0) ||
      strstr(text, says) == NULL) {
    fprintf(stderr, "%s:%d: status %d instead of signal %d with \"%s\"; it said:\n%s\n", file, line, status, by, says,
            text);
    exit(1);
  }
}
#define CHECK_DIES(what, by, says) check_dies_at(__FILE__, __LINE__, what, by, says)

#endif
