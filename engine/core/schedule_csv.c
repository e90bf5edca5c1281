/* SPDX-License-Identifier: Apache-2.0 */
/*
** schedule_csv.c: reading PyTorch's compute-only CSV. See schedule_csv.h.
**
** The text is read twice: once to see that all of it can be read and how large the program is, so that memory is asked for what is there
** and not for what a number claims; once to write the actions.
*/
#include "core/schedule_csv.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "core/meter.h"
#include "core/schedule_verify.h"
#include "core/schedules.h"

typedef struct {
  const char *at, *end;
  size_t line, column;     /* of the cell read last */
  bool inside, ended;      /* a line is open; its last cell has been read */
} csv_cursor;

typedef struct {
  const char *begin, *end;
} csv_cell;

typedef struct {
  csv_cursor cursor;
  pp_csv_place *place;
  pp_error *error;
} csv_reader;

/* -- cells ----------------------------------------------------------------------------------------------------------------------------- */

static bool is_blank(char c) { return c == ' ' || c == '\t'; }
static bool is_digit(char c) { return c >= '0' && c <= '9'; }

/* The next cell of the open line. */
static csv_cell take_cell(csv_cursor *cursor) {
  csv_cell out = { cursor->at, cursor->at };
  while (out.end < cursor->end && *out.end != ',' && *out.end != '\n') out.end++;
  cursor->ended = out.end == cursor->end || *out.end == '\n';
  cursor->at = out.end + (out.end < cursor->end);
  cursor->column++;
  if (cursor->ended && out.end > out.begin && out.end[-1] == '\r') out.end--;
  while (out.begin < out.end && is_blank(*out.begin)) out.begin++;
  while (out.begin < out.end && is_blank(out.end[-1])) out.end--;
  return out;
}

/* Reads digits: false when there is none. Beyond PP_MAX_ACTIONS, which no number here may reach, it stays there. */
static bool take_number(csv_cell *rest, uint32_t *value) {
  const char *start = rest->begin;
  for (*value = 0; rest->begin < rest->end && is_digit(*rest->begin); rest->begin++)
    *value = *value < PP_MAX_ACTIONS / 10 ? *value * 10 + (uint32_t)(*rest->begin - '0') : PP_MAX_ACTIONS;
  return rest->begin > start;
}

static bool take_text(csv_cell *rest, const char *text) {
  size_t length = strlen(text);
  if ((size_t)(rest->end - rest->begin) < length || memcmp(rest->begin, text, length) != 0) return false;
  rest->begin += length;
  return true;
}

typedef struct {
  int kind;
  uint32_t stage, microbatch;
} single_action;

static bool take_single(csv_cell *rest, single_action *out) {
  static const char letters[] = PP_KIND_LETTERS;
  if (!take_number(rest, &out->stage) || rest->begin == rest->end) return false;
  const char *letter = *rest->begin ? strchr(letters, *rest->begin) : NULL;
  if (!letter) return false;
  out->kind = (int)(letter - letters);
  rest->begin++;
  return take_number(rest, &out->microbatch);
}

/* One action, or a forward and a backward in either order; the other is unused for one. False when the cell is neither. */
static bool parse(csv_cell rest, single_action *one, single_action *other, bool *pair) {
  *pair = take_text(&rest, "(");
  if (!take_single(&rest, one)) return false;
  if (*pair) {
    if (!take_text(&rest, ";") || !take_single(&rest, other) || !take_text(&rest, ")OVERLAP_F_B")) return false;
    if (one->kind == PP_B) {
      single_action backward = *one;
      *one = *other;
      *other = backward;
    }
    if (one->kind != PP_F || other->kind != PP_B) return false;
  }
  return rest.begin == rest.end;
}

/* -- errors ---------------------------------------------------------------------------------------------------------------------------- */

/* At a line, or at a cell, which is quoted with what is not printable as \xNN. */
static pp_status fault(const csv_reader *reader, const csv_cell *quoted, const char *id, const char *format, ...) {
  char text[160], quote[48] = "";
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
  *reader->place = (pp_csv_place){ reader->cursor.line, quoted ? reader->cursor.column : 0 };
  if (!quoted) return pp_illegal(reader->error, id, "csv", NAN, "line %zu: %s", reader->cursor.line, text);
  size_t used = 0;
  const char *at = quoted->begin;
  for (; at < quoted->end && used < sizeof quote - 9; at++) {
    bool printable = *at >= ' ' && *at <= '~';
    used += (size_t)snprintf(quote + used, sizeof quote - used, printable ? "%c" : "\\x%02X", (unsigned char)*at);
  }
  if (at < quoted->end) memcpy(quote + used, "…", sizeof "…");
  return pp_illegal(reader->error, id, "csv", NAN, "line %zu, column %zu, '%s': %s", reader->cursor.line, reader->cursor.column, quote,
                    text);
}

