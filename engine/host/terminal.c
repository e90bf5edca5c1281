/* SPDX-License-Identifier: Apache-2.0 */
/*
** terminal.c: see terminal.h.
*/
#define _POSIX_C_SOURCE 200809L
#include "host/terminal.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "core/text.h"

bool pp_output_is_terminal(void) { return isatty(STDOUT_FILENO) == 1; }
bool pp_messages_are_seen(void) { return isatty(STDERR_FILENO) == 1; }

void pp_complain(const char *text) {
  fputs("pipeplan: ", stderr);
  while (*text) {
    char shown[1024];
    size_t length = strcspn(text, "\n");
    pp_text_visible(text, length, shown, sizeof shown);
    fprintf(stderr, "%s\n", shown);
    text += length + (text[length] == '\n');
  }
}
