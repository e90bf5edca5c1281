/* SPDX-License-Identifier: Apache-2.0 */
/*
** parse_cost.h: what Lua's parser does for a text, in units of core/meter.h, told before it is asked to.
*/
#ifndef PP_PARSE_COST_H
#define PP_PARSE_COST_H

#include <stddef.h>
#include <stdint.h>

/*
** Most of parsing is linear in the text. What is not (lparser.c and lcode.c of Lua 5.4):
**   jumps    the jumps of an expression with many `and` and `or`, of an `elseif` chain, of `break`, `goto` and labels are linked lists that are
**            walked to their end for each new one: at most the square of their number in a function
**   names    are looked for among the variables that can be seen, one by one, in each function around: their product
** Both are told from the tokens; a text that the parser rejects costs no more. O(size).
*/
uint64_t pp_parse_cost(const char *text, size_t size);

#endif