/* Does the cell end in that text after a stage, with or without a microbatch behind it? */
static bool is_action_of_type(csv_cell rest, const char *type) {
  uint32_t number;
  if (!take_number(&rest, &number) || !take_text(&rest, type)) return false;
  take_number(&rest, &number);
  return rest.begin == rest.end;
}

/* A cell that is no action: what it seems to be, what was expected. */
static pp_status no_action(const csv_reader *reader, csv_cell wrong) {
  static const char *const communications[] = { "SEND_F", "RECV_F", "SEND_B", "RECV_B", "UNSHARD", "RESHARD", "REDUCE_GRAD" };
  for (size_t i = 0; i < sizeof communications / sizeof *communications; i++)
    if (is_action_of_type(wrong, communications[i]))
      return fault(reader, &wrong, "engine.csv_communication",
                   "communication belongs to the compute_comms format; only compute_only is read");
  if (is_action_of_type(wrong, "BW"))
    return fault(reader, &wrong, "engine.csv_old_dialect",
                 "BW is the full backward of PyTorch's files of 2024: it is B now, and their B is I");
  return fault(reader, &wrong, "engine.csv_cell", "expected an action such as 0F7, 0I7, 0W7, 0B7 or (0F7;3B2)OVERLAP_F_B, or nothing");
}

/* -- a text as actions ----------------------------------------------------------------------------------------------------------------- */

typedef enum { READ_ACTION, READ_LINE_END, READ_TEXT_END, READ_FAILED } read_result;

static read_result to_action(const csv_reader *reader, csv_cell cell, pp_action *out) {
  single_action one, other = { PP_B, 0, 0 };
  bool pair;
  if (!parse(cell, &one, &other, &pair)) {
    no_action(reader, cell);
    return READ_FAILED;
  }
  uint32_t stage = one.stage > other.stage ? one.stage : other.stage;
  if (stage >= PP_MAX_STAGES || one.microbatch >= PP_MAX_ACTIONS || other.microbatch >= PP_MAX_ACTIONS) {
    fault(reader, &cell, "engine.csv_size", "there can be at most %d stages and %d actions", PP_MAX_STAGES, PP_MAX_ACTIONS);
    return READ_FAILED;
  }
  *out = (pp_action){ .kind = (uint16_t)(pair ? PP_FB : one.kind), .stage = (uint16_t)one.stage, .stage_b = (uint16_t)other.stage,
                      .microbatch = one.microbatch, .microbatch_b = other.microbatch };
  return READ_ACTION;
}

static read_result next(csv_reader *reader, pp_action *out) {
  csv_cursor *cursor = &reader->cursor;
  for (;;) {
    if (cursor->inside && cursor->ended) {
      cursor->inside = false;
      return READ_LINE_END;
    }
    if (!cursor->inside) {
      if (cursor->at == cursor->end) return READ_TEXT_END;
      cursor->inside = true;
      cursor->line++;
      cursor->column = 0;
    }
    csv_cell cell = take_cell(cursor);
    if (cell.begin < cell.end) return to_action(reader, cell, out);
  }
}

/* What a text holds. */
typedef struct {
  int ranks, stages;
  uint32_t microbatches;   /* one more than the largest */
  size_t actions;
  bool split, overlaps;
} csv_extent;

static void include(csv_extent *extent, const pp_action *action) {
  extent->actions++;
  if (action->stage >= extent->stages) extent->stages = action->stage + 1;
  if (action->microbatch >= extent->microbatches) extent->microbatches = action->microbatch + 1;
  if (action->kind == PP_I || action->kind == PP_W) extent->split = true;
  if (action->kind != PP_FB) return;
  extent->overlaps = true;
  if (action->stage_b >= extent->stages) extent->stages = action->stage_b + 1;
  if (action->microbatch_b >= extent->microbatches) extent->microbatches = action->microbatch_b + 1;
}

