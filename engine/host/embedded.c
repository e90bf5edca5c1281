/* SPDX-License-Identifier: Apache-2.0 */
/*
** embedded.c: finding a file among those embedded. See embedded.h.
*/
#include "host/embedded.h"

#include <lua.h>
#include <stdlib.h>
#include <string.h>

static int compare_name(const void *name, const void *file) {
  return strcmp(name, ((const pp_embedded *)file)->name);
}

const pp_embedded *pp_embedded_find(const char *name) {
  return bsearch(name, pp_embedded_files, pp_embedded_count, sizeof *pp_embedded_files, compare_name);
}

const char *pp_embedded_code(const pp_embedded *file) {
  return strcmp(pp_embedded_lua, lua_ident) == 0 ? file->code : NULL;
}
