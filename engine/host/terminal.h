/*
** terminal.h: whether somebody looks at standard output and standard error, which neither C11 nor Lua can tell.
*/
#ifndef PP_TERMINAL_H
#define PP_TERMINAL_H

#include <stdbool.h>

bool pp_output_is_terminal(void);
bool pp_messages_are_seen(void);

#endif
