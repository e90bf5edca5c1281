/*
** terminal.c: see terminal.h.
*/
#define _POSIX_C_SOURCE 200809L
#include "host/terminal.h"

#include <unistd.h>

bool pp_output_is_terminal(void) { return isatty(STDOUT_FILENO) == 1; }
bool pp_messages_are_seen(void) { return isatty(STDERR_FILENO) == 1; }