static pp_status measure(csv_reader *reader, csv_extent *out) {
  *out = (csv_extent){ 0 };
  size_t before = 0;
  for (;;) {
    pp_action action;
    switch (next(reader, &action)) {
      case READ_FAILED: return PP_ILLEGAL;
      case READ_TEXT_END:
        if (out->ranks > 0) return PP_OK;
        return pp_illegal(reader->error, "engine.csv_row", "csv", NAN, "nothing to read: expected a line for each rank");
      case READ_LINE_END:
        if (out->actions == before)
          return fault(reader, NULL, "engine.csv_row", "no actions: each line is a rank's, which runs at least one stage");
        before = out->actions;
        if (++out->ranks > PP_MAX_STAGES) return fault(reader, NULL, "engine.csv_size", "there can be at most %d ranks", PP_MAX_STAGES);
        break;
      case READ_ACTION:
        include(out, &action);
        if (out->actions > PP_MAX_ACTIONS) return fault(reader, NULL, "engine.csv_size", "there can be at most %d actions", PP_MAX_ACTIONS);
        break;
    }
  }
}

/* -- the program ----------------------------------------------------------------------------------------------------------------------- */

/* Which microbatches occur, of the first `limit`: were there more, one of these would be missing. */
typedef struct {
  unsigned char *occurs;
  uint32_t limit;
} csv_scratch;

/* Boyer and Moore's vote: the rank that has more than half of a stage's actions is left in rank_of. The votes lie in slot_of. */
static void vote(pp_schedule *schedule, int stage, int rank) {
  int *votes = &schedule->slot_of[stage];
  if (*votes == 0) schedule->rank_of[stage] = rank;
  *votes += schedule->rank_of[stage] == rank ? 1 : -1;
}

static void note_microbatch(csv_scratch *scratch, uint32_t microbatch) {
  if (microbatch < scratch->limit) scratch->occurs[microbatch / 8] |= (unsigned char)(1u << microbatch % 8);
}

static void write_actions(csv_reader *reader, pp_schedule *schedule, csv_scratch *scratch) {
  pp_action *at = schedule->action;
  for (int rank = 0; rank < schedule->request.ranks; rank++) {
    schedule->first[rank] = (size_t)(at - schedule->action);
    for (; next(reader, at) == READ_ACTION; at++) {
      vote(schedule, at->stage, rank);
      note_microbatch(scratch, at->microbatch);
      if (at->kind != PP_FB) continue;
      vote(schedule, at->stage_b, rank);
      note_microbatch(scratch, at->microbatch_b);
    }
  }
  schedule->first[schedule->request.ranks] = (size_t)(at - schedule->action);
}

/* A number that should occur and does not, and how many more; many: too many to have been looked at. */
static pp_status missing(const csv_reader *reader, const char *id, const char *what, uint32_t first, uint32_t count, bool many,
                         uint32_t all) {
  char others[32] = "";
  if (many) snprintf(others, sizeof others, " and many others");
  else if (count > 1) snprintf(others, sizeof others, " and %u other%s", count - 1, count == 2 ? "" : "s");
  *reader->place = (pp_csv_place){ 0, 0 };
  return pp_illegal(reader->error, id, "csv", NAN, "%s %u%s occur%s nowhere, but %u does", what, first, others,
                    count > 1 || many ? "" : "s", all - 1);
}

static pp_status check_numbers(const csv_reader *reader, const pp_schedule *schedule, const csv_extent *extent,
                               const csv_scratch *scratch) {
  uint32_t first = 0, count = 0, all = extent->microbatches;
  for (int stage = schedule->stages - 1; stage >= 0; stage--)
    if (schedule->rank_of[stage] < 0) first = (uint32_t)stage, count++;
  if (count > 0) return missing(reader, "engine.missing_stage", "stage", first, count, false, (uint32_t)schedule->stages);
  for (uint32_t microbatch = scratch->limit; microbatch-- > 0; )
    if (!(scratch->occurs[microbatch / 8] >> microbatch % 8 & 1)) first = microbatch, count++;
  if (count == 0) return PP_OK;   /* of which there cannot be more than scratch->limit, then */
  return missing(reader, "engine.missing_microbatch", "microbatch", first, count, scratch->limit < all, all);
}

