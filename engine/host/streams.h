/* SPDX-License-Identifier: Apache-2.0 */
/*
** streams.h: what the program wants of its standard streams, whoever started it.
*/
#ifndef PP_STREAMS_H
#define PP_STREAMS_H

/*
** A standard stream that is closed stays unusable, but its number is taken: no other file gets it, and with it what is meant for the stream.
** A reader that goes away ends the program quietly (SIGPIPE). A file that may not grow further is an error of writing, not a signal.
*/
void pp_prepare_streams(void);

#endif
