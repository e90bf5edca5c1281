/* SPDX-License-Identifier: Apache-2.0 */
/*
** text.h: text that came from elsewhere (names, paths, messages), fit for a terminal, a log or a review: what a terminal would obey, or
** a reader not see, is shown escaped; and UTF-8 is never cut inside a character.
**
** Shown escaped are control characters (C0, DEL, C1), bytes that are no UTF-8 (RFC 3629), line and paragraph separators, noncharacters, and
** what has no form of its own: Unicode's Default_Ignorable_Code_Point (bidirectional overrides and isolates, zero-width characters, tags)
** but variation selectors 1 to 16, which choose between forms that are seen. They become "\n", "\t", "\r", "\x1b", of a byte alone "\xff",
** and "\u{202e}". Escaping twice changes nothing, for what it writes is plain.
** Nothing here allocates, formats or reads a locale: a signal handler may call it.
** Sources: Unicode 14, DerivedCoreProperties.txt; Trojan Source (CVE-2021-42574) for why.
*/
#ifndef PP_TEXT_H
#define PP_TEXT_H

#include <stddef.h>
#include <stdint.h>

/* Length of the well-formed UTF-8 sequence at p (RFC 3629: no overlong forms, no surrogates, up to U+10FFFF), 0 when there is none.
** left ≥ 1. */
size_t pp_utf8_length(const char *p, size_t left);

/* The code point of a sequence of that length, which pp_utf8_length found. */
uint32_t pp_utf8_code(const char *p, size_t length);

/* How many bytes at the start of the text can be shown as they are. */
size_t pp_text_plain(const char *text, size_t length);

enum { PP_ESCAPE_SIZE = 16 };  /* the longest escape, "\u{10ffff}", and its NUL, with room */

/* Writes what stands for the first character, which is not plain, and returns how many bytes of the text it took. length ≥ 1. */
size_t pp_text_escape(const char *text, size_t length, char out[PP_ESCAPE_SIZE]);

/* The whole text into out[size], with a NUL; what does not fit is left out, "…" in its place where there is room. Nothing is cut inside a
** character or an escape. size ≥ 1. Returns the length written. */
size_t pp_text_visible(const char *text, size_t length, char *out, size_t size);

/* Columns of a terminal that a text takes: 2 for a wide or full-width character (Unicode 14, EastAsianWidth.txt: W, F), 0 for the common
** combining marks, else 1; a byte that is no UTF-8 counts 1. */
size_t pp_text_width(const char *text, size_t length);

/* How many bytes at the start of the text take at most so many columns: whole characters, with the marks that combine with them. */
size_t pp_text_fit(const char *text, size_t length, size_t columns);

/* Takes a character that a cut left incomplete off the end of a text with a NUL, as snprintf leaves it. */
void pp_text_mend(char *text);

#endif
