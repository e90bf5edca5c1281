/* SPDX-License-Identifier: Apache-2.0 */
/*
** prefetch.h: asking the processor for memory before it is needed, where the compiler can. A hint: it changes time and nothing else.
*/
#ifndef PP_PREFETCH_H
#define PP_PREFETCH_H

#if defined(__GNUC__)
#define PP_PREFETCH(address, for_writing) __builtin_prefetch(address, for_writing)
#else
#define PP_PREFETCH(address, for_writing) ((void)(address))
#endif

#endif