static void place_stages(pp_schedule *schedule) {
  pp_spend(8 * (uint64_t)(schedule->stages + schedule->request.ranks));
  int most = pp_schedule_place(schedule);
  schedule->request.chunks = schedule->traits.chunks = (most + schedule->chains - 1) / schedule->chains;
  schedule->chunks_per_rank = schedule->request.chunks * schedule->chains;
}

/* One block as in schedule.c. */
static bool allocate(pp_schedule *schedule, const csv_extent *extent, csv_scratch *scratch) {
  size_t ranks = (size_t)extent->ranks, stages = (size_t)extent->stages;
  scratch->limit = extent->microbatches > 2 * extent->actions ? (uint32_t)(2 * extent->actions) : extent->microbatches;
  scratch->occurs = pp_allocate_zeros(scratch->limit / 8 + 1);
  char *memory = pp_allocate(extent->actions * sizeof(pp_action) + (ranks + 1) * (sizeof(size_t) + sizeof(int)) + 3 * stages * sizeof(int));
  schedule->action = (pp_action *)(void *)memory;   /* owned by *schedule from here on */
  if (!memory || !scratch->occurs) return false;
  schedule->first = (size_t *)(void *)(memory + extent->actions * sizeof(pp_action));
  schedule->first_slot = (int *)(void *)(schedule->first + ranks + 1);
  schedule->rank_of = schedule->first_slot + ranks + 1;
  schedule->slot_of = schedule->rank_of + stages;
  schedule->stage_at = schedule->slot_of + stages;
  for (size_t stage = 0; stage < stages; stage++) {
    schedule->rank_of[stage] = -1;
    schedule->slot_of[stage] = 0;
  }
  return true;
}

/* Fills a schedule from a text that measure() has read. */
static pp_status build(csv_reader *reader, const csv_extent *extent, int directions, pp_schedule *out) {
  csv_scratch scratch = { NULL, 0 };
  pp_status status = PP_OK;
  if (extent->stages % directions != 0)
    return pp_illegal(reader->error, "engine.directions", "directions", 1, "%d stages cannot be two directions of equally many",
                      extent->stages);
  out->request = (pp_schedule_request){ .kind = PP_CUSTOM, .ranks = extent->ranks };
  out->traits = (pp_schedule_traits){ .name = "csv", .family = "csv", .placement = PP_PLACE_CUSTOM, .chains = directions,
                                      .copies = directions, .split_backward = extent->split, .overlaps = extent->overlaps };
  out->chains = directions;
  out->stages = extent->stages;
  out->stages_per_chain = extent->stages / directions;
  if (!allocate(out, extent, &scratch))
    status = pp_fail(reader->error, PP_NO_MEMORY, "not enough memory for a schedule of %zu actions", extent->actions);
  if (status == PP_OK) {
    write_actions(reader, out, &scratch);
    status = check_numbers(reader, out, extent, &scratch);
  }
  pp_free(scratch.occurs);
  if (status == PP_OK) {
    place_stages(out);
    out->microbatches_per_chain = (int)extent->microbatches;   /* ≤ 2 × actions: none is missing */
    out->request.microbatches = out->microbatches_per_chain * directions;
    status = pp_schedule_verify(out, reader->error);
    out->verified = status == PP_OK;
    if (status == PP_ILLEGAL) status = PP_OK;   /* it is read as it is, and says so itself */
  }
  if (status != PP_OK) pp_schedule_free(out);
  return status;
}

pp_status pp_schedule_read_csv(const char *text, size_t length, int directions, pp_schedule *out, pp_csv_place *place, pp_error *error) {
  pp_csv_place nobody_asks;
  pp_error nobody_reads;
  csv_reader reader = { .cursor = { .at = text, .end = text + length }, .place = place ? place : &nobody_asks,
                        .error = error ? error : &nobody_reads };
  csv_extent extent;
  *out = (pp_schedule){ 0 };
  *reader.place = (pp_csv_place){ 0, 0 };
  if (!pp_spend(4 * (uint64_t)length)) return pp_stopped(error);
  if (directions != 1 && directions != 2) return pp_fail(error, PP_INVALID, "directions must be 1 or 2, got %d", directions);
  pp_status status = measure(&reader, &extent);
  if (status != PP_OK) return status;
  reader.cursor = (csv_cursor){ .at = text, .end = text + length };
  return build(&reader, &extent, directions, out);
}
