/* SPDX-License-Identifier: Apache-2.0 */
/*
** terminal.h: whether somebody looks at standard output and standard error, which neither C11 nor Lua can tell; and what C itself has to say
** there.
*/
#ifndef PP_TERMINAL_H
#define PP_TERMINAL_H

#include <stdbool.h>

bool pp_output_is_terminal(void);
bool pp_messages_are_seen(void);

/* Writes "pipeplan: " and the text, which may be several lines, to standard error, as core/text.h shows it. */
void pp_complain(const char *text);

#endif
